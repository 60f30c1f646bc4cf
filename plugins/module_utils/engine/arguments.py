# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on an argument list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checks import SKIPPED, Check, failing
from . import rules
from .versions import parse_version


@dataclass(frozen=True)
class Verdict:
    """What is known about an argument list before the start."""

    checks: Sequence[Check]
    resolved: Mapping[str, object]
    adjusted: Sequence[Mapping[str, object]]

    @property
    def valid(self) -> bool:
        return not failing(self.checks)


def judge(
    args: Sequence[str],
    version: str | None,
    venv: str,
    environment: Mapping[str, str],
    allow_adjusted: Sequence[str],
    timeout: int,
    names: Mapping[str, str],
) -> Verdict:
    """Judges ``args``, the words after ``python -m sglang.launch_server``.

    Raises ValueError when ``version`` is no version.
    """
    release = parse_version(version) if version else None
    situation = rules.Situation.of(args, release, names, environment, allow_adjusted)
    python = Path(venv) / "bin" / "python"
    why = "the engine's own validation is not asked yet" if python.exists() else f"there is no {python} yet"
    engine = Check(
        "args.engine",
        SKIPPED,
        "the engine's own parser and validation accept the list",
        f"{why}; every flag and value that no other check here names was not judged",
    )
    return Verdict([engine, *rules.judge(situation)], {}, [])
