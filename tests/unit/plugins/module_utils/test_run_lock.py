# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.run_lock import Holder, Lock, holder, text

ANNA = Holder("anna@desk", "m1", "b1", 100, 0.0)
BERT = Holder("bert@laptop", "m2", "b2", 200, 0.0)
# Another run of the same process number, and one whose number begins with the other's.
LIKE_ANNA = [replace(ANNA, boot="b3"), replace(ANNA, pid=1000)]


@pytest.fixture
def lock(tmp_path: Path) -> Lock:
    # A name that the shell would make something of.
    return Lock(str(tmp_path / "the lock$(x)"))


def asked(line: str) -> str:
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    written = text(f"a warning of the shell's\n{done.stdout}")
    assert written is not None
    return written


def held(lock: Lock) -> Holder | None:
    return holder(asked(lock.look()))


def test_one_run_holds_it_as_often_as_it_asks(lock: Lock) -> None:
    assert holder(asked(lock.take(ANNA))) == ANNA
    assert holder(asked(lock.take(replace(ANNA, since=9.0)))) == ANNA


def test_a_second_run_is_told_who_holds_it(lock: Lock) -> None:
    asked(lock.take(ANNA))
    assert holder(asked(lock.take(BERT))) == ANNA
    assert "anna@desk works on this host since" in ANNA.sentence()
    assert "-e run_lock_break=true" in ANNA.sentence()
    assert held(lock) == ANNA


@pytest.mark.parametrize("other", [BERT, *LIKE_ANNA], ids=["another", "another boot", "a longer number"])
def test_it_comes_free_for_its_holder_alone(lock: Lock, other: Holder) -> None:
    asked(lock.take(ANNA))
    asked(lock.give_back(other))
    assert held(lock) == ANNA
    asked(lock.give_back(replace(ANNA, since=9.0)))
    assert held(lock) is None
    asked(lock.give_back(ANNA))
    assert holder(asked(lock.take(BERT))) == BERT


def test_it_is_taken_over_from_who_was_seen(lock: Lock) -> None:
    seen = asked(lock.take(ANNA))
    assert holder(asked(lock.take_over(BERT, seen))) == BERT
    # Somebody else saw the same, and comes too late.
    late = replace(BERT, pid=201)
    assert holder(asked(lock.take_over(late, seen))) == BERT
    assert holder(asked(lock.take_over(late, None))) == late


def test_a_look_takes_nothing(lock: Lock) -> None:
    assert asked(lock.look()) == ""
    assert not Path(lock.file).exists()


def test_what_is_half_written_is_nobody_s_and_stays_until_it_is_replaced(lock: Lock) -> None:
    Path(lock.file).write_text('{"who": "an')
    assert holder(asked(lock.take(BERT))) is None
    assert holder(asked(lock.take_over(BERT, None))) == BERT


def test_nothing_is_left_beside_it(lock: Lock) -> None:
    for line in (lock.take(ANNA), lock.take(BERT), lock.take_over(BERT, None)):
        asked(line)
    assert [str(path) for path in Path(lock.file).parent.iterdir()] == [lock.file]


@pytest.mark.parametrize("make", [Lock.take, lambda lock, who: lock.take_over(who, None)], ids=["take", "take over"])
def test_what_cannot_be_written_is_an_error(tmp_path: Path, make: Callable[[Lock, Holder], str]) -> None:
    line = make(Lock(str(tmp_path / "missing" / "lock")), ANNA)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "missing/lock" in done.stderr


def test_of_many_at_once_one_takes_it(lock: Lock) -> None:
    everybody = [replace(ANNA, pid=number) for number in range(20)]
    runs = [subprocess.Popen(["sh", "-c", lock.take(who)], stdout=subprocess.PIPE, text=True) for who in everybody]
    assert {text(run.communicate()[0]) for run in runs} == {asked(lock.look())}


def test_two_that_find_what_is_nobody_s_do_not_both_take_it(lock: Lock) -> None:
    Path(lock.file).write_text('{"who": "an')
    seen = [asked(lock.take(who)) for who in (ANNA, BERT)]
    assert holder(asked(lock.take_over(ANNA, seen[0]))) == ANNA
    assert holder(asked(lock.take_over(BERT, seen[1]))) == ANNA


@pytest.mark.parametrize("told", ["", "{}", "bash: warning: setlocale: LC_ALL: cannot change locale\n"])
def test_a_shell_that_did_not_come_to_it_tells_no_text(told: str) -> None:
    assert text(told) is None


@pytest.mark.parametrize("told", ["", "null", "[]", "{}", '{"who": "x"}', '{"who"', "\x00"])
def test_what_is_no_holder(told: str) -> None:
    assert holder(told) is None


@pytest.mark.parametrize("told", [None, {**ANNA.as_dict(), "pid": "x"}])
def test_what_is_no_holder_s_data(told: object) -> None:
    assert Holder.read(told) is None
