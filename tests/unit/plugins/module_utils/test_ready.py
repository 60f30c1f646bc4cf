# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import ready, startup, unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api

from tests.fixtures import engine_http
from tests.fixtures.engine_logs import LOGS, UNKNOWN
from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"
GROUP = "/system.slice/sglang"
LOADING = (
    "[2026-11-29 14:27:50] Load weight begin. avail mem=93.13 GB\n\rMulti-thread loading shards:  35% Completed | "
)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    return made


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that lists the unit's processes."""
    monkeypatch.setattr(unit, "_CGROUPS", tmp_path)
    file = tmp_path / GROUP.lstrip("/") / "cgroup.procs"
    file.parent.mkdir(parents=True)
    return file


def no_pause(_seconds: float) -> None:
    """In the place of time.sleep."""


def wait(answers: list[tuple[int, object]], unit_name: str | None = NAME, timeout: float = 60) -> float:
    with engine_http.running(engine_http.Engine({"/health": list(answers)})) as engine:
        return ready.look(api.Server(engine.url), unit_name, ready.Seen(), timeout, timeout, no_pause).since_start


def look(
    *answers: int, unit_name: str | None = NAME, seen: ready.Seen | None = None, limit: float = 0, timeout: float = 60
) -> ready.Look:
    told = [(status, "") for status in answers]
    with engine_http.running(engine_http.Engine({"/health": list(told)})) as engine:
        return ready.look(api.Server(engine.url), unit_name, seen or ready.Seen(), limit, timeout, no_pause)


def test_a_start_is_waited_for(systemd: Systemd) -> None:
    assert wait([(503, ""), (503, ""), (200, "")]) >= 0
    assert len(systemd.asked()) == 3


def test_without_a_unit_nobody_asks_systemd(systemd: Systemd) -> None:
    wait([(503, ""), (200, "")], unit_name=None)
    with pytest.raises(FileNotFoundError):
        systemd.asked()


def test_a_look_that_is_over_tells_how_far_it_is(systemd: Systemd) -> None:
    systemd.journal(f"{LOADING}23/64 [02:00<08:20,  1.10s/it]\n".encode())
    looked = look(503)
    assert not looked.ready
    assert looked.progress == startup.Progress("loading weights", "base model", 23, 64, 500)
    assert looked.sentence().startswith("loading weights of the base model: shard 23 of 64 (35 %), about 8 min left; ")
    assert looked.seen.run == "0a1b"


def test_a_compiler_among_its_processes_is_told(
    systemd: Systemd, cgroup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd.states(systemd.active(group=GROUP))
    cgroup.write_text(f"{os.getpid()}\n", encoding="ascii")
    assert not look(503).compiling
    monkeypatch.setattr(ready, "_COMPILERS", {unit.command(os.getpid())})
    assert "a kernel is being compiled" in look(503).sentence()


def test_without_a_unit_only_the_answer_is_waited_for(systemd: Systemd) -> None:
    assert look(503, unit_name=None).sentence() == "waiting for an answer; 0 s since its start"


def test_a_unit_that_fails_ends_the_wait_with_the_cause(systemd: Systemd) -> None:
    systemd.states(systemd.active(), systemd.failed())
    systemd.journal(LOGS["drafter.hidden_size"].encode())
    with pytest.raises(ready.NotReady) as ended:
        wait([(503, "")])
    lines = str(ended.value).splitlines()
    assert lines[0] == f"{NAME} ended after 23 s instead of serving (systemd says: failed, exit-code)."
    assert lines[1].startswith("Cause [drafter.hidden_size]: the drafter was made for another base model")
    assert ended.value.diagnosis is not None
    assert "journalctl --sync" in systemd.asked()


def test_an_unknown_failure_is_told_by_its_exception(systemd: Systemd) -> None:
    systemd.states(systemd.failed())
    systemd.journal(UNKNOWN.encode())
    with pytest.raises(ready.NotReady, match="First exception: ValueError: the moon is in the wrong house"):
        wait([(503, "")])


@pytest.mark.parametrize(
    "then", [Systemd.active(restarts=1, run="2c3d"), Systemd.active(sub="auto-restart", run="0a1b")]
)
def test_a_unit_that_systemd_starts_again_ends_the_wait_with_the_run_that_failed(systemd: Systemd, then: str) -> None:
    systemd.states(systemd.active(), then)
    with pytest.raises(ready.NotReady, match=r"instead of serving \(systemd says: it is started again"):
        wait([(503, "")])
    assert "_SYSTEMD_INVOCATION_ID=0a1b" in systemd.asked()[-1]


def test_an_earlier_look_is_remembered(systemd: Systemd) -> None:
    seen = look(503).seen
    systemd.states(systemd.active(restarts=1, run="2c3d"))
    with pytest.raises(ready.NotReady):
        look(503, seen=seen)


def test_restarts_of_former_days_do_not_count(systemd: Systemd) -> None:
    systemd.states(systemd.active(restarts=7))
    wait([(503, ""), (200, "")])


def test_a_person_who_starts_it_again_is_followed(systemd: Systemd) -> None:
    seen = look(503).seen
    systemd.states(systemd.active(run="2c3d"))
    assert look(503, seen=seen).seen.run == "2c3d"


def test_another_server_on_the_address_of_a_unit_that_ended(systemd: Systemd) -> None:
    systemd.states(systemd.failed())
    with pytest.raises(ready.NotReady, match="Something else answers at http"):
        wait([(200, "")])


def test_another_server_in_the_place_of_a_unit_that_still_loads(systemd: Systemd, cgroup: Path) -> None:
    systemd.states(systemd.active(group=GROUP))
    cgroup.write_text("1\n", encoding="ascii")
    with pytest.raises(ready.NotReady, match=rf"that is the process {os.getpid()} \(.*none of {NAME}, which will find"):
        look(200)


def test_an_answer_of_its_own_process(systemd: Systemd, cgroup: Path) -> None:
    systemd.states(systemd.active(group=GROUP))
    cgroup.write_text(f"{os.getpid()}\n", encoding="ascii")
    assert look(200).ready


def test_where_no_process_can_be_seen_an_answer_counts(systemd: Systemd) -> None:
    systemd.states(systemd.active(group=GROUP))
    assert look(200).ready


def test_a_unit_that_runs_on_without_its_port_ends_the_wait(systemd: Systemd) -> None:
    line = "[Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use"
    systemd.journal(f"[2026-11-29 20:39:24] ERROR:    {line}\n".encode())
    with pytest.raises(ready.NotReady, match=r"runs on without its port: .* is taken by another process") as ended:
        look(503)
    assert ended.value.diagnosis is not None
    assert "30000" in ended.value.diagnosis.story()


def test_a_unit_that_is_not_there_is_told_at_once(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\n")
    with pytest.raises(unit.UnitError, match="there is no unit"):
        wait([(503, "")])


def test_the_time_limit_tells_how_far_it_was(systemd: Systemd) -> None:
    systemd.journal(f"{LOADING}23/64 [02:00<08:20,  1.10s/it]\n".encode())
    with pytest.raises(ready.NotReady, match=r"did not answer within 0 s: loading weights .* shard 23 of 64"):
        wait([(503, "")], timeout=0)
    with pytest.raises(ready.NotReady, match=r"did not answer within 0 s; look at the log of its process\.$"):
        wait([(503, "")], unit_name=None, timeout=0)


def test_the_time_of_earlier_looks_counts(systemd: Systemd) -> None:
    with pytest.raises(ready.NotReady, match="within 60 s"):
        look(503, seen=ready.Seen(waited=61), limit=60)
