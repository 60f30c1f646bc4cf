# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says about this machine's GPUs and about where we run. Files only: nothing here wakes a driver.

Each function takes the root of the file system, so that a test can lay out its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
# The flavours of NVIDIA's kernel module.
OPEN = "open"
PROPRIETARY = "proprietary"
NVIDIA_VENDOR = "0x10de"
# PCI class codes of a GPU: VGA controller and 3D controller.
GPU_CLASSES = ("0x0300", "0x0302")


def read(path: Path) -> str:
    """The stripped text of a file, empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def container(root: Path = ROOT) -> str:
    """The kind of container we run in (lxc, docker, ...), or an empty string on a host.

    Source: systemd's CONTAINER_INTERFACE: the manager sets ``container=`` for PID 1, systemd repeats it in
    /run/systemd/container.
    """
    told = read(root / "run/systemd/container")
    if told:
        return told
    for entry in read(root / "proc/1/environ").split("\0"):
        if entry.startswith("container="):
            return entry.partition("=")[2]
    return "docker" if (root / ".dockerenv").exists() else ""


def pci_gpus(root: Path = ROOT) -> list[str]:
    """PCI addresses of the NVIDIA GPUs on the bus (0000:41:00.0), sorted, whether a driver answers for them or not."""
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        if read(device / "vendor") == NVIDIA_VENDOR and read(device / "class").startswith(GPU_CLASSES):
            found.append(device.name)
    return found


@dataclass(frozen=True)
class Running:
    """The loaded NVIDIA module: version and flavour (open or proprietary), both empty when none is loaded."""

    version: str = ""
    flavour: str = ""


def running(file: Path) -> Running:
    """The module that runs, from what it tells in ``file`` (/proc/driver/nvidia/version)."""
    line = re.search(r"^NVRM version:(.*?)\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", read(file), re.MULTILINE)
    if line is None:
        return Running()
    return Running(line[2], OPEN if "Open Kernel Module" in line[1] else PROPRIETARY)


def kernel_driver(root: Path = ROOT) -> str:
    """Version of the loaded NVIDIA kernel module, or an empty string."""
    return running(root / "proc/driver/nvidia/version").version


def majors(root: Path = ROOT) -> dict[str, int]:
    """Major numbers of the character devices that the kernel has now, by name. They change from boot to boot."""
    found: dict[str, int] = {}
    for line in read(root / "proc/devices").partition("Block devices:")[0].splitlines():
        number, _space, name = line.strip().partition(" ")
        if number.isdigit():
            found[name] = int(number)
    return found


def numa_node(address: str, root: Path = ROOT) -> int | None:
    """NUMA node of the PCI device, None where the firmware does not tell."""
    told = read(root / "sys/bus/pci/devices" / address / "numa_node") if address else ""
    return int(told) if told and int(told) >= 0 else None


def process_state(pid: int, root: Path = ROOT) -> str:
    """The kernel's letter for the state of a process (R, S, D, Z ...), or ``gone``."""
    told = read(root / "proc" / str(pid) / "stat")
    return told.rpartition(")")[2].split()[0] if ")" in told else "gone"
