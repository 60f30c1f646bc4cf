# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be said about an argument list without running the engine: its flags and the release they are meant for.

Each rule gives one check, or None where it does not apply. The rules repeat what the engine's own validation does, so
that they can be told before an engine is installed and in words that name the flags to set; where the engine itself has
judged the list, its verdict counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from ..checks import Check
from . import flags as f
from .algorithms import CHAIN_ALGORITHMS, known_algorithms, may_know, takes_any_case
from .releases import READ, Span, is_covered
from .situation import NO_VERSION, Question, Situation

_SPECULATION = "SGLang arg_groups/speculative_hook.py (server_args.py up to 0.5.12)"


def _release_flags(situation: Situation) -> Check | None:
    """Speculative flags by the tables; where the engine's source can be read it says more (_declared_flags)."""
    if situation.engine is not None:
        return None
    known = {flag.name: flag for flag in f.SPECULATIVE}
    given = [name for name in situation.line.values if name in known or name.startswith("--speculative-")]
    if not given:
        return None
    ask = Question("args.flags", "speculative flags that the release has", "SGLang server_args.py, arg_groups/")
    if situation.version is None:
        return ask.skipped(NO_VERSION)
    for name in given:
        if name not in known:
            told = ask.failed if is_covered(situation.version) else ask.warned
            return told(f"{situation.named(name)}, unknown to {situation.version}", f"{_correct(name, known)}")
        flag = known[name]
        has = flag.span.holds(situation.version)
        if has is False:
            fix = f"use {flag.instead} instead" if flag.instead else "remove it"
            if flag.span.since and not flag.span.until:
                fix += f" or install SGLang {flag.span.since} or newer"
            return ask.failed(f"{situation.named(name)}, which {situation.version} does not have", fix)
        if has is None and flag.span != Span():
            covers = f"the tables cover {READ[0]} to {READ[-1]} and do not tell"
            return ask.skipped(f"whether {situation.version} has {name} is not known; {covers}")
    return ask.passed(f"{len(given)} flags, all known to {situation.version}")


def _correct(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"write {close[0]} if that is meant, else remove it" if close else "remove it"


def _declared_flags(situation: Situation) -> Check | None:
    """Every flag and every fixed choice by the installed source (argparse: unrecognized arguments, invalid choice)."""
    if situation.engine is None:
        return None
    declared = situation.engine.flags
    source = "the installed sglang/srt/server_args.py and arg_groups/"
    ask = Question("args.flags", f"flags and choices that the installed {situation.engine.version} has", source)
    tables = {flag.name: flag for flag in f.SPECULATIVE}
    for name, values in situation.line.values.items():
        flag = declared.get(name)
        if flag is None:
            instead = tables[name].instead if name in tables else ""
            fix = f"use {instead} instead" if instead else _correct(name, declared)
            return ask.failed(f"{situation.named(name)}, which it does not have", fix)
        wrong = [value for value in values if flag.choices is not None and value not in map(str, flag.choices)]
        # The tables know how a release compares names of algorithms.
        if wrong and name != f.ALGORITHM:
            choices = [str(choice) for choice in flag.choices or ()]
            close = get_close_matches(wrong[0], choices, 1)
            fix = f"set {situation.set_to(name, close[0])}" if close else f"set {situation.named(name)} to one of them"
            return ask.failed(f"{situation.named(name)} = {wrong[0]!r}, which is none of {', '.join(choices)}", fix)
    return ask.passed(f"all {len(situation.line.values)}")


def _algorithm(situation: Situation) -> Check | None:
    """An algorithm that the release knows, written as the release wants it."""
    source = "SGLang speculative/spec_info.py"
    given = situation.line.text(f.ALGORITHM)
    if given is None:
        return None
    if situation.engine is not None and situation.engine.algorithms:
        release, known = str(situation.engine.version), situation.engine.algorithms
        declared = situation.engine.flags.get(f.ALGORITHM)
        any_case: bool | None = declared is None or declared.choices is None
        unsure = bool(situation.engine.plugins)
    elif situation.version is not None:
        release, known = str(situation.version), known_algorithms(situation.version)
        any_case, unsure = takes_any_case(situation.version), may_know(given, situation.version)
    else:
        return Question("args.algorithm", "an algorithm of the release", source).skipped(NO_VERSION)
    ask = Question("args.algorithm", f"one of {', '.join(known)}", source)
    found = f"{situation.named(f.ALGORITHM)} = {given!r}"
    if given in known or (given.upper() in known and any_case):
        return ask.passed(found)
    if given.upper() in known:
        return ask.failed(found, f"set {situation.set_to(f.ALGORITHM, given.upper())}; {release} takes capitals only")
    fix = f"set {situation.set_to(f.ALGORITHM, 'EAGLE3')} or another name that {release} knows"
    # A release that was not read, or a plugin, may know more.
    told = ask.warned if unsure or situation.environment.get("SGLANG_PLUGINS") else ask.failed
    return told(found, fix)


def _three_numbers(situation: Situation) -> Check | None:
    """Steps, topk and draft tokens: all or none.

    Without steps the engine asserts, with no message, that the other two are absent; without topk it compares None with
    a number; without draft tokens it takes steps + 1 at topk 1 and crashes later otherwise (all releases read).
    """
    if situation.algorithm not in CHAIN_ALGORITHMS or f.ADAPTIVE in situation.line:
        return None
    numbers = situation.numbers
    given = [flag for flag in numbers if flag in situation.line]
    missing = [flag for flag in numbers if flag not in situation.line]
    ask = Question("args.three_numbers", f"all three of {', '.join(numbers)}, or none", _SPECULATION)
    if not given:
        return ask.passed("none: the engine chooses by the base model's architecture and its own version")
    if not missing:
        return ask.passed("all three")
    values = dict(zip(numbers, _completed(numbers)))
    told = ", ".join(f"{situation.named(flag)} = {situation.line.text(flag)}" for flag in given)
    lacking = " and ".join(situation.named(flag) for flag in missing)
    wanted = ", ".join(situation.set_to(flag, value) for flag, value in values.items())
    why = " (with topk 1, draft tokens are steps + 1)" if values[f.TOPK] == 1 else ""
    return ask.failed(f"{told} without {lacking}", f"set all three, for example {wanted}{why}")


def _completed(numbers: Mapping[str, int | None]) -> tuple[int, int, int]:
    """Steps, topk and draft tokens that fit together and keep of what was given what they can, draft tokens first."""
    steps, topk, tokens = numbers[f.STEPS], numbers[f.TOPK], numbers[f.DRAFT_TOKENS]
    if topk is not None and topk > 1:
        # 5/4/8 and 3/1/4 are the engine's own choices (_auto_choose_speculative_params).
        return steps or 5, topk, tokens or 8
    if tokens is not None and tokens > 1:
        return tokens - 1, 1, tokens
    steps = steps or 3
    return steps, 1, steps + 1


def shortened_chain(situation: Situation) -> tuple[int, int] | None:
    """Draft tokens as asked and as the engine makes them (topk 1: steps + 1); None where it keeps them."""
    steps, topk, tokens = situation.numbers.values()
    if situation.algorithm not in CHAIN_ALGORITHMS or topk != 1 or steps is None or tokens in (None, steps + 1):
        return None
    return tokens or 0, steps + 1


def _chain_length(situation: Situation) -> Check | None:
    """With topk 1 the draft is a chain: the engine makes draft tokens steps + 1, with a warning only (all releases)."""
    if situation.algorithm not in CHAIN_ALGORITHMS:
        return None
    steps, topk, tokens = situation.numbers.values()
    if topk != 1 or steps is None or tokens is None:
        return None
    right = steps + 1
    ask = Question("args.chain_length", f"draft tokens = steps + 1 = {right} with topk 1", _SPECULATION)
    found = f"{situation.named(f.DRAFT_TOKENS)} = {tokens}"
    if tokens == right:
        return ask.passed(found)
    fix = f"set {situation.set_to(f.DRAFT_TOKENS, right)}, which is what would run"
    if tokens > 1:
        fix = f"set {situation.set_to(f.STEPS, tokens - 1)} to keep {tokens} draft tokens, or {fix}"
    told = ask.warned if f.DRAFT_TOKENS in situation.allow_adjusted else ask.failed
    return told(f"{found}, which the engine silently makes {right}", fix)


def _pipeline_parallel(situation: Situation) -> Check | None:
    """Pipeline parallelism: refused with any algorithm up to 0.5.19, with all but EAGLE from 0.5.20 on."""
    pp = situation.line.number(f.PP)
    if situation.algorithm is None or pp is None:
        return None
    source = "SGLang arg_groups/validation_hook.py (server_args.py up to 0.5.12)"
    ask = Question("args.pipeline_parallel", "no pipeline parallelism beside speculation", source)
    found = f"{situation.named(f.PP)} = {pp}"
    if pp <= 1:
        return ask.passed(found)
    if situation.algorithm in ("EAGLE", "NEXTN"):
        if situation.version is None:
            return ask.skipped(NO_VERSION)
        if not Span(until="0.5.19").holds(situation.version):
            return ask.skipped(f"{found}: from 0.5.20 on the engine allows some set-ups and decides itself")
    fix = f"set {situation.set_to(f.PP, 1)} and spread the model by {situation.named(f.TP)}"
    return ask.failed(f"{found} with {situation.algorithm}", fix)


# Attention backends that verify a tree (topk > 1) on pages of more than one token.
_TREE_ON_PAGES = (
    (Span(since="0.5.13.post1"), ("flashinfer", "fa3", "triton")),
    (Span(since="0.5.6.post2", until="0.5.12"), ("flashinfer", "fa3")),
    (Span(since="0.5.2", until="0.5.5"), ("flashinfer",)),
)


def _tree_backend(situation: Situation) -> Check | None:
    """topk > 1 needs an attention backend that can verify a tree, on pages too where the page size is over 1."""
    topk = situation.numbers[f.TOPK]
    if situation.algorithm not in CHAIN_ALGORITHMS or topk is None or topk <= 1:
        return None
    ask = Question("args.tree_backend", f"an attention backend that verifies a tree (topk {topk})", _SPECULATION)
    for flag in (f.ATTENTION, f.PREFILL_ATTENTION, f.DECODE_ATTENTION):
        if situation.line.text(flag) == "trtllm_mha":
            found = f"{situation.named(flag)} = trtllm_mha, which takes topk 1 only"
            return ask.failed(found, f"set {situation.set_to(f.TOPK, 1)}")
    backend, page_size = situation.line.text(f.ATTENTION), situation.line.number(f.PAGE_SIZE)
    if backend is None or page_size is None:
        return ask.skipped(f"{f.ATTENTION} and {f.PAGE_SIZE} are not both given; the engine chooses them by the GPU")
    if situation.version is None:
        return ask.skipped(NO_VERSION)
    able = next((backends for span, backends in _TREE_ON_PAGES if span.holds(situation.version)), None)
    if able is None:
        return ask.skipped(f"the rule of {situation.version} is not known")
    found = f"{situation.named(f.ATTENTION)} = {backend}, page size {page_size}"
    if page_size <= 1 or backend in able:
        return ask.passed(found)
    fix = f"set {situation.set_to(f.TOPK, 1)}, or {situation.set_to(f.PAGE_SIZE, 1)}"
    return ask.failed(f"{found}; only {', '.join(able)} can with a page size over 1", fix)


Rule = Callable[[Situation], "Check | None"]
RULES: tuple[Rule, ...] = (
    _release_flags,
    _declared_flags,
    _algorithm,
    _three_numbers,
    _chain_length,
    _pipeline_parallel,
    _tree_backend,
)


def judge(situation: Situation) -> list[Check]:
    """The checks of all rules that apply; one that says so where a file brings settings that no rule sees."""
    if situation.settings_file:
        ask = Question("args.rules", "every setting is in the list", "SGLang server_args.py, prepare_server_args")
        return [ask.skipped(f"{f.CONFIG} {situation.settings_file} brings settings that the rules do not see")]
    return [check for check in (rule(situation) for rule in RULES) if check is not None]
