# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates after a start: the server does what was asked of it, and its speculation is accepted and pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, SKIPPED, WARN, Check, failing
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api

from . import golden, prefix, prompts, records, serving, speculation, speed

QUICK = "quick"
FULL = "full"
LEVELS = (QUICK, FULL)

GENERATE = ("serve.generate", "an answer to each prompt of the fixed set")
KEPT = "records.kept"

_RECORD_ONE = "deploy once without a speculative algorithm, with level full: that run is recorded as the baseline"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Asked:
    """What the server was started for, and where the gates stand. No ``algorithm``: no speculation was asked for."""

    level: str
    algorithm: str | None
    numbers: Mapping[str, int]
    accept_length_floor: float
    prompt: str
    golden_prompts: Sequence[str] = ()
    golden_floor: float = 0.5
    require_speedup: float | None = None


@dataclass(frozen=True)
class Place:
    """Where runs are kept. A baseline belongs to an ``identity``: without one there is none."""

    folder: Path
    release: str | None
    identity: Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """``baseline`` is what a run is compared with; where there is none, ``reason`` tells why."""

    baseline: records.Baseline | None
    reason: str = ""


@dataclass(frozen=True)
class Findings:
    """``decode_rate`` in tokens per second, ``cached_ratio`` and ``speedup`` as factors, ``seconds`` in all."""

    checks: list[Check]
    in_effect: dict[str, Any]
    completion: str
    answers: dict[str, records.Answer]
    accept_length: float | None
    decode_rate: float | None
    cached_ratio: float | None
    compared: Compared
    speedup: float | None
    seconds: float


def next_step(error: api.ApiError) -> str:
    """The one thing to do about an answer that is none."""
    if isinstance(error, api.NoAnswer):
        return "let sglang_diagnose read the journal of its unit, or raise timeout if it was only slow"
    if isinstance(error, api.Refused) and error.status in (401, 403):
        return "give the server's key as api_key"
    return "see the journal of the server for this request; without one there, another server has its address"


@dataclass
class _Gates:
    """Asks one after the other. Who does not answer is not asked again: each question may cost the whole time limit."""

    checks: list[Check] = field(default_factory=list)
    silent: str = ""

    def ask(self, gate: tuple[str, str], fetch: Callable[[], _T], judge: Callable[[_T], Check]) -> _T | None:
        if self.silent:
            self.skip(gate, f"the server stopped answering at {self.silent}")
            return None
        name, expected = gate
        try:
            told = fetch()
        except api.ApiError as error:
            if isinstance(error, api.NoAnswer):
                self.silent = name
            self.checks.append(Check(name, FAIL, expected, str(error), next_step(error)))
            return None
        self.checks.append(judge(told))
        return told

    def skip(self, gate: tuple[str, str], reason: str, fix: str = "") -> None:
        self.checks.append(Check(gate[0], SKIPPED, gate[1], reason, fix))


def prove(server: api.Server, asked: Asked, place: Place | None, write: bool) -> Findings:
    """All gates of a level, and their record.

    Raises:
        ApiError: the server does not tell its arguments: it does not answer, wants a key, or is not SGLang.
        RecordError: the release is no name for a file.
    """
    began = time.gmtime()
    name = "" if place is None else records.name_of(place.release, time.strftime("%Y%m%dT%H%M%SZ", began))
    findings = _looked(server, asked, _compared(place))
    if place is None:
        return findings
    kept = Check(KEPT, SKIPPED, f"the run in {place.folder}", "check mode writes nothing")
    if write:
        kept = _keep(place, name, asked, findings, time.strftime("%Y-%m-%dT%H:%M:%SZ", began))
    return replace(findings, checks=[*findings.checks, kept])


def _looked(server: api.Server, asked: Asked, compared: Compared) -> Findings:
    begun = time.monotonic()
    full = asked.level == FULL
    info = server.info()
    in_effect = api.effective(info)
    gates = _Gates()
    gates.checks += speculation.algorithm(asked.algorithm, in_effect)
    gates.checks += speculation.numbers(asked.numbers, in_effect) if asked.algorithm else []
    model = serving.served_name(in_effect)
    listed = gates.ask(serving.MODELS, server.models, lambda told: serving.models(in_effect, told))
    completion = gates.ask(
        serving.COMPLETION, lambda: server.complete(model, asked.prompt, serving.ANSWER_TOKENS), serving.text
    )
    if full:
        _clients(gates, server, in_effect, asked.prompt, completion)
    generations = None
    if full or speculation.speculates(in_effect):
        chosen = [*prompts.GOLDEN, *asked.golden_prompts] if full else prompts.GOLDEN[: prompts.FEW]
        incremental = api.incremental(info)
        generations = gates.ask(
            GENERATE,
            lambda: {one: server.generate_timed(one, prompts.TOKENS, incremental) for one in dict.fromkeys(chosen)},
            _answered,
        )
    accept_length = speculation.accept_length(list((generations or {}).values()))
    gates.checks.append(_accept_check(asked, accept_length, generations))
    answers = {
        prompt: records.Answer(one.text, one.timed_tokens, one.timed_seconds)
        for prompt, one in (generations or {}).items()
    }
    speedup = cached_ratio = None
    if full:
        cached_ratio = _prefix(gates, server, in_effect, (listed or {}).get(model))
        _golden(gates, asked, in_effect, answers, compared)
        speedup = _speed(gates, asked, in_effect, answers, compared)
    return Findings(
        checks=gates.checks,
        in_effect=in_effect,
        completion="" if completion is None else completion.text,
        answers=answers,
        accept_length=accept_length,
        # A run that asks few prompts is too short to tell a rate.
        decode_rate=speed.decode_rate(answers.values()) if full else None,
        cached_ratio=cached_ratio,
        compared=compared,
        speedup=speedup,
        seconds=time.monotonic() - begun,
    )


def _clients(
    gates: _Gates, server: api.Server, in_effect: Mapping[str, Any], prompt: str, completion: api.Completion | None
) -> None:
    """What clients of the OpenAI API use."""
    model = serving.served_name(in_effect)
    gates.ask(serving.CHAT, lambda: server.chat(model, serving.CHAT_PROMPT, serving.ANSWER_TOKENS), serving.chat)
    gates.ask(
        serving.STREAM,
        lambda: server.chat_streamed(model, serving.CHAT_PROMPT, serving.ANSWER_TOKENS),
        serving.stream,
    )
    word = None if completion is None else serving.stop_string(completion.text)
    if word is None:
        gates.skip(serving.STOP, "there is no completion with a second word to stop at")
    else:
        at = word
        gates.ask(
            serving.STOP,
            lambda: server.complete(model, prompt, serving.ANSWER_TOKENS, at),
            lambda told: serving.stop(at, told),
        )
    if in_effect.get("grammar_backend") == "none":
        gates.skip(serving.JSON_SCHEMA, "the server runs with --grammar-backend none")
    else:
        gates.ask(
            serving.JSON_SCHEMA,
            lambda: server.chat(model, serving.SCHEMA_PROMPT, serving.LONG_ANSWER_TOKENS, **serving.SCHEMA_REQUEST),
            serving.json_schema,
        )
    parser = in_effect.get("tool_call_parser")
    if not parser:
        gates.skip(serving.TOOL_CALL, "no --tool-call-parser is in effect")
    else:
        gates.ask(
            serving.TOOL_CALL,
            lambda: server.chat(model, serving.TOOL_PROMPT, serving.LONG_ANSWER_TOKENS, tools=serving.TOOLS),
            lambda told: serving.tool_call(str(parser), told),
        )


def _answered(told: Mapping[str, api.Generation]) -> Check:
    empty = [prompt for prompt, one in told.items() if not one.text.strip()]
    if empty:
        fix = "check the tokenizer of the base model"
        return Check(GENERATE[0], FAIL, GENERATE[1], f"nothing to {empty[0][:40]!r}", fix)
    return Check(GENERATE[0], PASS, GENERATE[1], f"{len(told)} answers of {prompts.TOKENS} tokens")


def _accept_check(asked: Asked, length: float | None, generations: Mapping[str, api.Generation] | None) -> Check:
    if asked.algorithm is None:
        return speculation.no_accept_length("no speculation was asked for")
    if generations is None:
        return speculation.no_accept_length("there are no answers to take it from")
    return speculation.accepted(length, asked.accept_length_floor, len(generations))


def _prefix(gates: _Gates, server: api.Server, in_effect: Mapping[str, Any], max_model_len: int | None) -> float | None:
    if in_effect.get("disable_radix_cache"):
        gates.skip(prefix.PREFIX_CACHE, "the radix cache is off (--disable-radix-cache is in effect)")
        return None
    text = prefix.prefix(max_model_len)

    def second() -> api.Generation:
        server.generate(text, 1)
        # Longer than the first one, as the next turn of a chat is.
        return server.generate(text + "Which pump ran longest?", 1)

    told = gates.ask(prefix.PREFIX_CACHE, second, prefix.cached)
    return None if told is None else prefix.ratio(told)


def _golden(
    gates: _Gates,
    asked: Asked,
    in_effect: Mapping[str, Any],
    answers: Mapping[str, records.Answer],
    compared: Compared,
) -> None:
    baseline = compared.baseline
    if baseline is None:
        gates.skip(golden.GOLDEN, compared.reason, _RECORD_ONE)
    elif not answers:
        gates.skip(golden.GOLDEN, "there are no answers to compare")
    else:
        gates.checks.append(
            golden.compared(
                {prompt: one.text for prompt, one in answers.items()},
                {prompt: one.text for prompt, one in baseline.answers.items()},
                golden.equality_is_promised(in_effect, baseline.in_effect),
                asked.golden_floor,
            )
        )


def _speed(
    gates: _Gates,
    asked: Asked,
    in_effect: Mapping[str, Any],
    answers: Mapping[str, records.Answer],
    compared: Compared,
) -> float | None:
    gate, baseline = speed.DECODE_RATE, compared.baseline
    if not speculation.speculates(in_effect):
        gates.skip(gate, "without speculation there is nothing to compare: such a run is the baseline")
        return None
    if baseline is None:
        gates.skip(gate, compared.reason, _RECORD_ONE)
        return None
    sizes = (in_effect.get("tp_size"), baseline.in_effect.get("tp_size"))
    if sizes[0] != sizes[1]:
        gates.skip(gate, f"the baseline ran with TP {sizes[1]}, this server runs with TP {sizes[0]}", _RECORD_ONE)
        return None
    factor, rate = speed.speedup(answers, baseline.answers), speed.decode_rate(answers.values())
    if factor is None or rate is None:
        gates.skip(gate, "no tokens were timed for a prompt that the baseline has too")
        return None
    gates.checks.append(speed.faster(factor, rate, asked.require_speedup))
    return factor


def _compared(place: Place | None) -> Compared:
    if place is None:
        return Compared(None, "no folder for records was given")
    if not place.identity:
        return Compared(None, "no identity was given that a baseline could belong to")
    path = records.baseline_path(place.folder, place.identity)
    try:
        baseline = records.read_baseline(path)
    except records.RecordError as error:
        return Compared(None, f"the baseline is lost: {error}")
    return Compared(baseline, "no baseline is recorded for this model, engine and hardware")


def _keep(place: Place, name: str, asked: Asked, findings: Findings, recorded: str) -> Check:
    passed = not failing(findings.checks)
    run = {
        "recorded": recorded,
        "passed": passed,
        "seconds": round(findings.seconds, 2),
        "in_effect": findings.in_effect,
        "accept_length": findings.accept_length,
        "decode_rate": findings.decode_rate,
        "cached_ratio": findings.cached_ratio,
        "speedup": findings.speedup,
        "checks": [vars(check) for check in findings.checks],
        "answers": {prompt: one.text for prompt, one in findings.answers.items()},
    }
    expected = f"the run in {place.folder}"
    try:
        path = records.keep_run(place.folder, name, place.identity, asked.level, run)
        told = str(path)
        if passed and asked.level == FULL and place.identity and not speculation.speculates(findings.in_effect):
            baseline = records.baseline_path(place.folder, place.identity)
            records.keep_baseline(baseline, place.identity, name, recorded, findings.in_effect, findings.answers)
            told += f", and as the baseline {baseline.name}"
    except records.RecordError as error:
        return Check(KEPT, WARN, expected, str(error), f"make {place.folder} a folder that this module can write to")
    return Check(KEPT, PASS, expected, told)
