# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device nodes on a host: which there are, which a container needs, and what the kernel says of their numbers.

Sources: major 195 and its minors 254 (nvidia-modeset) and 255 (nvidiactl) are NVIDIA's own in Linux' list of allocated
devices (Documentation/admin-guide/devices.txt); the majors of nvidia-uvm and nvidia-caps are handed out by the kernel
at load time and differ from boot to boot, so that they are only ever read from the devices file (/proc/devices).
The driver's README, chapter "Frequently asked questions" names the files under /proc/driver/nvidia.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NVIDIA_MAJOR = 195
NODE_PREFIX = "/dev/nvidia"
CAPS_FOLDER = "/dev/nvidia-caps"
# The kernel hands out majors from these ranges (include/linux/fs.h, CHRDEV_MAJOR_DYN_END and CHRDEV_MAJOR_DYN_EXT_END).
DYNAMIC_MAJORS = (range(234, 255), range(384, 512))


class LxcError(Exception):
    """What stops the work, told for an operator: what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Device:
    """A character device node: where it is, its numbers, and who may open it inside the container.

    ``mode`` is four octal digits (``0666``); ``uid`` and ``gid`` are ids of the guest.
    """

    path: str
    major: int
    minor: int
    mode: str = "0666"
    uid: int = 0
    gid: int = 0
    type: str = "c"

    @property
    def numbers(self) -> str:
        """``c 195:0``, as a device rule names it."""
        return f"{self.type} {self.major}:{self.minor}"


def fixed_minor(path: str) -> int | None:
    """The minor that a node of NVIDIA's has by its name; None for a name that is not known."""
    named = {"nvidiactl": 255, "nvidia-modeset": 254, "nvidia-uvm": 0, "nvidia-uvm-tools": 1}
    match = re.fullmatch(r"/dev/(?:nvidia(\d+)|nvidia-caps/nvidia-cap(\d+)|(nvidia[a-z-]+))", path)
    if not match:
        return None
    number = match.group(1) or match.group(2)
    return int(number) if number else named.get(match.group(3))


def is_dynamic(major: int) -> bool:
    """Is it a major that the kernel hands out at load time?"""
    return any(major in numbers for numbers in DYNAMIC_MAJORS)


@dataclass(frozen=True)
class Gpu:
    """One GPU of the host. ``index`` is nvidia-smi's (order of the PCI bus), ``minor`` that of /dev/nvidia<minor>."""

    index: int
    minor: int
    uuid: str = ""
    pci_address: str = ""


def parse_devices(text: str) -> dict[str, int]:
    """The character section of /proc/devices: driver name -> major. The first major of a name counts."""
    found: dict[str, int] = {}
    section = ""
    for line in text.splitlines():
        if line.endswith("devices:"):
            section = line.split()[0].lower()
            continue
        match = re.match(r"\s*(\d+)\s+(\S+)\s*$", line)
        if match and section == "character":
            found.setdefault(match.group(2), int(match.group(1)))
    return found


def read_devices(path: str) -> dict[str, int]:
    """The majors in the devices file at ``path``. Raises LxcError when it cannot be read."""
    try:
        return parse_devices(Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise LxcError(
            f"the list of device majors {path} cannot be read ({error.strerror}); set lxc_gpu_devices_file to the "
            "kernel's list, which is /proc/devices on a real host"
        ) from error


def nvidia_majors(majors: Mapping[str, int]) -> dict[str, int]:
    """Those of the kernel's majors that NVIDIA's modules hold."""
    return {name: major for name, major in majors.items() if name.startswith("nvidia")}


def find_gpus(proc_dir: str) -> list[Gpu]:
    """The GPUs that the loaded driver lists under ``proc_dir`` (/proc/driver/nvidia), in nvidia-smi's order."""
    found = []
    for folder in Path(proc_dir, "gpus").glob("*"):
        try:
            text = (folder / "information").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        parts = [line.partition(":") for line in text.splitlines()]
        fields = {part[0].strip(): part[2].strip() for part in parts}
        minor = fields.get("Device Minor", "")
        if minor.isdigit():
            found.append((folder.name.lower(), int(minor), fields.get("GPU UUID", "")))
    return [Gpu(index, minor, uuid, address) for index, (address, minor, uuid) in enumerate(sorted(found))]


def _pci_address(text: str) -> str:
    """``0000:c1:00.0`` from any of ``00000000:C1:00.0``, ``c1:00.0`` and ``0000:C1:00.0``; else empty."""
    match = re.fullmatch(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", text.strip().lower())
    return f"{int(match.group(1) or '0', 16):04x}:{match.group(2)}" if match else ""


def choose_gpus(wanted: object, gpus: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that a grant names: ``all``, or a list of indices, UUIDs and PCI addresses.

    Raises LxcError with the GPUs that there are when one of them is not.
    """
    if wanted == "all":
        return list(gpus)
    if not isinstance(wanted, (list, tuple)) or not wanted:
        raise LxcError(f"gpus is {wanted!r}; give all, or a list of indices, UUIDs or PCI addresses such as [0, 1]")
    chosen = []
    for item in wanted:
        text = str(item)
        address = _pci_address(text)
        hits = [
            gpu
            for gpu in gpus
            if (text.isdigit() and gpu.index == int(text))
            or (gpu.uuid and gpu.uuid.lower() == text.lower())
            or (address and _pci_address(gpu.pci_address) == address)
        ]
        if not hits:
            have = ", ".join(
                " ".join(part for part in (str(gpu.index), gpu.uuid, gpu.pci_address) if part) for gpu in gpus
            )
            raise LxcError(f"gpus names {text!r}, but this host has {have or 'no GPU'}; use one of those, or all")
        chosen += [gpu for gpu in hits if gpu not in chosen]
    return chosen


@dataclass(frozen=True)
class Extras:
    """Nodes beyond what CUDA needs: ``modeset`` (display), ``caps`` (MIG)."""

    modeset: bool = False
    caps: bool = False


def required_drivers(extras: Extras) -> dict[str, tuple[str, ...]]:
    """Which names in the devices file must be there, each with the names it goes by in one driver or another."""
    needed = {"nvidia": ("nvidia", "nvidia-frontend"), "nvidia-uvm": ("nvidia-uvm",)}
    if extras.caps:
        needed["nvidia-caps"] = ("nvidia-caps",)
    return needed


def missing_drivers(majors: Mapping[str, int], extras: Extras) -> list[str]:
    """The drivers whose majors the kernel does not list, that is, that are not loaded."""
    return [name for name, aliases in required_drivers(extras).items() if not any(a in majors for a in aliases)]


def _major(majors: Mapping[str, int], aliases: Sequence[str]) -> int:
    return next(majors[alias] for alias in aliases if alias in majors)


@dataclass(frozen=True)
class Cap:
    """A capability of MIG: the minor of its node, and the mode that the driver gives it, four octal digits."""

    minor: int
    mode: str


def find_caps(proc_dir: str) -> list[Cap]:
    """The nodes /dev/nvidia-caps/nvidia-cap<minor> that control MIG, from the driver's own files."""
    found = []
    for name in ("config", "monitor"):
        try:
            text = Path(proc_dir, "capabilities", "mig", name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = dict(re.findall(r"(\w+):\s*(\d+)", text))
        if {"DeviceFileMinor", "DeviceFileMode"} <= set(fields):
            found.append(Cap(int(fields["DeviceFileMinor"]), f"{int(fields['DeviceFileMode']):04o}"))
    return found


def control_devices(majors: Mapping[str, int], extras: Extras, caps: Sequence[Cap] = ()) -> list[Device]:
    """The nodes that each container with a GPU needs, whichever GPU it is. Needs the drivers' majors."""
    needed = required_drivers(extras)
    gpu_major, uvm = _major(majors, needed["nvidia"]), _major(majors, needed["nvidia-uvm"])
    found = [
        Device("/dev/nvidiactl", gpu_major, 255),
        Device("/dev/nvidia-uvm", uvm, 0),
        Device("/dev/nvidia-uvm-tools", uvm, 1),
    ]
    if extras.modeset:
        found.append(Device("/dev/nvidia-modeset", gpu_major, 254))
    if extras.caps:
        major = _major(majors, needed["nvidia-caps"])
        found += [Device(f"{CAPS_FOLDER}/nvidia-cap{cap.minor}", major, cap.minor, cap.mode) for cap in caps]
    return found


def gpu_device(majors: Mapping[str, int], gpu: Gpu) -> Device:
    """The node of one GPU."""
    return Device(f"/dev/nvidia{gpu.minor}", _major(majors, required_drivers(Extras())["nvidia"]), gpu.minor)


def node_state(device: Device) -> str:
    """What is at the device's path on this host: empty when it is that node, else what is wrong. Creates nothing."""
    try:
        found = Path(device.path).stat()
    except OSError:
        return "missing"
    if not stat.S_ISCHR(found.st_mode):
        return "not a character device"
    numbers = f"c {os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return "" if numbers == device.numbers else f"{numbers} instead of {device.numbers}"
