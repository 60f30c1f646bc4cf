# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.run_lock import Holder, Lock

ANNA = Holder("anna@desk", "m1", "b1", 100, 0.0)
BERT = Holder("bert@laptop", "m2", "b2", 200, 0.0)


@pytest.fixture
def lock(tmp_path: Path) -> Lock:
    return Lock(tmp_path / "lock")


def take(
    lock: Lock, who: Holder, instead_of: str = "", break_it: bool = False, only_look: bool = False
) -> Holder | None:
    return lock.take(who, instead_of, break_it, only_look)


def test_one_run_holds_it_as_often_as_it_asks(lock: Lock) -> None:
    assert take(lock, ANNA) is None
    assert take(lock, replace(ANNA, since=9.0)) is None
    assert lock.holder() == ANNA


def test_a_second_run_is_told_who_holds_it(lock: Lock) -> None:
    take(lock, ANNA)
    other = take(lock, BERT)
    assert other == ANNA
    assert "anna@desk works on this host since" in ANNA.sentence()
    assert "-e run_lock_break=true" in ANNA.sentence()
    assert lock.holder() == ANNA


def test_it_comes_free(lock: Lock) -> None:
    take(lock, ANNA)
    lock.give_back(BERT)
    assert lock.holder() == ANNA
    lock.give_back(ANNA)
    assert take(lock, BERT) is None


@pytest.mark.parametrize(
    ("instead_of", "break_it"), [(ANNA.run, False), ("", True)], ids=["known to be gone", "broken"]
)
def test_it_is_taken_over(lock: Lock, instead_of: str, break_it: bool) -> None:
    take(lock, ANNA)
    assert take(lock, BERT, instead_of, break_it) is None
    assert lock.holder() == BERT


def test_another_that_is_gone_opens_nothing(lock: Lock) -> None:
    take(lock, ANNA)
    assert take(lock, BERT, "m1/b1/99") == ANNA


def test_a_look_takes_nothing(lock: Lock) -> None:
    assert take(lock, ANNA, only_look=True) is None
    assert not lock.file.exists()
    take(lock, ANNA)
    assert take(lock, BERT, only_look=True) == ANNA


def test_what_is_half_written_is_nobody_s(lock: Lock) -> None:
    lock.file.write_text('{"who": "an')
    assert take(lock, BERT) is None
    assert lock.holder() == BERT


def test_nothing_is_left_beside_it(lock: Lock) -> None:
    take(lock, ANNA)
    take(lock, BERT, break_it=True)
    assert [path.name for path in lock.file.parent.iterdir()] == ["lock"]


@pytest.mark.parametrize("told", [None, [], {}, {"who": "x"}, {**ANNA.as_dict(), "pid": "x"}])
def test_what_is_no_holder(told: object) -> None:
    assert Holder.read(told) is None
