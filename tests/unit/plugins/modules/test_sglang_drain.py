# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from tests.fixtures.modules import run
from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"


def test_check_mode_sends_no_signal(tmp_path: Path) -> None:
    systemd = Systemd(tmp_path)
    systemd.states("LoadState=loaded\nActiveState=active\nMainPID=77\n")
    assert run("sglang_drain", systemd.binaries, check_mode=True, unit=NAME)["changed"]
    assert [asked for asked in systemd.asked() if " kill " in asked] == []


def test_one_that_does_not_run_is_left_alone(tmp_path: Path) -> None:
    systemd = Systemd(tmp_path)
    systemd.states("LoadState=loaded\nActiveState=failed\nMainPID=0\n")
    told = run("sglang_drain", systemd.binaries, unit=NAME)
    assert (told["changed"], told["drained"]) == (False, True)
    assert [asked for asked in systemd.asked() if " kill " in asked] == []


def test_one_that_takes_too_long_is_told(tmp_path: Path) -> None:
    systemd = Systemd(tmp_path)
    systemd.states("LoadState=loaded\nActiveState=active\nMainPID=77\n")
    told = run("sglang_drain", systemd.binaries, unit=NAME, timeout=0)
    assert (told["changed"], told["drained"]) == (True, False)
    assert f"{NAME} still answers requests after 0 s; a restart cuts them now" in str(told["warnings"])


def test_no_unit(tmp_path: Path) -> None:
    systemd = Systemd(tmp_path)
    systemd.states("LoadState=not-found\nActiveState=inactive\nMainPID=0\n")
    assert "there is no unit" in run("sglang_drain", systemd.binaries, unit=NAME)["msg"]
