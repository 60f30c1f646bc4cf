# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of the speed: speculation is faster than the baseline without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, WARN, Check

from .records import Answer

DECODE_RATE = ("speed.decode_rate", "tokens per second against the baseline")


def decode_rate(answers: Iterable[Answer]) -> float | None:
    """Tokens per second of one stream alone, the prefill left out. None where nothing was timed."""
    asked = list(answers)
    tokens, seconds = sum(one.timed_tokens for one in asked), sum(one.timed_seconds for one in asked)
    return tokens / seconds if tokens > 0 and seconds > 0 else None


def speedup(answers: Mapping[str, Answer], baseline: Mapping[str, Answer]) -> float | None:
    """How many times the baseline's decode rate, over the prompts that both were asked."""
    common = [prompt for prompt in answers if prompt in baseline]
    now = decode_rate(answers[prompt] for prompt in common)
    then = decode_rate(baseline[prompt] for prompt in common)
    return now / then if now is not None and then is not None else None


def faster(factor: float, rate: float, required: float | None) -> Check:
    """The factor reaches what is required; without a requirement a slower one is a warning."""
    wanted = 1.0 if required is None else required
    expected = f"at least {wanted:.2f} times the decode rate of the baseline"
    found = f"{factor:.2f} times, {rate:.1f} tok/s"
    if factor >= wanted:
        return Check(DECODE_RATE[0], PASS, expected, found)
    fix = "serve without speculation, or try fewer steps"
    return Check(DECODE_RATE[0], WARN if required is None else FAIL, expected, found, fix)
