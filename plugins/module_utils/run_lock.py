# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who works on a host now: one run at a time, named in a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


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
    """The lock of a host."""

    file: Path

    def holder(self) -> Holder | None:
        """Who holds it now. What a power loss left half-written is nobody's."""
        try:
            return Holder.read(json.loads(self.file.read_bytes()))
        except (FileNotFoundError, ValueError):
            return None

    def take(self, mine: Holder, instead_of: str, break_it: bool, only_look: bool) -> Holder | None:
        """Take it. Returns the other holder when there is one that stays. Raises OSError."""
        held = self.holder()
        if held is not None and held.run not in (mine.run, instead_of) and not break_it:
            return held
        if only_look or (held is not None and held.run == mine.run):
            return None
        partial = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        partial.write_text(json.dumps(asdict(mine)), encoding="utf-8")
        try:
            if held is None and not self.file.exists():
                # Of two runs that come at the same time, one finds the other's.
                os.link(partial, self.file)
            else:
                partial.replace(self.file)
        except FileExistsError:
            return self.holder()
        finally:
            partial.unlink(missing_ok=True)
        return None

    def give_back(self, mine: Holder) -> None:
        """Remove it if it is this run's. Raises OSError."""
        held = self.holder()
        if held is not None and held.run == mine.run:
            self.file.unlink(missing_ok=True)
