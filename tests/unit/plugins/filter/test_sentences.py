# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.filter.sentences import FilterModule

SENTENCES = FilterModule().filters()["sentences"]
CHECKS = [
    {"id": "a", "status": "pass", "expected": "1", "actual": "1"},
    {"id": "b", "status": "fail", "expected": "1", "actual": "2", "fix": "use 1"},
    {"id": "c", "status": "skipped", "expected": "1", "actual": "no GPU"},
]


def test_failures_are_told_with_their_fix() -> None:
    assert SENTENCES(CHECKS) == ["[b] expected 1; found 2; fix: use 1"]


def test_what_was_not_checked_is_told_on_request() -> None:
    assert SENTENCES(CHECKS, "skipped") == ["[c] expected 1; found no GPU"]


def test_an_ignored_check_is_left_out() -> None:
    assert SENTENCES(CHECKS, ignore=["b"]) == []


@pytest.mark.parametrize(("checks", "status"), [("text", "fail"), (CHECKS, "broken")])
def test_what_makes_no_sense_is_refused(checks: object, status: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"gpuserve\.sglang\.sentences"):
        SENTENCES(checks, status)
