# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof after a start: the server does what was asked of it, and its speculation is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, SKIPPED, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Generation


@dataclass(frozen=True)
class Expected:
    """What was asked for. Without ``algorithm`` there is no speculation to prove."""

    algorithm: str | None
    numbers: Mapping[str, int]
    accept_length_floor: float


def judge(expected: Expected, in_effect: Mapping[str, Any], generation: Generation) -> list[Check]:
    """The checks on what the running server says and does."""
    checks = [_text(generation)]
    if expected.algorithm is None:
        reason = "no speculation was asked for"
        return [*checks, Check("speculation.accept_length", SKIPPED, "a floor for the accept length", reason)]
    return [*checks, _algorithm(expected, in_effect), *_numbers(expected, in_effect), _accepted(expected, generation)]


def _text(generation: Generation) -> Check:
    found = f"{generation.tokens} tokens"
    if generation.text.strip():
        return Check("generate.text", PASS, "text", found)
    return Check("generate.text", FAIL, "text", f"{found} without a letter", "check the tokenizer of the base model")


# What the engine itself makes of a name: NEXTN is EAGLE, and either FROZEN_KV_MTP with a Gemma 4 assistant as drafter
# (sglang/srt/server_args.py:337-343 in 0.5.12, sglang/srt/arg_groups/speculative_hook.py:102-107 in 0.5.23).
_BECOMES = {"NEXTN": ("EAGLE", "FROZEN_KV_MTP"), "EAGLE": ("EAGLE", "FROZEN_KV_MTP")}


def _algorithm(expected: Expected, in_effect: Mapping[str, Any]) -> Check:
    found = in_effect.get("speculative_algorithm")
    asked = str(expected.algorithm)
    if found in _BECOMES.get(asked.upper(), (asked.upper(),)):
        return Check("speculation.algorithm", PASS, asked, str(found))
    return Check(
        "speculation.algorithm",
        FAIL,
        asked,
        str(found),
        "see the journal for the reason why the engine chose another algorithm",
        "sglang/srt/arg_groups/speculative_hook.py (0.5.13 and later)",
    )


def _numbers(expected: Expected, in_effect: Mapping[str, Any]) -> list[Check]:
    checks = []
    for name, asked in expected.numbers.items():
        found = in_effect.get(name)
        flag = "--" + name.replace("_", "-")
        told = (f"speculation.{name}", f"{flag} {asked}", f"{flag} {found}")
        if found == asked:
            checks.append(Check(told[0], PASS, told[1], told[2]))
        else:
            fix = f"set {flag} to {found}, or its companions so that the engine can keep {asked}"
            checks.append(Check(told[0], FAIL, told[1], told[2], fix))
    return checks


def _accepted(expected: Expected, generation: Generation) -> Check:
    name, wanted = "speculation.accept_length", f"at least {expected.accept_length_floor:.2f}"
    found = generation.accept_length
    if found is None:
        return Check(name, FAIL, wanted, "none told", "check that the engine was started with its speculation flags")
    if found >= expected.accept_length_floor:
        return Check(name, PASS, wanted, f"{found:.2f}")
    if found <= 1.0:
        fix = (
            "nothing was accepted: check the algorithm's name, the drafter's layer ids and the base it was trained for"
        )
    else:
        fix = "take the drafter that was trained for this base model, or fewer steps"
    return Check(name, FAIL, wanted, f"{found:.2f}", fix)
