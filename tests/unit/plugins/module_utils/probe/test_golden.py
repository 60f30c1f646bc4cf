# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import golden

DETERMINISTIC = {"enable_deterministic_inference": True, "tp_size": 8, "attention_backend": "fa3"}
ANSWERS = {"one": "abcd", "two": "efgh"}


@pytest.mark.parametrize(
    ("now", "then", "promised"),
    [
        (DETERMINISTIC, DETERMINISTIC, True),
        ({}, {}, False),
        (DETERMINISTIC, {}, False),
        (DETERMINISTIC, {**DETERMINISTIC, "tp_size": 4}, False),
        (DETERMINISTIC, {**DETERMINISTIC, "attention_backend": "triton"}, False),
        ({**DETERMINISTIC, "speculative_algorithm": "EAGLE3"}, DETERMINISTIC, False),
    ],
)
def test_where_equality_is_promised(now: dict[str, object], then: dict[str, object], promised: bool) -> None:
    assert golden.equality_is_promised(now, then) is promised


@pytest.mark.parametrize(
    ("found", "expected", "share"),
    [("abcd", "abcd", 1.0), ("", "", 1.0), ("abxx", "abcd", 0.5), ("ab", "abcd", 0.5), ("x", "", 0)],
)
def test_the_share_of_equal_leading_characters(found: str, expected: str, share: float) -> None:
    assert golden.share(found, expected) == share


@pytest.mark.parametrize(
    ("answers", "promised", "status"),
    [
        (ANSWERS, True, "pass"),
        ({**ANSWERS, "two": "efgx"}, True, "fail"),
        (ANSWERS, False, "pass"),
        ({**ANSWERS, "two": "xxxx"}, False, "pass"),
        ({"one": "axxx", "two": "xxxx"}, False, "warn"),
        ({"new": "abcd"}, False, "skipped"),
        ({"new": "abcd"}, True, "skipped"),
    ],
)
def test_answers_beside_those_of_the_baseline(answers: dict[str, str], promised: bool, status: str) -> None:
    assert golden.compared(answers, ANSWERS, promised, 0.5).status == status


def test_the_prompt_that_differs_most_is_named() -> None:
    assert "'two'" in golden.compared({"one": "abcx", "two": "x"}, ANSWERS, False, 0.9).fix
