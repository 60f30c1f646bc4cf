# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import speed
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe.records import Answer

SLOW = {"one": Answer("a", 60, 1.0), "two": Answer("b", 60, 2.0)}


def test_the_rate_is_that_of_all_answers_together() -> None:
    assert speed.decode_rate(SLOW.values()) == 40.0


@pytest.mark.parametrize("answers", [[], [Answer("a", 0, 0.0)], [Answer("a", 5, 0.0)]])
def test_what_came_at_once_has_no_rate(answers: list[Answer]) -> None:
    assert speed.decode_rate(answers) is None


def test_only_prompts_of_both_are_compared() -> None:
    assert speed.speedup({"one": Answer("a", 90, 1.0), "new": Answer("c", 1, 100.0)}, SLOW) == 1.5
    assert speed.speedup({"new": Answer("c", 1, 100.0)}, SLOW) is None


@pytest.mark.parametrize(
    ("factor", "required", "status"),
    [(1.2, None, "pass"), (0.8, None, "warn"), (1.2, 1.1, "pass"), (1.05, 1.1, "fail"), (0.8, 0.7, "pass")],
)
def test_a_slower_one_fails_only_where_a_speedup_is_required(
    factor: float, required: float | None, status: str
) -> None:
    assert speed.faster(factor, 100.0, required).status == status
