# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Generation
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import prefix, prompts


def second(cached: int, prompt: int = 1000) -> Generation:
    return Generation("sea", 1, None, prompt, cached)


@pytest.mark.parametrize(("cached", "status"), [(960, "pass"), (500, "pass"), (499, "warn"), (0, "fail")])
def test_the_second_request_finds_the_prefix(cached: int, status: str) -> None:
    assert prefix.cached(second(cached)).status == status


def test_a_server_that_counts_no_prompt_tokens_fails() -> None:
    assert prefix.cached(second(0, 0)).status == "fail"


@pytest.mark.parametrize(("context", "length"), [(None, prompts.PREFIX_CHARACTERS), (262_144, 4000), (2048, 1536)])
def test_the_prefix_fits_into_the_context(context: int | None, length: int) -> None:
    assert len(prefix.prefix(context)) == length


def test_no_line_of_the_prefix_is_another_s() -> None:
    lines = prefix.prefix(None).splitlines()
    assert len(set(lines)) == len(lines)
