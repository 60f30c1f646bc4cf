# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Cap, Device, Extras, Gpu
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host import Guest, Guests, State
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.judge import (
    Grant,
    check_driver,
    check_guest,
    check_nodes,
    check_owner,
    check_running,
    check_unique,
    host_nodes,
    judge_denied,
    judge_granted,
    plan,
    written_rule,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.probe import Answer

MAJORS = {"mem": 1, "nvidia": 195, "nvidia-uvm": 511, "nvidia-caps": 508}
GUESTS = Guests(
    "pve1",
    {
        "200": Guest("200", "lxc", "pve1", "/etc/pve/lxc/200.conf"),
        "100": Guest("100", "qemu", "pve1", "/etc/pve/qemu-server/100.conf"),
        "300": Guest("300", "lxc", "pve2", "/etc/pve/nodes/pve2/lxc/300.conf"),
    },
)
UVM = Device("/dev/nvidia-uvm", 511, 0)
RULE = ("dev2: /dev/nvidia-uvm,mode=0666", True)


def verdicts(grant: Grant, text: str | None = "arch: amd64\n") -> dict[str, str]:
    return {check.id: check.status for check in check_guest(grant, GUESTS, text)}


def test_a_container_that_may_be_given_devices() -> None:
    assert verdicts(Grant("200")) == {"lxc_gpu.200.exists": "pass", "lxc_gpu.200.unlocked": "pass"}


@pytest.mark.parametrize(
    ("vmid", "found", "fix"),
    [
        ("999", "no such id; containers here: 200", "correct vmid in lxc_gpu_containers"),
        ("100", "a virtual machine; containers here: 200", "use a container's id in lxc_gpu_containers"),
        ("300", "it is on node pve2; containers here, on pve1: 200", "run this against node pve2"),
    ],
)
def test_an_id_that_is_no_container_of_this_node(vmid: str, found: str, fix: str) -> None:
    (check,) = check_guest(Grant(vmid), GUESTS, None)
    assert (check.id, check.status, check.actual) == (f"lxc_gpu.{vmid}.exists", "fail", found)
    assert check.fix.startswith(fix)


@pytest.mark.parametrize("lock", ["backup", "migrate", "snapshot"])
def test_a_locked_container(lock: str) -> None:
    check = check_guest(Grant("200"), GUESTS, f"arch: amd64\nlock: {lock}\n")[1]
    assert (check.status, check.actual) == ("fail", f"lock: {lock}")
    assert check.fix == f"wait until the {lock} has ended; if none runs any more: pct unlock 200"


def test_a_lock_in_a_snapshot_is_none() -> None:
    assert verdicts(Grant("200"), "arch: amd64\n\n[old]\nlock: backup\n")["lxc_gpu.200.unlocked"] == "pass"


def test_a_template_cannot_start() -> None:
    assert verdicts(Grant("200"), "template: 1\n")["lxc_gpu.200.starts"] == "fail"


def test_a_waiting_change_of_our_devices() -> None:
    check = check_guest(Grant("200"), GUESTS, "dev0: /dev/nvidia0\n\n[pve:pending]\ndelete: dev0\n")[-1]
    assert (check.id, check.status) == ("lxc_gpu.200.pending", "fail")
    assert "pct set 200 --revert delete" in check.fix


def test_an_id_that_is_named_twice() -> None:
    assert check_unique([Grant("200"), Grant("201")]) == []
    (check,) = check_unique([Grant("200"), Grant("201"), Grant("200", gpus=[1])])
    assert (check.status, check.actual) == ("fail", "twice: 200")


def test_driver() -> None:
    assert check_driver(MAJORS, Extras(), "/proc/devices", True).status == "pass"
    missing = check_driver({"mem": 1}, Extras(), "/proc/devices", True)
    assert (missing.status, missing.actual) == ("fail", "none of nvidia, nvidia-uvm: the driver is not loaded")
    assert "run the nvidia_driver step first" in missing.fix


def test_a_driver_that_comes_later_is_not_passed() -> None:
    check = check_driver({"mem": 1}, Extras(), "/proc/devices", False)
    assert check.status == "skipped"
    assert "the nvidia_driver step comes before lxc_gpu" in check.actual


@pytest.mark.parametrize(
    ("grant", "style", "groups", "found"),
    [
        (Grant("200"), "dev", None, {}),
        (Grant("200"), "cgroup", None, {}),
        (Grant("200", mode="0660", gid=44), "dev", {44: "video"}, {"lxc_gpu.200.gid": "pass"}),
        (Grant("200", mode="0660", gid=45), "dev", {44: "video"}, {"lxc_gpu.200.gid": "fail"}),
        (Grant("200", mode="0660", gid=45), "dev", None, {"lxc_gpu.200.gid": "skipped"}),
        (Grant("200", mode="0660"), "cgroup", None, {"lxc_gpu.200.mode": "fail"}),
        (Grant("200", uid=1), "cgroup", None, {"lxc_gpu.200.mode": "fail"}),
        (Grant("200", mode="438"), "dev", None, {"lxc_gpu.200.mode": "fail"}),
        (Grant("200", mode="rw"), "dev", None, {"lxc_gpu.200.mode": "fail"}),
    ],
)
def test_owner_and_mode(grant: Grant, style: str, groups: dict[int, str] | None, found: dict[str, str]) -> None:
    assert {check.id: check.status for check in check_owner(grant, style, groups)} == found


def test_a_missing_group_is_told_with_those_that_fit() -> None:
    (check,) = check_owner(Grant("200", gid=993), "dev", {0: "root", 44: "video", 104: "render"})
    assert "to a group of the container (video 44, render 104)" in check.fix


def test_a_plan_gives_each_container_its_gpus_and_no_others() -> None:
    gpus = [Gpu(0, 0), Gpu(1, 1), Gpu(2, 2)]
    grants = [Grant("200", [0, 2], mode="0660", gid=44), Grant("201", [1]), Grant("202", state="absent")]
    planned = plan(grants, gpus, MAJORS, Extras(), [])
    control = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    assert [d.path for d in planned.grants["200"]] == ["/dev/nvidia0", "/dev/nvidia2", *control]
    assert [d.path for d in planned.grants["201"]] == ["/dev/nvidia1", *control]
    assert planned.grants["202"] == ()
    assert {(d.mode, d.gid) for d in planned.grants["200"]} == {("0660", 44)}
    assert [d.path for d in planned.nodes] == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", *control]


def test_the_mode_of_a_capability_is_not_widened() -> None:
    planned = plan([Grant("200", gid=44)], [Gpu(0, 0)], MAJORS, Extras(caps=True), [Cap(1, "0400")])
    assert [(d.path, d.mode) for d in planned.grants["200"]][-1] == ("/dev/nvidia-caps/nvidia-cap1", "0400")


@pytest.mark.parametrize(("gpus", "wanted"), [([], "all"), ([Gpu(0, 0)], [4])])
def test_a_plan_without_the_gpus_fails(gpus: list[Gpu], wanted: object) -> None:
    planned = plan([Grant("200", wanted)], gpus, MAJORS, Extras(), [])
    assert [check.status for check in planned.checks] == ["fail"]
    assert planned.grants == {}


def test_nodes_of_the_host() -> None:
    right, wrong = check_nodes([Device("/dev/null", 1, 3), Device("/dev/zero", 1, 3)])
    assert (right.status, wrong.status, wrong.actual) == ("pass", "warn", "c 1:5 instead of c 1:3")
    assert wrong.fix == "systemctl start nvidia-device-nodes.service"


def test_host_nodes_are_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    assert host_nodes([Device("/dev/null", 1, 3), Device("/dev/gone", 1, 3)], str(tmp_path)) == ["/dev/null"]


PAIR = (
    "lxc.cgroup2.devices.allow: c 511:0 rw\nlxc.mount.entry: /dev/nvidia-uvm dev/nvidia-uvm none bind,create=file 0 0\n"
)


@pytest.mark.parametrize(
    ("text", "style", "rule"),
    [
        ("dev4: /dev/nvidia-uvm,gid=44\n", "dev", ("dev4: /dev/nvidia-uvm,gid=44", True)),
        ("dev4: /dev/nvidia0\n", "dev", ("dev<n>: /dev/nvidia-uvm,mode=0666", False)),
        ("\n[old]\ndev4: /dev/nvidia-uvm\n", "dev", ("dev<n>: /dev/nvidia-uvm,mode=0666", False)),
        (PAIR.replace("511", "510"), "cgroup", ("lxc.cgroup2.devices.allow: c 511:0 rw", False)),
        (PAIR, "cgroup", (PAIR.strip().replace("\n", " and "), True)),
        ("", "cgroup", (PAIR.strip().replace("\n", " and "), False)),
    ],
)
def test_which_rule_is_written_or_missing(text: str, style: str, rule: tuple[str, bool]) -> None:
    assert written_rule(text, UVM, "proxmox", style, "v2") == rule


def granted(
    said: str, numbers: str = "511:0", mode: str = "0666", owner: str = "0:0", **how: object
) -> tuple[str, str, bool]:
    options = {"own_node": True, "unprivileged": False, "driver_answers": True, **how}
    rule = options.pop("rule", RULE)
    answer = Answer("/dev/nvidia-uvm", said, numbers, mode, owner)
    verdict = judge_granted("200", UVM, answer, rule, **options)  # type: ignore[arg-type]
    return verdict.check.status, verdict.check.fix, verdict.restart


def test_a_granted_node_that_opens() -> None:
    assert granted("opens") == ("pass", "", False)


def test_no_driver_is_a_pass_only_where_it_is_declared() -> None:
    assert granted("ENXIO", driver_answers=False) == ("pass", "", False)
    status, fix, restart = granted("ENXIO")
    assert (status, restart) == ("fail", False)
    assert "look at the driver" in fix


def test_a_driver_that_refuses_is_not_the_rules_fault() -> None:
    status, fix, _ = granted("EIO")
    assert (status, fix) == ("fail", "look at the driver on the host (nvidia-smi there, dmesg | grep NVRM)")


@pytest.mark.parametrize("said", ["EPERM", "absent"])
def test_a_rule_that_is_written_but_not_in_force_needs_a_restart(said: str) -> None:
    numbers = "" if said == "absent" else "511:0"
    assert granted(said, numbers) == ("fail", "the rule is written but not in force; restart container 200", True)


def test_a_rule_that_is_missing_is_named() -> None:
    answer = Answer("/dev/nvidia-uvm", "EPERM", "511:0", "0666", "0:0")
    verdict = judge_granted(
        "200",
        UVM,
        answer,
        ("lxc.cgroup2.devices.allow: c 511:0 rw", False),
        own_node=False,
        unprivileged=False,
        driver_answers=True,
    )
    assert verdict.check.expected == "open() succeeds by lxc.cgroup2.devices.allow: c 511:0 rw"
    assert verdict.check.actual == "EPERM; no such rule in the configuration of 200"
    assert (verdict.check.fix, verdict.restart) == ("run lxc_gpu (--tags lxc_gpu)", False)


@pytest.mark.parametrize("stale", [{"numbers": "510:0"}, {"mode": "0660"}, {"owner": "0:44"}])
def test_a_node_of_an_earlier_boot_or_configuration_needs_a_restart(stale: dict[str, str]) -> None:
    status, fix, restart = granted("opens", **stale)
    assert (status, restart) == ("fail", True)
    assert "it has a node of an earlier boot or configuration" in fix


def test_a_bind_mount_shows_the_hosts_owner_and_is_right() -> None:
    assert granted("opens", mode="0660", owner="65534:65534", own_node=False)[0] == "pass"


def test_owner_and_mode_decide_in_an_unprivileged_container() -> None:
    status, fix, restart = granted("EACCES", mode="0660", owner="65534:65534", own_node=False, unprivileged=True)
    assert (status, restart) == ("fail", False)
    assert fix.startswith("set lxc_gpu_style to dev")


def denied(said: str, inside: str | None = None, cover: str = "") -> tuple[str, str, bool]:
    told = None if inside is None else Answer("/dev/nvidia1", inside)
    verdict = judge_denied("200", "/dev/nvidia1", Answer("/dev/nvidia1", said), told, cover)
    return verdict.check.status, verdict.check.fix, verdict.restart


def test_a_node_that_was_not_granted_is_refused() -> None:
    assert denied("EPERM") == ("pass", "", False)


def test_a_wide_rule_is_named() -> None:
    status, fix, restart = denied("ENXIO", cover="lxc.cgroup2.devices.allow: c 195:* rwm")
    assert (status, restart) == ("fail", False)
    assert "remove the line `lxc.cgroup2.devices.allow: c 195:* rwm`" in fix


def test_a_grant_that_was_taken_back_needs_a_restart() -> None:
    status, fix, restart = denied("opens")
    assert (status, restart) == ("fail", True)
    assert "restart container 200" in fix


def test_an_unprivileged_container_is_kept_out_by_having_no_node() -> None:
    assert denied("ENXIO", inside="absent", cover="lxc.cgroup2.devices.allow: a")[0] == "pass"
    assert denied("ENXIO", inside="ENXIO", cover="lxc.cgroup2.devices.allow: a")[0] == "fail"


def test_running() -> None:
    assert check_running("200", State(True, 7)).status == "pass"
    assert check_running("200", State(False)).fix == "pct start 200"
