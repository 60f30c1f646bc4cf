# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Generation
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import speculation

from tests.fixtures import engine_http

NUMBERS = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}


def answer(tokens: int, steps: int | None) -> Generation:
    return Generation("sea", tokens, steps, 10, 0)


def algorithm(asked: str | None, found: str | None) -> list[str]:
    return [check.status for check in speculation.algorithm(asked, {"speculative_algorithm": found})]


@pytest.mark.parametrize(
    ("asked", "found"),
    [("EAGLE3", "EAGLE3"), ("eagle3", "EAGLE3"), ("NEXTN", "EAGLE"), ("EAGLE", "FROZEN_KV_MTP")],
)
def test_the_algorithm_that_was_asked_for(asked: str, found: str) -> None:
    assert algorithm(asked, found) == ["pass"]


@pytest.mark.parametrize(("asked", "found"), [("EAGLE3", "EAGLE"), ("EAGLE3", None), (None, "EAGLE3")])
def test_another_algorithm_fails(asked: str | None, found: str | None) -> None:
    assert algorithm(asked, found) == ["fail"]


def test_neither_asked_nor_found_is_nothing_to_say() -> None:
    assert algorithm(None, None) == []


def test_each_number_is_judged_alone() -> None:
    told = {
        check.id: check.status
        for check in speculation.numbers({**NUMBERS, "speculative_num_steps": 5}, engine_http.INFO)
    }
    assert told == {
        "speculation.speculative_num_steps": "fail",
        "speculation.speculative_eagle_topk": "pass",
        "speculation.speculative_num_draft_tokens": "pass",
    }


def test_the_first_token_is_no_step_s() -> None:
    """64 tokens of which none was drafted take 63 steps: the prefill gave the first one."""
    assert speculation.accept_length([answer(64, 63)]) == 1.0


def test_the_accept_length_is_that_of_all_answers_together() -> None:
    assert speculation.accept_length([answer(11, 10), answer(101, 25)]) == pytest.approx(110 / 35)


@pytest.mark.parametrize("answers", [[], [answer(8, None)], [answer(8, 4), answer(8, None)], [answer(1, 0)]])
def test_without_verify_steps_there_is_no_accept_length(answers: list[Generation]) -> None:
    assert speculation.accept_length(answers) is None


@pytest.mark.parametrize(
    ("length", "status", "told"),
    [
        (1.3, "pass", ""),
        (1.0, "fail", "nothing was accepted"),
        (1.004, "fail", "nothing was accepted"),
        (1.2, "fail", "belong together"),
        (None, "fail", "speculation flags"),
    ],
)
def test_the_accept_length_against_its_floor(length: float | None, status: str, told: str) -> None:
    check = speculation.accepted(length, 1.3, 6)
    assert check.status == status
    assert told in check.sentence()
