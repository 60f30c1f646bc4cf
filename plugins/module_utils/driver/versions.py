# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver versions, and which of a host's packages carry one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

# What NVIDIA's Debian packages of the driver are called. A name alone does not make a member of the driver's set
# (nvidia-container-toolkit is none): its version must be a driver's, too.
PATTERNS = ("*nvidia*", "libcuda*", "libnv*", "cuda-drivers*", "libxnvctrl*")
# What a container must not have: it would build, or be, a kernel module for a kernel that is not the container's.
KERNEL_PATTERNS = (
    "dkms",
    "*-dkms",
    "nvidia-kernel-*",
    "firmware-nvidia-*",
    "nvidia-firmware*",
    "linux-headers-*",
    "linux-image-*",
    "proxmox-headers-*",
    "pve-headers-*",
)
PINNING = "nvidia-driver-pinning-"
_DRIVER = re.compile(r"\d{3}\.\d+(?:\.\d+)?")


def upstream(version: str) -> str:
    """The upstream part of a Debian version: ``1:580.95.05-1`` is ``580.95.05``."""
    version = version.partition(":")[2] or version
    return version.rpartition("-")[0] or version


def exact(wanted: str) -> bool:
    """Whether ``wanted`` names one version, and not a branch of them."""
    return "." in wanted


def well_formed(wanted: str) -> bool:
    """Whether ``wanted`` is a driver's version (580.95.05) or branch (580)."""
    return re.fullmatch(r"\d{3}(?:\.\d+(?:\.\d+)?)?", wanted) is not None


def order(version: str) -> tuple[int, ...]:
    """A sort key of driver versions."""
    return tuple(int(part) for part in version.split("."))


def branch(version: str) -> str:
    """The branch of a version: 580 of 580.95.05."""
    return version.partition(".")[0]


def fits(version: str, wanted: str) -> bool:
    """Whether ``version`` is the wanted one, or of the wanted branch."""
    return version == wanted if exact(wanted) else branch(version) == wanted


def named_like(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the shell patterns fits the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_member(name: str, version: str) -> bool:
    """Whether a package of this name and Debian version belongs to the driver's set."""
    return named_like(name, PATTERNS) and _DRIVER.fullmatch(upstream(version)) is not None
