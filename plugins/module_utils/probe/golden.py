# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of the golden prompts: the answers are those of the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, SKIPPED, WARN, Check

from .speculation import speculates

GOLDEN = ("golden.answers", "the answers of the baseline at temperature 0")
# What decides on the order of additions.
_SAME_KERNELS = (
    "tp_size",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "kv_cache_dtype",
)
_SOURCE = "sglang/srt/arg_groups/attention_hook.py, handle_deterministic_inference (0.5.23), and SGLang's FAQ"


def equality_is_promised(now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    """Whether the engine promises the same answers.

    It does with --enable-deterministic-inference (0.5.3 and later) alone: temperature 0 is not enough, since kernels
    add in an order that depends on the batch and on the cached prefix. The promise is for one way to compute: not
    across another TP size, attention backend or KV cache, and not from decoding to the verification of drafts, which
    runs other attention kernels.
    """
    deterministic = now.get("enable_deterministic_inference") and then.get("enable_deterministic_inference")
    same = all(now.get(name) == then.get(name) for name in _SAME_KERNELS)
    return bool(deterministic) and same and not speculates(now) and not speculates(then)


def share(found: str, expected: str) -> float:
    """The share of equal leading characters: 1.0 is the same text."""
    longest = max(len(found), len(expected))
    leading = 0
    for one, other in zip(found, expected):
        if one != other:
            break
        leading += 1
    return leading / longest if longest else 1.0


def compared(answers: Mapping[str, str], baseline: Mapping[str, str], promised: bool, floor: float) -> Check:
    """The answers beside the baseline's, by prompt. Where equality is not promised their mean share is scored."""
    name, expected = GOLDEN
    shares = {prompt: share(text, baseline[prompt]) for prompt, text in answers.items() if prompt in baseline}
    if not shares:
        return Check(name, SKIPPED, expected, "the baseline was recorded with other prompts")
    equal = sum(one == 1.0 for one in shares.values())
    mean = sum(shares.values()) / len(shares)
    found = f"{equal} of {len(shares)} equal, {mean:.0%} of the leading characters"
    worst = min(shares, key=lambda prompt: shares[prompt])
    if promised:
        if equal == len(shares):
            return Check(name, PASS, f"{expected}, as deterministic inference promises", found, source=_SOURCE)
        fix = f"find out what changed since the baseline, first for the prompt {worst[:40]!r}"
        return Check(name, FAIL, f"{expected}, as deterministic inference promises", found, fix, _SOURCE)
    expected = f"at least {floor:.0%} of the leading characters of the baseline's answers (equality is not promised)"
    if mean >= floor:
        return Check(name, PASS, expected, found, source=_SOURCE)
    fix = f"read both answers to the prompt {worst[:40]!r}: a wrong attention backend or quantisation shows there"
    return Check(name, WARN, expected, found, fix, _SOURCE)
