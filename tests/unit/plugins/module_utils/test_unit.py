# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit

from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"
RUN = "0a1b"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    return made


def test_a_running_unit(systemd: Systemd) -> None:
    systemd.states(systemd.active(restarts=2, group="/system.slice/a.service"))
    state = unit.state(NAME)
    assert state == unit.UnitState("active", "running", "success", 2, RUN, 1.0, None, "/system.slice/a.service")
    assert not state.ended
    assert systemd.asked() == [
        f"systemctl show {NAME} --property=LoadState,ActiveState,SubState,Result,NRestarts,InvocationID,"
        "ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic,ControlGroup,MainPID,NeedDaemonReload,UnitFileState"
    ]


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


def test_an_old_systemd_that_tells_less(systemd: Systemd) -> None:
    systemd.states("LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\n")
    assert unit.state(NAME) == unit.UnitState("active", "running", "success", 0)


@pytest.mark.parametrize(("told", "enabled"), [("enabled", True), ("disabled", False), ("static", False)])
def test_whether_it_is_started_at_boot(systemd: Systemd, told: str, enabled: bool) -> None:
    systemd.states(systemd.active() + f"UnitFileState={told}\n")
    assert unit.state(NAME).enabled is enabled


def test_how_long_it_ran(systemd: Systemd) -> None:
    systemd.states(systemd.failed(), systemd.active(), "ActiveState=activating\nExecMainStartTimestampMonotonic=0\n")
    assert unit.state(NAME).lasted == 23.0
    running = unit.state(NAME).lasted
    assert running is not None
    assert 0 <= time.monotonic() - 1.0 - running < 60
    assert unit.state(NAME).lasted is None


def test_a_unit_that_is_not_there_is_no_unit_that_ended_well(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nNRestarts=0\n")
    with pytest.raises(unit.UnitError, match=f"there is no unit {NAME}; install it"):
        unit.state(NAME)


def test_a_unit_whose_file_is_gone_still_runs(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=active\nSubState=running\nMainPID=7\nUnitFileState=\n")
    state = unit.state(NAME)
    assert (state.main_pid, state.ended, state.enabled) == (7, False, False)


def test_a_systemd_that_tells_nothing(systemd: Systemd) -> None:
    systemd.states("System has not been booted with systemd as init system\n")
    with pytest.raises(unit.UnitError, match="tells nothing of the unit"):
        unit.state(NAME)


def test_no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(unit.UnitError, match="systemctl show"):
        unit.state(NAME)
    unit.flush_journal()


def test_the_journal_of_one_run_with_what_systemd_said_of_it(systemd: Systemd) -> None:
    systemd.journal(b"\xff loaded\nTraceback\n")
    assert unit.journal(NAME, RUN, 5) == b"\xff loaded\nTraceback\n"
    assert systemd.asked() == [
        f"journalctl --lines=5 --output=cat --all --no-pager --quiet _SYSTEMD_INVOCATION_ID={RUN} + INVOCATION_ID={RUN}"
    ]


def test_the_journal_of_all_runs(systemd: Systemd) -> None:
    unit.journal(NAME, "", 5)
    assert systemd.asked() == [f"journalctl --lines=5 --output=cat --all --no-pager --quiet --unit={NAME}"]


def test_the_runs_that_systemd_spoke_of(systemd: Systemd) -> None:
    said = [{"INVOCATION_ID": "1"}, {"INVOCATION_ID": "1"}, {"__CURSOR": "s"}, {"INVOCATION_ID": "2"}]
    systemd.journal("\n".join([*(str(entry).replace("'", '"') for entry in said), "no JSON", ""]).encode())
    assert unit.runs(NAME) == ["1", "2"]


def test_processes_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "_CGROUPS", tmp_path)
    (tmp_path / "system.slice").mkdir()
    (tmp_path / "system.slice" / "cgroup.procs").write_text("12\n13\n", encoding="ascii")
    assert unit.processes("/system.slice") == [12, 13]
    assert unit.processes("/gone.slice") == []


def test_the_name_of_a_process() -> None:
    assert unit.command(os.getpid()) == Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    assert unit.command(2**30) == ""


def test_the_groups_of_a_process() -> None:
    assert unit.groups(os.getpid()) == {os.getegid(), *os.getgroups()}
    assert unit.groups(2**30) == set()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_who_listens(family: socket.AddressFamily) -> None:
    if family == socket.AF_INET6 and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with socket.socket(family, socket.SOCK_STREAM) as taken:
        taken.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert unit.listeners(port) == []
        taken.listen()
        assert unit.listeners(port) == [os.getpid()]


def test_without_a_proc_nobody_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "_PROC", tmp_path)
    assert unit.listeners(80) == []
