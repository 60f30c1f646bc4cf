# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a file system has room, asked before the first byte."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

ID = "model.space"
UNITS = ("B", "kB", "MB", "GB", "TB")


def amount(size: float) -> str:
    """A size in bytes as a person reads it, in powers of 1000 as disks are sold."""
    unit = 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {UNITS[unit]}"


def judge(folder: Path, missing_bytes: int, missing_files: int, reserve_bytes: int) -> Check:
    """Whether ``folder``, or what it will be made in, has room for what is missing with ``reserve_bytes`` left over."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    found = os.statvfs(there)
    free = found.f_bavail * found.f_frsize
    expected = f"room for {amount(missing_bytes)} in {missing_files} files, and {amount(reserve_bytes)} in reserve"
    actual = f"{folder} has {amount(free)} free"
    if missing_bytes and missing_bytes + reserve_bytes > free:
        short = missing_bytes + reserve_bytes - free
        actual += f"; {amount(missing_bytes)} are missing and {amount(reserve_bytes)} stay in reserve"
        return Check(ID, FAIL, expected, actual, f"free {amount(short)} there or choose another folder")
    # 0 files in all: the file system counts none (btrfs).
    if found.f_files and missing_files > found.f_favail:
        actual = f"{folder} has room for {found.f_favail} more files (inodes); {missing_files} are missing"
        return Check(ID, FAIL, expected, actual, "remove files there or choose another file system")
    return Check(ID, PASS, expected, actual)


def check(folder: Path, missing_bytes: int, missing_files: int, reserve_bytes: int) -> None:
    """Raise SnapshotError unless there is room."""
    judged = judge(folder, missing_bytes, missing_files, reserve_bytes)
    if judged.status == FAIL:
        raise SnapshotError(judged.actual, judged.fix)
