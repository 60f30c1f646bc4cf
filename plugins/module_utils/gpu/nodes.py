# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the device nodes: present, permitted, and answered by a driver.

Source of the errnos, seen with open(2) in a privileged LXC container: a device cgroup that refuses answers EPERM; a
permitted node without a driver answers ENXIO; mknod succeeds without any rule, so a node's existence proves nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, Check
from .child import Report

# The driver's choice (nvidia_driver: absent in a lab) and what it says in an output.
DRIVER_REQUIRED = "required"
DRIVER_ABSENT = "absent"
DECLARED_ABSENT = "driver: absent was declared, this machine has no NVIDIA driver"

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
SOURCE = "NVIDIA driver README, 'Which device nodes does the driver use'; Proxmox VE PVE/LXC.pm (devN)"


def default_nodes(count: int) -> list[str]:
    """The nodes that CUDA needs for ``count`` GPUs; not nvidia-uvm-tools (profilers) and nvidia-caps (MIG)."""
    return [*CONTROL_NODES, *(f"/dev/nvidia{index}" for index in range(count))]


def judge(
    paths: Sequence[str], report: Report, *, driver: str, majors: Mapping[str, int], container: str
) -> list[Check]:
    """One check for each expected node. ``majors`` is /proc/devices; ``container`` is empty on a host."""
    known = {str(record["path"]): record for record in report.of("node")}
    touched = [str(record["path"]) for record in report.of("start")]
    return [
        _judge_one(path, known[path], driver, majors, container)
        if path in known
        else _unanswered(path, path in touched, report)
        for path in paths
    ]


def missing(opened: Sequence[Mapping[str, Any]]) -> list[str]:
    """Paths of the nodes that do not exist, from the probe's records."""
    return [str(node["path"]) for node in opened if node["error"] == errno.ENOENT]


def answered(opened: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a driver answers at least one of the nodes, from the probe's records."""
    return any(node["character"] and node["error"] == 0 for node in opened)


def _id(path: str) -> str:
    return f"node.{PurePosixPath(path).name}"


def _unanswered(path: str, touched: bool, report: Report) -> Check:
    expected = f"open({path}) succeeds"
    if not touched:
        return Check(_id(path), SKIPPED, expected, f"not tried: {report.trouble()} at an earlier node", source=SOURCE)
    fix = "the driver hangs: read the kernel log on the host (dmesg | grep -i nvrm) and reboot it"
    return Check(_id(path), FAIL, expected, report.trouble(), fix, SOURCE)


def _judge_one(path: str, node: Mapping[str, Any], driver: str, majors: Mapping[str, int], container: str) -> Check:
    expected = f"open({path}) succeeds"
    code = int(node["error"])
    stale = _stale_major(path, node, majors)

    def failed(actual: str, fix: str) -> Check:
        return Check(_id(path), FAIL, expected, actual, fix, SOURCE)

    if code == errno.ENOENT:
        return failed("the node does not exist", _missing_fix(container))
    if not node["character"] and code == 0:
        return failed(
            "the path is not a device node (an optional bind mount leaves an empty file if the host has no node)",
            f"remove {path}; {_missing_fix(container)}",
        )
    if stale:
        return failed(stale, _restart_fix(path, container))
    if code == 0:
        return Check(_id(path), PASS, expected, f"it opened (character device {_numbers(node)})", source=SOURCE)
    name = errno.errorcode.get(code, str(code))
    if code == errno.EPERM:
        return failed(
            f"EPERM: the device cgroup refuses character device {_numbers(node)}", _permit_fix(path, node, container)
        )
    if code == errno.EACCES:
        return failed(
            "EACCES: owner or mode of the node forbid it",
            f"give this user access to {path} (role lxc_gpu sets gid and mode of the node inside the container)",
        )
    if code in (errno.ENXIO, errno.ENODEV):
        if driver == DRIVER_ABSENT:
            return Check(
                _id(path),
                SKIPPED,
                expected,
                f"{name}: permitted, no driver behind it; {DECLARED_ABSENT}",
                source=SOURCE,
            )
        return failed(
            f"{name}: access is permitted but no driver answers for character device {_numbers(node)}",
            "load the driver on the host (role nvidia_driver); if it is loaded, this GPU is gone: see the kernel log",
        )
    if code == errno.EIO:
        return failed(
            "EIO: the driver could not initialise this GPU",
            "read the reason in the host's kernel log (dmesg | grep -i -e nvrm -e xid) and reboot the host",
        )
    return failed(f"{name}: {os.strerror(code)}", "read the kernel log on the host (dmesg | grep -i nvrm)")


def _numbers(node: Mapping[str, Any]) -> str:
    return f"{node.get('major')}:{node.get('minor')}"


def _stale_major(path: str, node: Mapping[str, Any], majors: Mapping[str, int]) -> str:
    """A node made with the major number of an earlier boot leads to another driver, or to none."""
    wanted = majors.get("nvidia-uvm") if PurePosixPath(path).name.startswith("nvidia-uvm") else majors.get("nvidia")
    if not node["character"] or wanted is None or not PurePosixPath(path).name.startswith("nvidia"):
        return ""
    if PurePosixPath(path).parent.name == "nvidia-caps" or node["major"] == wanted:
        return ""
    return f"the node has major {node['major']}, the driver has {wanted} since this boot"


def _missing_fix(container: str) -> str:
    if container:
        return "create it on the host (nvidia-modprobe -c 0 -u), run role lxc_gpu there and restart the container"
    return "run nvidia-modprobe -c 0 -u (role lxc_gpu does it at each boot, before the containers start)"


def _restart_fix(path: str, container: str) -> str:
    if container:
        return "run role lxc_gpu and restart the container, so that its nodes are made anew from the host's"
    return f"remove {path} and run nvidia-modprobe -c 0 -u"


def _permit_fix(path: str, node: Mapping[str, Any], container: str) -> str:
    rule = f"c {_numbers(node)} rw"
    if container:
        return (
            f"on the host run role lxc_gpu, which grants {path} (a dev[n] line, or lxc.cgroup2.devices.allow: {rule}), "
            "and restart the container"
        )
    return f"allow '{rule}' for this unit or session (DeviceAllow={path} rw)"
