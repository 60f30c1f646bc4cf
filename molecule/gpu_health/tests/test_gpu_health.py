# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The founding incident inside a real container, and its repair: the steps of one story, in their order."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

testinfra_hosts = ["ansible://pve"]

ROOT = Path(__file__).parents[3]
UVM = "/dev/nvidia-uvm"
# What the container's guide said before the reboot that moved nvidia-uvm.
EARLIER = [{"path": UVM, "major": 511, "minor": 0}]
NOW = "lxc.cgroup2.devices.allow: c 1:11 rw"


def run(**variables):
    """Another run of converge.yml. Returns the checks by their ids, and the message if it stopped with one."""
    command = ["ansible-playbook", str(ROOT / "molecule/gpu_health/converge.yml"), "-i", "inventories/sandbox"]
    done = subprocess.run(
        [*command, "-e", json.dumps(variables)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"},
        capture_output=True,
        text=True,
        check=False,
    )
    tasks = [task for play in json.loads(done.stdout)["plays"] for task in play["tasks"]]
    results = [task["hosts"]["ct200"] for task in tasks if "ct200" in task["hosts"]]
    assert done.returncode == (2 if results[-1].get("failed") else 0), done.stdout + done.stderr
    checks = next(result["checks"] for result in results if "checks" in result)
    return {check["id"]: check for check in checks}, "\n".join(results[-1]["msg"]) if done.returncode else ""


def failed(checks):
    return [check["id"] for check in checks.values() if check["status"] == "fail"]


def status(checks, *names):
    return [checks[name]["status"] for name in names]


def test_cuda_initialises_where_the_rule_is(host):
    checks, stopped = run()
    assert stopped == ""
    assert failed(checks) == []
    assert status(checks, "node.nvidia-uvm", "cuda.init", "cuda.count", "nvml.init", "gpu.count") == ["pass"] * 5
    # The kernel module cannot be seen in the lab, and that is no pass.
    assert status(checks, "driver.loaded", "driver.versions") == ["skipped"] * 2


def test_missing_node_fails_and_is_not_made_by_the_check(host):
    checks, stopped = run(granted_uvm=[])
    assert failed(checks) == ["node.nvidia-uvm"]
    assert status(checks, "cuda.init", "nvml.init") == ["skipped"] * 2
    assert "[node.nvidia-uvm]" in stopped
    assert "run role lxc_gpu" in stopped
    assert host.run("pct exec 200 -- test -e " + UVM).rc == 1


def test_rule_of_an_earlier_boot_fails_and_the_message_names_the_right_one(host):
    checks, stopped = run(style="cgroup", granted_uvm=EARLIER)
    assert "allow: c 511:0 rw" in host.check_output("cat /etc/pve/lxc/200.conf")
    assert failed(checks) == ["node.nvidia-uvm", "cuda.init"]
    # nvidia-smi works.
    assert status(checks, "node.nvidia0", "node.nvidiactl", "nvml.init", "gpu.count", "gpu.lost") == ["pass"] * 5
    assert checks["cuda.init"]["actual"].startswith("999 CUDA_ERROR_UNKNOWN")
    assert "see the check node.nvidia-uvm" in checks["cuda.init"]["fix"]
    uvm = next(line for line in stopped.splitlines() if line.startswith("[node.nvidia-uvm]"))
    assert re.search(r"EPERM: the device cgroup refuses .* 1:11", uvm)
    assert "on the host run role lxc_gpu" in uvm
    assert NOW in uvm


def test_ignored_failure_lets_the_run_go_on(host):
    checks, stopped = run(style="cgroup", granted_uvm=EARLIER, gpu_health_ignore=["node.nvidia-uvm", "cuda.init"])
    assert failed(checks) == ["node.nvidia-uvm", "cuda.init"]
    assert stopped == ""


def test_rule_that_the_message_named_repairs_it(host):
    checks, stopped = run(style="cgroup")
    assert NOW in host.check_output("cat /etc/pve/lxc/200.conf")
    assert stopped == ""
    assert failed(checks) == []
    assert status(checks, "node.nvidia-uvm", "cuda.init", "cuda.count") == ["pass"] * 3
