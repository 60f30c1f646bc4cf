# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import nodes
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.child import DONE, TIMEOUT, Report, run_probe
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.probes import nodes as probe

UVM = "/dev/nvidia-uvm"
MAJORS = {"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 511}


def judge(error: int, *, driver: str = "required", container: str = "lxc", **facts: object) -> Check:
    record = {"kind": "node", "path": UVM, "error": error, "character": True, "major": 511, "minor": 0, **facts}
    report = Report(({"kind": "start", "path": UVM}, record), DONE, "", 0.1)
    (check,) = nodes.judge([UVM], report, driver=driver, majors=MAJORS, container=container)
    return check


def test_a_node_that_opens_passes() -> None:
    check = judge(0)
    assert (check.id, check.status) == ("node.nvidia-uvm", "pass")


@pytest.mark.parametrize(
    ("error", "actual", "fix"),
    [
        (errno.ENOENT, "does not exist", "role lxc_gpu"),
        (errno.EPERM, "EPERM: the device cgroup refuses character device 511:0", "devices.allow: c 511:0 rw"),
        (errno.EACCES, "EACCES: owner or mode", "gid and mode"),
        (errno.ENXIO, "ENXIO: access is permitted but no driver answers", "role nvidia_driver"),
        (errno.ENODEV, "ENODEV: access is permitted but no driver answers", "role nvidia_driver"),
        (errno.EIO, "EIO: the driver could not initialise", "kernel log"),
        (errno.EBUSY, "EBUSY: Device or resource busy", "kernel log"),
    ],
)
def test_each_errno_has_its_own_words(error: int, actual: str, fix: str) -> None:
    check = judge(error)
    assert check.status == "fail"
    assert actual in check.actual
    assert fix in check.fix


@pytest.mark.parametrize("error", [errno.ENXIO, errno.ENODEV])
def test_a_declared_lab_skips_what_only_a_driver_could_answer(error: int) -> None:
    check = judge(error, driver="absent")
    assert check.status == "skipped"
    assert "driver: absent was declared" in check.actual


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOENT, errno.EACCES])
def test_a_declared_lab_still_fails_without_permission(error: int) -> None:
    assert judge(error, driver="absent").status == "fail"


def test_a_host_is_told_other_fixes_than_a_container() -> None:
    assert "container" not in judge(errno.EPERM, container="").fix
    assert judge(errno.ENOENT, container="").fix.startswith("run nvidia-modprobe -c 0 -u")


def test_a_regular_file_in_the_nodes_place_fails() -> None:
    check = judge(0, character=False)
    assert check.status == "fail"
    assert "not a device node" in check.actual


@pytest.mark.parametrize("error", [0, errno.ENXIO])
def test_a_major_of_an_earlier_boot_fails(error: int) -> None:
    check = judge(error, major=507)
    assert check.status == "fail"
    assert check.actual == "the node has major 507, the driver has 511 since this boot"


def test_the_node_at_which_the_driver_hangs_fails_and_the_rest_is_not_checked() -> None:
    paths = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1"]
    records = (
        {"kind": "start", "path": paths[0]},
        {"kind": "node", "path": paths[0], "error": 0, "character": True, "major": 195, "minor": 255},
        {"kind": "start", "path": paths[1]},
    )
    checks = nodes.judge(paths, Report(records, TIMEOUT, "", 5.0), driver="required", majors=MAJORS, container="")
    assert [check.status for check in checks] == ["pass", "fail", "skipped"]
    assert checks[1].actual == "no answer within 5 s"


def test_default_nodes() -> None:
    assert nodes.default_nodes(2) == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"]


def test_the_probe_on_real_files(tmp_path: Path) -> None:
    empty = tmp_path / "nvidia-uvm"
    empty.touch()
    paths = ["/dev/null", str(empty), str(tmp_path / "nvidia0")]
    report = run_probe(probe, paths, interpreter=sys.executable, timeout=20)
    found = {record["path"]: (record["error"], record["character"]) for record in report.of("node")}
    assert found == {paths[0]: (0, True), paths[1]: (0, False), paths[2]: (errno.ENOENT, False)}
    assert nodes.missing(report.of("node")) == [paths[2]]


def test_the_probe_on_a_real_node_without_a_driver(tmp_path: Path) -> None:
    node = tmp_path / "nvidia0"
    try:
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(195, 0))
    except PermissionError:
        pytest.skip("making a device node needs root")
    (record,) = run_probe(probe, [str(node)], interpreter=sys.executable, timeout=20).of("node")
    # EPERM in a container whose device cgroup does not grant 195.
    assert record["error"] in (errno.ENXIO, errno.EPERM)
    assert (record["major"], record["minor"]) == (195, 0)
