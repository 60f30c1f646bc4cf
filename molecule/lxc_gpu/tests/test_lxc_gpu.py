# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What four containers may open, from the first grant to the last removal: the steps of one story, in their order."""

from __future__ import annotations

import json
import re

import pytest

from tests.fixtures import plays, reboots

testinfra_hosts = ["ansible://pve"]

# By converge.yml: the GPU that each container was given; there are two.
GPU = {200: 0, 201: 1, 202: 0, 203: 1}
UNPRIVILEGED = (202, 203)
CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
OPEN = """
import errno, json, os, sys
answers = {}
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        answers[path] = "opened"
    except OSError as error:
        answers[path] = errno.errorcode[error.errno]
print(json.dumps(answers))
"""
SMUGGLE = """
import errno, os, stat, sys
step = "mknod"
try:
    os.mknod("/dev/smuggled", stat.S_IFCHR | 0o666, os.makedev(195, int(sys.argv[1])))
    step = "open"
    os.close(os.open("/dev/smuggled", os.O_RDWR))
    print("opened")
except OSError as error:
    print(step, errno.errorcode[error.errno])
finally:
    if step == "open":
        os.unlink("/dev/smuggled")
"""


def granted(vmid: int) -> list[str]:
    return [f"/dev/nvidia{GPU[vmid]}", *CONTROL]


def opened(host, vmid, paths):
    """How open() of each node ends inside the container."""
    return json.loads(host.check_output("pct exec %s -- python3 -c %s " + " ".join(paths), str(vmid), OPEN))


def permitted(vmid):
    """ENXIO: the device rules let it through, and the lab has no driver that would answer."""
    return dict.fromkeys(granted(vmid), "ENXIO")


def smuggled(host, vmid, minor):
    """How it ends when root of the container makes itself a node of a GPU."""
    return host.check_output("pct exec %s -- python3 -c %s %s", str(vmid), SMUGGLE, str(minor))


def config(host, vmid):
    return host.check_output("cat /etc/pve/lxc/%s.conf", str(vmid))


def play(*arguments, **variables):
    """One more run of the role, which must not fail. Returns how many tasks changed something, and what was said."""
    status, output = plays.run(*plays.playbook("molecule/lxc_gpu/converge.yml", *arguments, **variables))
    assert status == 0, output
    return plays.changed(output)["pve"], output


def proof(style):
    """The role's proof alone, which repairs nothing: the checks that failed, and the message with which it stopped."""
    containers = [{"vmid": str(vmid), "gpus": [gpu]} for vmid, gpu in GPU.items()]
    arguments = {"containers": containers, "gpus": [0, 1], "style": style, "devices_file": reboots.DEVICES}
    arguments |= {"driver_answers": False, "prove": True}
    module = ("-m", "gpuserve.sglang.lxc_gpu_info", "-a", json.dumps(arguments))
    status, output = plays.run("ansible", "pve", "--one-line", *module)
    told = json.loads(next(line.partition("=>")[2] for line in output.splitlines() if line.startswith("pve | ")))
    # As many as there are nodes of the host, for each container.
    opens = [check for check in told["checks"] if re.search(r"\.(open|refused)\.", check["id"])]
    assert len(opens) == len(GPU) * 5
    failed = [check["id"] for check in told["checks"] if check["status"] == "fail"]
    return failed, told["msg"] if status else ""


@pytest.mark.parametrize("vmid", GPU)
def test_granted_nodes_may_be_opened_and_others_not(host, vmid):
    other = 1 - GPU[vmid]
    assert opened(host, vmid, [*granted(vmid), f"/dev/nvidia{other}"]) == {
        **permitted(vmid),
        f"/dev/nvidia{other}": "ENOENT",
    }
    # An unprivileged container makes no node; a privileged one does, and may not open it.
    assert smuggled(host, vmid, other) == ("mknod EPERM" if vmid in UNPRIVILEGED else "open EPERM")


def test_style_cgroup(host):
    assert play(lxc_gpu_style="cgroup")[0] > 0
    for vmid in GPU:
        text = config(host, vmid).partition("\n[")[0]
        assert re.findall(r"^dev\d+: /dev/nvidia", text, re.MULTILINE) == []
        assert f"lxc.cgroup2.devices.allow: c 195:{GPU[vmid]} rw\n" in text
        assert opened(host, vmid, granted(vmid)) == permitted(vmid)
    assert smuggled(host, 200, 1) == "open EPERM"


def test_rule_of_a_major_that_moved_is_repaired_by_a_rerun(host):
    old, new = reboots.with_moved_uvm(host)
    # What this collection began with: nvidia-smi works, CUDA does not.
    uvm = dict.fromkeys(CONTROL[1:], "EPERM")
    # The device rules mean nothing in an unprivileged container.
    broken = {vmid: permitted(vmid) | ({} if vmid in UNPRIVILEGED else uvm) for vmid in GPU}
    for vmid in GPU:
        assert opened(host, vmid, granted(vmid)) == broken[vmid]
    host.check_output("pct stop 203")
    # As an operator types it: words, not YAML's false.
    reserved = [f"-elxc_gpu_{name}" for name in ("style=cgroup", "restart=never", "start=no", "load_modules=no")]
    changed, said = play(*reserved)
    assert changed == 1, said
    assert "take effect at the next restart of 200, 201, 202" in re.sub(r"\s+", " ", said)
    assert opened(host, 200, granted(200)) == broken[200]
    assert host.check_output("pct status 203") == "status: stopped"
    assert play(lxc_gpu_style="cgroup")[0] > 0
    for vmid in GPU:
        assert f" {old}:" not in config(host, vmid).partition("\n[")[0]
        assert f"lxc.cgroup2.devices.allow: c {new}:0 rw\n" in config(host, vmid)
        assert opened(host, vmid, granted(vmid)) == permitted(vmid)
    assert play(lxc_gpu_style="cgroup")[0] == 0


def test_proof_notices_a_wrong_major(host):
    assert proof("cgroup") == ([], "")
    rule = re.search(r"^lxc\.cgroup2.*(?=\nlxc.mount.entry: /dev/nvidia-uvm )", config(host, 200), re.MULTILINE)[0]
    wrong = re.sub(r"c \d+:", "c 400:", rule)
    host.check_output("sed -i %s /etc/pve/lxc/200.conf", f"s/^{rule}$/{wrong}/")
    host.check_output("pct reboot 200")
    assert opened(host, 200, granted(200)) == permitted(200) | {"/dev/nvidia-uvm": "EPERM"}
    failed, message = proof("cgroup")
    assert failed == ["lxc_gpu.200.open./dev/nvidia-uvm"]
    assert rule in message
    assert "fix: run lxc_gpu" in message


def test_style_dev_needs_no_rerun_after_a_major_moved(host):
    assert play()[0] > 0
    for vmid in GPU:
        text = config(host, vmid).partition("\n[")[0]
        assert len(re.findall(r"^dev\d+: /dev/nvidia", text, re.MULTILINE)) == 4
        assert re.findall(r"^lxc\..*(nvidia| 195:| 400:)", text, re.MULTILINE) == []
    reboots.with_moved_uvm(host)
    for vmid in GPU:
        assert opened(host, vmid, granted(vmid)) == permitted(vmid)
    assert proof("dev") == ([], "")


def test_removal_brings_every_byte_back(host):
    assert play(lxc_gpu_containers=[{"vmid": vmid, "state": "absent"} for vmid in GPU])[0] > 0
    host.check_output("diff -r /root/originals /etc/pve/lxc/")
    for vmid in GPU:
        assert set(opened(host, vmid, granted(vmid)).values()) == {"ENOENT"}
    assert smuggled(host, 200, 0) == "open EPERM"
