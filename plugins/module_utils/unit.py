# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and the end of its journal."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

_LIMIT_S = 20


@dataclass(frozen=True)
class UnitState:
    """``active`` is ActiveState; ``restarts`` counts how often systemd started it again by itself."""

    active: str
    sub: str
    result: str
    restarts: int

    @property
    def ended(self) -> bool:
        """Its process ended: for good, or until systemd starts it again."""
        return self.active in ("failed", "inactive") or self.sub == "auto-restart"


class UnitError(Exception):
    """systemd could not be asked, or has no such unit."""


def _ask(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnitError(f"{' '.join(command)}: {error}") from error
    # A journal may hold anything, also bytes that are no text.
    return done.stdout.decode("utf-8", "replace")


def state(unit: str) -> UnitState:
    """How the unit stands.

    Raises:
        UnitError: there is no systemd that answers, or it has no such unit.
    """
    told = _ask(["systemctl", "show", unit, "--property=LoadState,ActiveState,SubState,Result,NRestarts"])
    values = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    if "ActiveState" not in values:
        raise UnitError(f"systemd tells nothing of the unit {unit}; see what systemctl status {unit} says")
    if values.get("LoadState") == "not-found":
        # Else it would read as a unit that ended without an error.
        raise UnitError(f"there is no unit {unit}; install it first (role sglang_server)")
    restarts = values.get("NRestarts", "")
    return UnitState(
        values["ActiveState"],
        values.get("SubState", ""),
        values.get("Result", ""),
        int(restarts) if restarts.isdigit() else 0,
    )


def journal_tail(unit: str, lines: int) -> str:
    """The last lines that the unit wrote, or a line that says that there are none."""
    told = _ask(["journalctl", f"--unit={unit}", f"--lines={lines}", "--output=cat", "--no-pager", "--quiet"]).strip()
    return told or f"(the journal has no line of {unit})"
