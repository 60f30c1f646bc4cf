# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.filter.not_checked import FilterModule

NOT_CHECKED = FilterModule().filters()["not_checked"]


def check(name: str, status: str, actual: str) -> dict[str, str]:
    return {"id": name, "status": status, "expected": "1", "actual": actual, "fix": "use 1"}


def test_one_line_for_each_reason_in_the_order_of_the_checks() -> None:
    checks = [
        check("z.first", "skipped", "run on the host"),
        check("b", "pass", "1"),
        check("a.other", "skipped", "no GPU"),
        check("a.third", "skipped", "run on the host"),
    ]
    assert NOT_CHECKED(checks) == [
        "z.first, a.third not checked: run on the host",
        "a.other not checked: no GPU",
    ]


def test_what_failed_or_passed_is_not_told() -> None:
    assert NOT_CHECKED([check("a", "pass", "1"), check("b", "fail", "2"), check("c", "warn", "2")]) == []


def test_one_check_that_was_skipped_twice_is_told_once() -> None:
    assert NOT_CHECKED([check("a", "skipped", "no GPU")] * 2) == ["a not checked: no GPU"]


def test_what_is_no_list_of_checks_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match=r"gpuserve\.sglang\.not_checked"):
        NOT_CHECKED("text")
