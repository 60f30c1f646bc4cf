# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was looked at, what was expected, what was found, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

PASS = "pass"
WARN = "warn"
FAIL = "fail"
# Not looked at, or not provable here. Never to be counted as passed.
SKIPPED = "skipped"
STATUSES = (PASS, WARN, FAIL, SKIPPED)


@dataclass(frozen=True)
class Check:
    """One rule, applied once.

    ``id`` is stable and dotted (``drafter.hidden_size``). ``fix`` is one instruction, empty only when nothing is to do.
    ``source`` says where the rule comes from (SGLang file and version, a vendor document).
    For a skipped check ``actual`` is the reason why it was not looked at.
    """

    id: str
    status: str
    expected: str
    actual: str
    fix: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"check {self.id}: status {self.status!r} is none of {', '.join(STATUSES)}")
        if self.status in (WARN, FAIL) and not self.fix:
            raise ValueError(f"check {self.id}: a {self.status} without a fix leaves the operator alone")

    def sentence(self) -> str:
        """The check as an operator reads it."""
        text = f"[{self.id}] expected {self.expected}; found {self.actual}"
        return f"{text}; fix: {self.fix}" if self.fix else text


def as_dicts(checks: Sequence[Check]) -> list[dict[str, str]]:
    """The checks as a module returns them."""
    return [asdict(check) for check in checks]


def from_dicts(told: object) -> list[Check]:
    """The checks out of what a module returned.

    Raises:
        ValueError: these are no checks.
    """
    if not isinstance(told, Sequence) or isinstance(told, str):
        raise ValueError(f"expected a list of checks, not {type(told).__name__}")
    try:
        return [Check(**{str(name): str(value) for name, value in item.items()}) for item in told]
    except (TypeError, AttributeError) as error:
        raise ValueError(f"expected a list of checks: {error}") from error


def summary(subject: str, checks: Sequence[Check]) -> str:
    """One sentence: how many checks of each status, so that skipped ones are seen."""
    counts = {status: sum(check.status == status for check in checks) for status in STATUSES}
    words = ((PASS, "passed"), (WARN, "warned"), (FAIL, "failed"), (SKIPPED, "not checked"))
    told = [f"{counts[status]} {word}" for status, word in words if counts[status]]
    return f"{subject}: {', '.join(told) if told else 'nothing was checked'}"


def failing(checks: Sequence[Check], fail_on: str = FAIL) -> list[Check]:
    """The checks that stop a run. ``fail_on`` is fail, warn (warnings stop it too) or never."""
    stopping = {"fail": (FAIL,), "warn": (FAIL, WARN), "never": ()}[fail_on]
    return [check for check in checks if check.status in stopping]


def failure_message(subject: str, checks: Sequence[Check], fail_on: str = FAIL) -> str:
    """The text a failing module shows: the summary, then a line for each check that stopped it."""
    lines = [check.sentence() for check in failing(checks, fail_on)]
    return "\n".join([summary(subject, checks), *lines])


def table(checks: Sequence[Check]) -> list[str]:
    """A line for each check: status, id and what was found, in columns, and what to do about a warning."""
    widest = max((len(check.id) for check in checks), default=0)
    # A failure ends the run, which tells its fix with all that goes with it.
    fixes = [f"; fix: {check.fix}" if check.status == WARN and check.fix else "" for check in checks]
    return [f"{check.status:<8}{check.id:<{widest + 2}}{check.actual}{fix}" for check, fix in zip(checks, fixes)]


def not_checked(checks: Sequence[Check]) -> list[str]:
    """A line for each reason why something was not looked at, with the checks that it goes for, in their order."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.status == SKIPPED:
            reasons.setdefault(check.actual, []).append(check.id)
    return [f"{', '.join(dict.fromkeys(ids))} not checked: {reason}" for reason, ids in reasons.items()]
