# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host of containers has of its own, so that its device nodes come back at each boot: is it in place?"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from .. import unit


@dataclass(frozen=True)
class HostFile:
    """``mode`` is four octal digits."""

    path: str
    content: str
    mode: str

    def in_place(self) -> bool:
        """Whether the file is root's and holds just that."""
        path = Path(self.path)
        try:
            told = path.lstat()
            same = path.read_bytes() == self.content.encode()
        except OSError:
            return False
        wanted = stat.S_IFREG | int(self.mode, 8)
        return same and (told.st_mode, told.st_uid) == (wanted, 0)


@dataclass(frozen=True)
class HostPart:
    """Files, and the unit that systemd starts at each boot."""

    files: tuple[HostFile, ...]
    unit: str

    def in_place(self) -> bool:
        """Whether nothing of it is missing, changed, or not yet read by systemd."""
        try:
            state = unit.state(self.unit)
        except unit.UnitError:
            return False
        return state.enabled and not state.stale and all(file.in_place() for file in self.files)
