# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a reboot, and after a bad one: one story, step by step."""

from __future__ import annotations

import time

import pytest

from tests.fixtures import nodes, plays, reboots

testinfra_hosts = ["ansible://pve"]

UVM = "/dev/nvidia-uvm"
SERVES = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:30000/health', timeout=10).status)"


@pytest.fixture
def ct200(host):
    return host.get_host("ansible://ct200", ansible_inventory=host.backend.ansible_inventory)


def job(*arguments: str, **variables: object) -> dict[str, int]:
    """A run of the main playbook that must not fail. Returns by host how many tasks changed something."""
    status, output = plays.run(*plays.playbook("playbooks/k26_eagle3.yml", *arguments, **variables))
    assert status == 0, output
    return plays.changed(output)


def serves(pve) -> bool:
    """Whether the engine comes up with nobody's help."""
    for _ in range(180):
        if pve.run("pct exec 200 -- python3 -c %s", SERVES).stdout.strip() == "200":
            return True
        time.sleep(1)
    return False


def opened(pve, node: str) -> str:
    return pve.check_output("pct exec 200 -- python3 -c %s %s", nodes.OPEN, node)


def test_after_a_reboot_with_moved_numbers_it_serves_and_nobody_ran_anything(host):
    old, new = reboots.with_moved_uvm(host)
    assert old != new
    assert serves(host)
    assert opened(host, UVM) == "ENXIO"
    assert host.check_output("stat -c %%Hr %s", UVM) == str(new)
    said = host.check_output("journalctl -b -u nvidia-device-nodes -o cat --no-pager")
    assert f"made {UVM} c {new}:0" in said
    assert "the device nodes are there: containers may start" in said


def test_a_rerun_has_nothing_to_do(host):
    assert job() == {"pve": 0, "ct200": 0}


def test_rules_by_number_are_stale_after_a_reboot_and_one_rerun_repairs_them(host):
    """What the founding incident was: the rules name the number of before."""
    assert job(lxc_gpu_style="cgroup")["pve"] > 0
    assert opened(host, UVM) == "ENXIO"
    reboots.with_moved_uvm(host)
    assert serves(host)
    assert opened(host, UVM) in ("EPERM", "ENOENT")
    assert job(lxc_gpu_style="cgroup")["pve"] > 0
    assert opened(host, UVM) == "ENXIO"
    assert serves(host)
    assert job(lxc_gpu_style="cgroup") == {"pve": 0, "ct200": 0}


def test_a_container_that_was_stopped_is_started_by_the_rerun(host):
    host.check_output("pct stop 200")
    job(lxc_gpu_style="cgroup")
    assert serves(host)


def test_a_run_that_was_killed_keeps_nobody_out(host, ct200):
    ct200.check_output(
        "printf %%s %s > /run/gpuserve-sglang.lock", '{"who": "x@y", "machine": "m", "boot": "b", "pid": 1, "since": 0}'
    )
    status, output = plays.run(*plays.playbook("playbooks/k26_eagle3.yml", lxc_gpu_style="cgroup"))
    assert status != 0
    assert "x@y works on this host since" in plays.unfolded(output)
    assert job(lxc_gpu_style="cgroup", run_lock_break=True) == {"pve": 0, "ct200": 0}
    assert not ct200.file("/run/gpuserve-sglang.lock").exists
