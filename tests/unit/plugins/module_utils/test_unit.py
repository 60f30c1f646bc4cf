# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit

from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    return made


def test_a_running_unit(systemd: Systemd) -> None:
    systemd.states(systemd.active(restarts=2))
    state = unit.state(NAME)
    assert state == unit.UnitState("active", "running", "success", 2)
    assert not state.ended
    assert systemd.asked() == [f"systemctl show {NAME} --property=LoadState,ActiveState,SubState,Result,NRestarts"]


@pytest.mark.parametrize(
    "told",
    [
        Systemd.failed(),
        Systemd.active(sub="auto-restart"),
        "LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\nNRestarts=0\n",
    ],
    ids=["failed", "waiting to be started again", "stopped"],
)
def test_a_unit_that_ended(systemd: Systemd, told: str) -> None:
    systemd.states(told)
    assert unit.state(NAME).ended


def test_an_old_systemd_that_counts_no_restarts(systemd: Systemd) -> None:
    systemd.states("LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\n")
    assert unit.state(NAME).restarts == 0


def test_a_unit_that_is_not_there_is_no_unit_that_ended_well(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nNRestarts=0\n")
    with pytest.raises(unit.UnitError, match=f"there is no unit {NAME}; install it"):
        unit.state(NAME)


def test_a_systemd_that_tells_nothing(systemd: Systemd) -> None:
    systemd.states("System has not been booted with systemd as init system\n")
    with pytest.raises(unit.UnitError, match="tells nothing of the unit"):
        unit.state(NAME)


def test_no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(unit.UnitError, match="systemctl show"):
        unit.state(NAME)


def test_the_journal_may_hold_anything(systemd: Systemd) -> None:
    systemd.journal(b"\xff loaded\nTraceback\n")
    assert unit.journal_tail(NAME, 5) == "\N{REPLACEMENT CHARACTER} loaded\nTraceback"
    assert systemd.asked() == [f"journalctl --unit={NAME} --lines=5 --output=cat --no-pager --quiet"]


def test_an_empty_journal_is_told(systemd: Systemd) -> None:
    systemd.journal(b"")
    assert unit.journal_tail(NAME, 5) == f"(the journal has no line of {NAME})"
