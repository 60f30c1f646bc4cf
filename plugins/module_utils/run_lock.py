# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who works on a host now: one run at a time, named in a file.

A host is asked in the words of its shell. Python there would cost more than all that is asked, and it may be what a run
has yet to repair.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# A shell may say other things first.
_MARK = "gpuserve.sglang.run_lock:"


@dataclass(frozen=True)
class Holder:
    """A run: ``who`` is user@controller, ``machine`` and ``boot`` identify the controller and its boot.

    ``pid`` is the process there, ``since`` a time in seconds since the epoch.
    """

    who: str
    machine: str
    boot: str
    pid: int
    since: float

    @classmethod
    def read(cls, told: object) -> Holder | None:
        """From data, None when it is no holder."""
        if not isinstance(told, Mapping):
            return None
        try:
            return cls(
                str(told["who"]), str(told["machine"]), str(told["boot"]), int(told["pid"]), float(told["since"])
            )
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def run(self) -> str:
        """The name of the run: no two have the same."""
        return f"{self.machine}/{self.boot}/{self.pid}"

    def as_dict(self) -> dict[str, Any]:
        """As data."""
        return {**asdict(self), "run": self.run}

    def sentence(self) -> str:
        """Why a second run ends."""
        since = time.strftime("%H:%M", time.localtime(self.since))
        return (
            f"{self.who} works on this host since {since} (process {self.pid} there); wait until that run has ended. "
            f"If it is gone, run again with -e run_lock_break=true"
        )


@dataclass(frozen=True)
class Lock:
    """The lock of a host: lines for its shell, each of which tells the lock's text in the end (:func:`text`).

    They end with another status than 0, and with the reason as their errors, where the file cannot be written.
    """

    file: str

    def look(self) -> str:
        """Change nothing."""
        return self._told

    def take(self, mine: Holder) -> str:
        """Take it unless it is taken: of two runs that come at the same time, one finds the other's."""
        link = f'ln "$p" {self._file}'
        return self._beside(mine, f"{{ {link} 2>/dev/null || [ -e {self._file} ] || {link}; }}")

    def take_over(self, mine: Holder, seen: str | None) -> str:
        """Take it from whoever wrote ``seen``, unless somebody else did that before; from anybody if that is None."""
        other = "false" if seen is None else f'[ "$(cat {self._file})" != {shlex.quote(seen)} ]'
        return self._beside(mine, f'{{ {other} || mv -f "$p" {self._file}; }}')

    def give_back(self, mine: Holder) -> str:
        """Remove it if it is this run's."""
        wrote = shlex.quote(f'"run": {json.dumps(mine.run)}')
        return f"if grep -qsF {wrote} {self._file}; then rm -f {self._file}; fi; {self._told}"

    @property
    def _file(self) -> str:
        return shlex.quote(self.file)

    @property
    def _told(self) -> str:
        return f"printf '\\n{_MARK}\\n'; cat {self._file} 2>/dev/null; true"

    def _beside(self, mine: Holder, then: str) -> str:
        """Write it whole beside the lock, as ``$p``, do ``then`` with that, and leave nothing behind."""
        written = shlex.quote(json.dumps(mine.as_dict()))
        return (
            f'p={self._file}.$$; printf %s {written} >"$p" && {then}; '
            f's=$?; rm -f "$p"; [ $s = 0 ] || exit $s; {self._told}'
        )


def text(told: str) -> str | None:
    """The lock's text out of what the shell said, empty where there is none. None: the shell did not come to that."""
    mark = f"{_MARK}\n"
    return told.rpartition(mark)[2].strip() if mark in told else None


def holder(written: str) -> Holder | None:
    """Who wrote the lock's text. What a power loss left half-written is nobody's."""
    try:
        return Holder.read(json.loads(written))
    except ValueError:
        return None
