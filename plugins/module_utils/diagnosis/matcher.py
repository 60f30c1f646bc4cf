# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an engine ended, out of its log."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from .catalogue import SIGNATURES
from .log import Line, Log, Raised, first_exception, last_lines
from .signature import CAUSE, GENERAL, HINT, STOP, Signature

# A cause explains more than what generally happens after it; a hint says what is wrong with a server that serves.
_RANK = {CAUSE: 0, STOP: 0, GENERAL: 1, HINT: 2}
_LAST_LINES = 8
_LONGEST_SEEN = 300
_TITLE = {CAUSE: "Cause", STOP: "No failure", GENERAL: "What happened", HINT: "It serves, but"}


@dataclass(frozen=True)
class Finding:
    """A signature that was found. ``number`` and ``seen`` are the line of the log in which its match ends."""

    id: str
    kind: str
    cause: str
    fix: str
    source: str
    versions: str
    number: int
    seen: str


@dataclass(frozen=True)
class Diagnosis:
    """``finding`` is None when the catalogue knows nothing of it; ``others`` are the findings that it outranks."""

    finding: Finding | None
    others: tuple[Finding, ...]
    exception: Raised | None
    last_lines: tuple[str, ...]
    unreadable: int

    def story(self) -> str:
        """All of it for an operator, in lines."""
        told = []
        if self.finding is not None:
            told += [
                f"{_TITLE[self.finding.kind]} [{self.finding.id}]: {self.finding.cause}",
                f"Fix: {self.finding.fix}",
            ]
            told.append(f"Seen: {self.finding.seen}")
        elif self.exception is not None:
            told.append(
                "Cause: none of the known ones. The exception below came first; what follows it is its consequence."
            )
        else:
            told.append("The log tells of no failure.")
        told += [f"Besides [{other.id}]: {other.cause}" for other in self.others if other.kind == HINT]
        if self.exception is not None:
            where = f" ({self.exception.where})" if self.exception.where else ""
            told.append(f"First exception: {self.exception.text}{where}")
        if self.unreadable:
            told.append(f"{self.unreadable} lines of the log were no text and are left out.")
        if self.last_lines:
            told += ["Its last lines:", *(f"  {line}" for line in self.last_lines)]
        return "\n".join(told)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def diagnose(log: Log) -> Diagnosis:
    """Match a log against the catalogue.

    The earliest cause counts, since what comes later often follows from it.
    """
    exception = first_exception(log)
    findings = _findings(log)
    finding = findings[0] if findings else None
    if finding is not None and finding.kind == HINT and exception is not None:
        # It serves badly, but that is not what it died of.
        finding = None
    others = tuple(other for other in findings if other is not finding)
    return Diagnosis(finding, others, exception, tuple(last_lines(log, _LAST_LINES)), log.unreadable)


def _findings(log: Log) -> list[Finding]:
    """What was found, the most telling first."""
    text = log.text()
    found = []
    for signature in SIGNATURES:
        match = _compiled(signature.pattern).search(text)
        if match is not None and not (signature.unless and _compiled(signature.unless).search(text)):
            found.append((signature, match))
    found.sort(key=lambda pair: (_RANK[pair[0].kind], pair[1].start()))
    ends = log.lines_at([max(match.start(), match.end() - 1) for dummy, match in found])
    return [_finding(signature, match, line) for (signature, match), line in zip(found, ends)]


def _finding(signature: Signature, match: re.Match[str], line: Line) -> Finding:
    words = {name: (value or "").strip() for name, value in match.groupdict().items()}
    return Finding(
        id=signature.id,
        kind=signature.kind,
        cause=signature.cause.format_map(words),
        fix=signature.fix.format_map(words),
        source=signature.source,
        versions=signature.versions,
        number=line.number,
        seen=line.text[:_LONGEST_SEEN],
    )


def as_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as a module returns it."""
    told = asdict(diagnosis)
    return {**told, "others": list(told["others"]), "last_lines": list(told["last_lines"])}
