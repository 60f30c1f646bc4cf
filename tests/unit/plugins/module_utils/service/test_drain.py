# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.drain import drain

from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"
RUNS = "LoadState=loaded\nActiveState=active\nMainPID=77\n"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    return made


def test_it_is_asked_once_and_waited_for(systemd: Systemd) -> None:
    # The second answer is to the signal.
    systemd.states(RUNS, RUNS, RUNS, "LoadState=loaded\nActiveState=inactive\nMainPID=0\n")
    assert drain(NAME, 60, sleep=lambda seconds: None)[0]
    signals = [asked for asked in systemd.asked() if " kill " in asked]
    assert signals == [f"systemctl kill --kill-who=main --signal=SIGINT {NAME}"]


def test_one_that_systemd_started_again_has_ended(systemd: Systemd) -> None:
    systemd.states(RUNS, RUNS, RUNS.replace("77", "78"))
    assert drain(NAME, 60, sleep=lambda seconds: None)[0]


def test_one_that_takes_too_long_goes_on(systemd: Systemd) -> None:
    systemd.states(RUNS)
    assert not drain(NAME, 0, sleep=lambda seconds: None)[0]
