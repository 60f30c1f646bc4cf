# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judgement on an argument list: by rules, by the engine itself where it is installed, and by what both miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..checks import FAIL, PASS, WARN, Check, failing
from . import rules, traps, verdict
from .asking import Answer, ask
from .flags import SECRET
from .packages import EngineMissingError, site_packages_of
from .releases import is_covered
from .situation import Situation
from .source import EngineInfo, read_engine
from .versions import Version, parse_version


@dataclass(frozen=True)
class Judgement:
    """What is known about an argument list before the start; see the module sglang_args for the parts."""

    checks: Sequence[Check]
    resolved: Mapping[str, object]
    not_binding: Sequence[str]
    adjusted: Sequence[Mapping[str, object]]

    @property
    def valid(self) -> bool:
        return not failing(self.checks)


def secrets_in(args: Sequence[str]) -> set[str]:
    """Values in an argument list that must not be shown."""
    apart = {word for before, word in zip(args, args[1:]) if before in SECRET}
    joined = {word.partition("=")[2] for word in args if word.partition("=")[0] in SECRET}
    return (apart | joined) - {""}


def judge(
    args: Sequence[str],
    version: str | None,
    venv: str,
    environment: Mapping[str, object],
    allow_adjusted: Sequence[str],
    timeout: float,
    names: Mapping[str, str],
) -> Judgement:
    """Judges ``args``, the words after ``python -m sglang.launch_server``, for the release ``version``.

    The rules come first: what a rule refuses for certain is told at once. Otherwise the engine in ``venv`` is asked, if
    it is the release that is meant; then its verdict counts and the rules only put it into words.

    Raises ValueError when ``version`` is no version.
    """
    meant = parse_version(version) if version else None
    engine, absent = _engine(Path(venv), meant)
    release = engine.version if engine else meant
    settings = {name: str(value) for name, value in environment.items()}
    situation = Situation.of(args, release, names, settings, allow_adjusted, engine)
    by_rules = rules.judge(situation)
    # A change that is accepted is no reason to refuse.
    refused = [check for check in by_rules if check.status in (FAIL, WARN) and check.id != "args.chain_length"]
    certain = engine is not None and is_covered(engine.version) and not engine.plugins and failing(by_rules)
    if engine is None or certain:
        answer = Answer("start", message=absent or "it was not asked: rules of its release refuse the list already")
    else:
        answer = ask(Path(venv) / "bin" / "python", args, settings, timeout)
    if answer.spelled:
        situation = replace(situation, spelled=answer.spelled)
    if answer.stage == "done":
        held = {name: value for name, value in answer.resolved.items() if name not in verdict.not_binding(answer)}
        situation = replace(situation, resolved=held)
        by_rules = [check for check in by_rules if check.status == PASS]
    told = verdict.checks(answer, situation, refused)
    hidden = [flag[2:].replace("-", "_") for flag in SECRET]
    return Judgement(
        checks=[*told, *by_rules, *traps.judge(situation)],
        resolved={name: value for name, value in answer.resolved.items() if name not in hidden},
        not_binding=verdict.not_binding(answer),
        adjusted=[asdict(item) for item in verdict.adjusted(answer, situation)],
    )


def _engine(venv: Path, meant: Version | None) -> tuple[EngineInfo | None, str]:
    """The engine in ``venv`` if it is the release that is meant, else why it cannot be asked."""
    try:
        engine = read_engine(site_packages_of(venv))
    except EngineMissingError as error:
        return None, str(error)
    if meant is not None and engine.version != meant:
        return None, f"{venv} holds SGLang {engine.version}, the list is for {meant}"
    return engine, ""
