# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import (
    Check,
    as_dicts,
    failing,
    failure_message,
    from_dicts,
    not_checked,
    summary,
    table,
)

PASSED = Check("a.one", "pass", "1", "1")
WARNED = Check("a.two", "warn", "2", "3", "use 2")
FAILED = Check("a.three", "fail", "4", "5", "use 4")
SKIPPED = Check("a.four", "skipped", "6", "no GPU here")


def test_skipped_is_told_apart_from_passed() -> None:
    assert summary("flags", [PASSED, SKIPPED]) == "flags: 1 passed, 1 not checked"


def test_no_checks_is_not_a_pass() -> None:
    assert summary("flags", []) == "flags: nothing was checked"


@pytest.mark.parametrize(("fail_on", "expected"), [("fail", [FAILED]), ("warn", [WARNED, FAILED]), ("never", [])])
def test_what_stops_a_run(fail_on: str, expected: list[Check]) -> None:
    assert failing([PASSED, WARNED, FAILED, SKIPPED], fail_on) == expected


def test_failure_message_names_expected_found_and_fix() -> None:
    message = failure_message("flags", [PASSED, FAILED])
    assert message == "flags: 1 passed, 1 failed\n[a.three] expected 4; found 5; fix: use 4"


def test_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status 'ok' is none of"):
        Check("a", "ok", "1", "1")


def test_failure_without_a_fix_is_refused() -> None:
    with pytest.raises(ValueError, match="without a fix"):
        Check("a", "fail", "1", "2")


def test_as_dicts_carries_every_field() -> None:
    assert as_dicts([SKIPPED]) == [
        {"id": "a.four", "status": "skipped", "expected": "6", "actual": "no GPU here", "fix": "", "source": ""}
    ]


def test_checks_survive_the_way_through_a_module() -> None:
    assert from_dicts(as_dicts([PASSED, FAILED])) == [PASSED, FAILED]


@pytest.mark.parametrize("told", [None, "text", [1], [{"id": "a"}], [{"id": "a", "colour": "red"}]])
def test_what_are_no_checks_is_refused(told: object) -> None:
    with pytest.raises(ValueError, match="expected a list of checks"):
        from_dicts(told)


def test_table_has_a_line_for_each_check_in_columns() -> None:
    assert table([PASSED, SKIPPED]) == ["pass    a.one   1", "skipped a.four  no GPU here"]


def test_table_says_what_to_do_about_a_warning() -> None:
    assert table([WARNED, FAILED]) == ["warn    a.two    3; fix: use 2", "fail    a.three  5"]


def test_table_of_nothing_is_empty() -> None:
    assert table([]) == []


def test_what_was_not_checked_is_told_by_its_reason() -> None:
    other = Check("a.five", "skipped", "7", "no GPU here")
    assert not_checked([SKIPPED, PASSED, other, FAILED]) == ["a.four, a.five not checked: no GPU here"]
    assert not_checked([PASSED, WARNED, FAILED]) == []
