# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of the prefix cache: the second request of a long prefix finds it there."""

from __future__ import annotations

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, WARN, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Generation

from . import prompts

PREFIX_CACHE = ("cache.prefix", "the tokens of a repeated prefix out of the cache")
# Pages of the cache are whole or not at all: part of the prefix is always computed again.
_SHARE = 0.5


def prefix(max_model_len: int | None) -> str:
    """The long prefix. No text has more tokens than bytes, so that it always fits into the context."""
    length = prompts.PREFIX_CHARACTERS
    if max_model_len is not None:
        length = min(length, max_model_len * 3 // 4)
    lines = ""
    while len(lines) < length:
        number = lines.count("\n") + 1
        lines += prompts.PREFIX_SENTENCE.format(number=number, hours=7 * number % 24)
    return lines[:length]


def ratio(second: Generation) -> float:
    """The share of the second prompt that came out of the cache."""
    return second.cached_tokens / second.prompt_tokens if second.prompt_tokens else 0.0


def cached(second: Generation) -> Check:
    """What the second request reports."""
    name, expected = PREFIX_CACHE
    found = f"{second.cached_tokens} of {second.prompt_tokens} tokens"
    if ratio(second) >= _SHARE:
        return Check(name, PASS, expected, found)
    source = "sgl-project/sglang issue 32459"
    if not second.cached_tokens:
        fix = "look for your version and algorithm in the issue: speculation can defeat the prefix cache"
        return Check(name, FAIL, expected, found, fix, source)
    return Check(name, WARN, expected, found, "choose a smaller --page-size", source)
