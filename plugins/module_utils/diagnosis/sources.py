# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of a journal tells of a failure."""

from __future__ import annotations

from .. import unit
from .log import Log, read

# A device-side assertion alone can write thousands of lines.
_LINES = 20_000


def of_run(name: str, run: str) -> Log:
    """What one run of the unit ``name`` wrote, and what systemd said of it; of any run when ``run`` is empty.

    Raises:
        UnitError: there is no journal that could be asked.
    """
    unit.flush_journal()
    return read(unit.journal(name, run, _LINES))


def of_unit(name: str, back: int) -> Log:
    """The log of a run of the unit: 0 is the last one, 1 the one before it.

    Raises:
        UnitError: there is no such unit or no such run, or no systemd that answers.
    """
    last = unit.state(name).run
    if back == 0:
        return of_run(name, last)
    runs = [run for run in unit.runs(name) if run != last]
    if not 0 < back <= len(runs):
        raise unit.UnitError(
            f"the journal knows {len(runs)} runs of {name} before the last one; give a run from 0 to {len(runs)}"
        )
    return of_run(name, runs[-back])
