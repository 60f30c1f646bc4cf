# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has besides packages: nouveau off, module options, and the daemon that keeps GPUs initialised."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .sources import HEAD

MODPROBE = Path("etc/modprobe.d/gpuserve-nvidia.conf")
_RAMDISKS = ("update-initramfs", "-u", "-k", "all")
_LIMIT_S = 20


def modprobe(options: Mapping[str, Mapping[str, str]]) -> str:
    """The text of the file for modprobe (modprobe.d(5))."""
    lines = ["blacklist nouveau", "options nouveau modeset=0"]
    for module, wanted in sorted(options.items()):
        if wanted:
            lines.append(" ".join(["options", module, *(f"{name}={value}" for name, value in sorted(wanted.items()))]))
    return HEAD + "\n".join(lines) + "\n"


def ramdisks_command() -> list[str]:
    """What makes the initial ramdisks anew: they hold a copy of modprobe's files. Empty on a machine without any."""
    return list(_RAMDISKS) if shutil.which(_RAMDISKS[0]) else []


def runs_at_boot_and_now(unit: str, now: bool) -> bool:
    """Whether systemd has the unit enabled, and with ``now`` also active. False where there is no systemd to ask."""
    command = ["systemctl", "show", "--property=UnitFileState,ActiveState", unit]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return told.get("UnitFileState") == "enabled" and (not now or told.get("ActiveState") == "active")
