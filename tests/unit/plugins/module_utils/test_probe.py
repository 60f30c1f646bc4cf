# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import probe
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import failing
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api

from tests.fixtures import engine_http

NUMBERS = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
EXPECTED = probe.Expected("EAGLE3", NUMBERS, 1.3)


def statuses(
    expected: probe.Expected = EXPECTED, accept_length: float | None = 2.0, text: str = "sea", **in_effect: object
) -> dict[str, str]:
    told = {**api.effective(engine_http.INFO), **in_effect}
    judged = probe.judge(expected, told, api.Generation(text, 8, accept_length))
    return {check.id: check.status for check in judged}


def test_what_was_asked_for_passes() -> None:
    assert set(statuses().values()) == {"pass"}
    assert list(statuses()) == [
        "generate.text",
        "speculation.algorithm",
        "speculation.speculative_num_steps",
        "speculation.speculative_eagle_topk",
        "speculation.speculative_num_draft_tokens",
        "speculation.accept_length",
    ]


@pytest.mark.parametrize(
    ("broken", "failed"),
    [
        (lambda: statuses(text=" \n"), "generate.text"),
        (lambda: statuses(speculative_algorithm=None), "speculation.algorithm"),
        (lambda: statuses(speculative_algorithm="EAGLE"), "speculation.algorithm"),
        (lambda: statuses(speculative_num_draft_tokens=2), "speculation.speculative_num_draft_tokens"),
        (lambda: statuses(accept_length=1.0), "speculation.accept_length"),
        (lambda: statuses(accept_length=1.2), "speculation.accept_length"),
        (lambda: statuses(accept_length=None), "speculation.accept_length"),
    ],
)
def test_each_that_is_off_fails_alone(broken: Callable[[], dict[str, str]], failed: str) -> None:
    assert [name for name, status in broken().items() if status != "pass"] == [failed]


@pytest.mark.parametrize(
    ("accept_length", "fix"),
    [
        (1.0, "nothing was accepted"),
        (1.2, "the drafter that was trained for this base model"),
        (None, "speculation flags"),
    ],
)
def test_the_fix_tells_nothing_accepted_from_too_little(accept_length: float | None, fix: str) -> None:
    judged = probe.judge(EXPECTED, engine_http.INFO, api.Generation("sea", 8, accept_length))
    assert [fix in check.fix for check in failing(judged)] == [True]


@pytest.mark.parametrize(("asked", "found"), [("NEXTN", "EAGLE"), ("EAGLE", "FROZEN_KV_MTP"), ("eagle3", "EAGLE3")])
def test_a_name_that_the_engine_spells_otherwise(asked: str, found: str) -> None:
    expected = probe.Expected(asked, NUMBERS, 1.3)
    assert statuses(expected, speculative_algorithm=found)["speculation.algorithm"] == "pass"


def test_without_speculation_its_proof_is_not_counted_as_passed() -> None:
    assert statuses(probe.Expected(None, {}, 1.3), None) == {
        "generate.text": "pass",
        "speculation.accept_length": "skipped",
    }
