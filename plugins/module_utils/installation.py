# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine's installation from request to accepted venv: its pins are judged before, its files after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import debian, pins
from .checks import Check, failing
from .engine.installation import survey
from .engine.packages import site_packages_of
from .engine.source import read_engine
from .python import siblings, venv
from .python.state import read_record


class NotAcceptable(Exception):
    """Checks failed; nothing was changed, or the venv was left unfinished so that the next run judges it again.

    ``stopping`` are those of ``checks`` that failed and are not ignored.
    """

    def __init__(self, checks: Sequence[Check], stopping: Sequence[Check]) -> None:
        super().__init__()
        self.checks, self.stopping = checks, stopping


@dataclass(frozen=True)
class Wanted:
    """What is asked for.

    ``ignore`` has the ids of checks that may fail. ``keep`` is how many other engines stay beside this one (None: all).
    ``system_packages`` are looked for, not installed. ``names`` maps the names of this module's parameters to those
    that the operator knows them by.
    """

    request: venv.Request
    ignore: Sequence[str] = ()
    keep: int | None = None
    system_packages: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """``removed`` are other engines that were (in check mode: would be) removed, ``kept`` those that are in use."""

    outcome: venv.Outcome
    checks: Sequence[Check]
    system_packages_missing: Sequence[str]
    removed: Sequence[Path]
    kept: Sequence[siblings.Sibling]

    @property
    def changed(self) -> bool:
        return self.outcome.changed or bool(self.removed)


def converge(wanted: Wanted, check_mode: bool = False) -> Result:
    """Bring the venv to what is asked for, if that can work.

    Raises:
        NotAcceptable: a check failed.
        VenvError: the venv could not be brought there.
        DebianError: the distribution's packages could not be looked at.
    """
    asked = _pins(wanted)
    checks = asked.checks()
    _stop(checks, wanted.ignore)
    missing = debian.missing(wanted.system_packages)
    request = wanted.request
    if request.lock_text is None:
        request = replace(request, constraints=(*request.constraints, *asked.constraints()))
    after: list[Check] = []

    def accept(path: Path) -> None:
        if not asked.asks_for_engine:
            return
        after.extend(survey(read_engine(site_packages_of(path))).checks())
        _stop(after, wanted.ignore)

    outcome = venv.converge(request, check_mode, accept)
    # What the files tell counts more than what the request told.
    checks = after or checks
    old = [] if wanted.keep is None else _old(request.path, wanted.keep)
    removed = [sibling.path for sibling in old if sibling.used_by is None]
    if not check_mode:
        for path in removed:
            siblings.remove(path)
    return Result(outcome, checks, missing, removed, [sibling for sibling in old if sibling.used_by is not None])


def _stop(checks: Sequence[Check], ignore: Sequence[str]) -> None:
    stopping = [check for check in failing(checks) if check.id not in ignore]
    if stopping:
        raise NotAcceptable(checks, stopping)


def _old(path: Path, keep: int) -> list[siblings.Sibling]:
    record = read_record(path)
    # Until the wanted one is there, every other one may be the way back.
    return siblings.superfluous(path, pins.ENGINE, keep) if record is not None and record.finished else []


def _pins(wanted: Wanted) -> pins.Pins:
    request = wanted.request
    if request.lock_text is not None:
        where = "lock" if request.lock is not None else "wheelhouse"
        return pins.of_lock(request.locked, wanted.names.get(where, where))
    return pins.of_requirements(
        {
            wanted.names.get(name, name): getattr(request, name)
            for name in ("requirements", "requirements_no_deps", "constraints")
        }
    )
