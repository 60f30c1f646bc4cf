# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates of speculation: the engine runs what was asked for, and the drafts are accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, SKIPPED, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Generation

ACCEPT_LENGTH = "speculation.accept_length"

# What the engine itself makes of a name: NEXTN is EAGLE, and either FROZEN_KV_MTP with a Gemma 4 assistant as drafter
# (sglang/srt/server_args.py:337-343 in 0.5.12, sglang/srt/arg_groups/speculative_hook.py:102-107 in 0.5.23).
_BECOMES = {"NEXTN": ("EAGLE", "FROZEN_KV_MTP"), "EAGLE": ("EAGLE", "FROZEN_KV_MTP")}


def speculates(in_effect: Mapping[str, Any]) -> bool:
    """Whether the running engine drafts at all."""
    return bool(in_effect.get("speculative_algorithm"))


def algorithm(asked: str | None, in_effect: Mapping[str, Any]) -> list[Check]:
    """The algorithm in effect is the one that was asked for; nothing to say where neither is."""
    name, found = "speculation.algorithm", in_effect.get("speculative_algorithm")
    if asked is None:
        fix = "restart the server: it still runs with other arguments than those asked for"
        return [Check(name, FAIL, "none", str(found), fix)] if found else []
    if found in _BECOMES.get(asked.upper(), (asked.upper(),)):
        return [Check(name, PASS, asked, str(found))]
    return [
        Check(
            name,
            FAIL,
            asked,
            str(found),
            "see the journal for the reason why the engine chose another algorithm",
            "sglang/srt/arg_groups/speculative_hook.py (0.5.13 and later)",
        )
    ]


def numbers(asked: Mapping[str, int], in_effect: Mapping[str, Any]) -> list[Check]:
    """The numbers in effect are those that were asked for: the engine adjusts some with a warning only."""
    checks = []
    for name, number in asked.items():
        found = in_effect.get(name)
        flag = "--" + name.replace("_", "-")
        told = (f"speculation.{name}", f"{flag} {number}", f"{flag} {found}")
        if found == number:
            checks.append(Check(told[0], PASS, told[1], told[2]))
        else:
            fix = f"set {flag} to {found}, or its companions so that the engine can keep {number}"
            checks.append(Check(told[0], FAIL, told[1], told[2], fix))
    return checks


def accept_length(answers: Sequence[Generation]) -> float | None:
    """Tokens per verify step over all answers, the base model's own included: 1.00 means that nothing was accepted.

    The first token of an answer comes from the prefill, so it is left out. The engine's own spec_accept_length counts
    it (completion_tokens / spec_verify_ct, sglang/srt/managers/tokenizer_manager.py:2950 in 0.5.20): of 64 tokens
    without one accepted draft it says 1.02.

    Returns:
        None where an answer tells no verify steps.
    """
    steps = [answer.verify_steps for answer in answers if answer.verify_steps is not None]
    if len(steps) != len(answers) or not sum(steps):
        return None
    return sum(max(answer.tokens - 1, 0) for answer in answers) / sum(steps)


def accepted(length: float | None, floor: float, answers: int) -> Check:
    """The accept length reaches the floor."""
    wanted = f"at least {floor:.2f}"
    if length is None:
        fix = "check that the engine was started with its speculation flags"
        return Check(ACCEPT_LENGTH, FAIL, wanted, "none told", fix)
    found = f"{length:.2f} over {answers} prompts"
    if length >= floor:
        return Check(ACCEPT_LENGTH, PASS, wanted, found)
    if round(length, 2) <= 1.0:
        found += ": nothing was accepted"
        fix = "check the algorithm's name, the drafter's layer ids and the base model that it was trained for"
    else:
        # EAGLE with an EAGLE-3 drafter ends up here as well: 1.14 with the tiny models of the lab.
        fix = "check that algorithm, drafter and base model belong together; if they do, try fewer steps"
    return Check(ACCEPT_LENGTH, FAIL, wanted, found, fix)


def no_accept_length(reason: str) -> Check:
    """Without speculation, or without answers, there is nothing to accept."""
    return Check(ACCEPT_LENGTH, SKIPPED, "a floor for the accept length", reason)
