# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.gpuserve.sglang.plugins.action import hf_snapshot

STATUS = "/srv/models/tiny folder/.gpuserve/status.json"
GOING = {"phase": "bring", "done": 250_000_000, "total": 10**9, "files_done": 1, "files": 4, "rate": 2.5e7, "note": ""}
RUNNING = json.dumps({"pid": 77, "progress": GOING})
RESULT = json.dumps({"pid": 77, "result": {"changed": True, "location": "/srv/models/tiny"}})


class Action(hf_snapshot.ActionModule):
    """The action without Ansible around it: what the module returns, and what each look at the host says."""

    def __init__(self, module: dict[str, Any], looks: Iterator[str | Exception], check_mode: bool = False) -> None:
        self._task = SimpleNamespace(args={"name": "models[0]"}, check_mode=check_mode, async_val=0)
        self.module, self.looks = module, looks
        self.asked: list[dict[str, Any]] = []
        self.commands: list[str] = []

    def _execute_module(self, **named: Any) -> dict[str, Any]:
        self.asked.append(named["module_args"])
        return dict(self.module)

    def _low_level_execute_command(self, cmd: str, **_: Any) -> dict[str, Any]:
        self.commands.append(cmd)
        said = next(self.looks)
        if isinstance(said, Exception):
            raise said
        return {"stdout": said}


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(hf_snapshot.ActionBase, "run", lambda *_: {})
    monkeypatch.setattr(hf_snapshot.time, "sleep", lambda _: None)
    monkeypatch.setattr(hf_snapshot.display, "display", lines.append)
    monkeypatch.setattr(hf_snapshot.display, "warning", lambda text: lines.append(f"WARNING {text}"))
    return lines


def run(
    *looks: str | Exception, joined: bool = False, quiet: bool = False, **named: Any
) -> tuple[Action, dict[str, Any]]:
    module = {
        "changed": True,
        "job": {"status": STATUS, "joined": joined},
        "invocation": {"module_args": {"quiet": quiet}},
    }
    action = Action(named.pop("module", module), iter(looks), **named)
    return action, action.run(task_vars={"inventory_hostname": "ct200"})


def test_a_model_that_is_there_is_not_waited_for(shown: list[str]) -> None:
    action, result = run(module={"changed": False, "location": "/srv/models/tiny"})
    assert (result["location"], action.commands, shown) == ("/srv/models/tiny", [], [])
    assert action.asked[0]["background"] is True


def test_check_mode_starts_nothing(shown: list[str]) -> None:
    action, _ = run(module={"changed": True}, check_mode=True)
    assert "background" not in action.asked[0]


def test_how_it_goes_is_shown_and_the_result_is_the_transfer_s(shown: list[str]) -> None:
    action, result = run(f"{RUNNING}\nalive\n", f"{RESULT}\ngone\n")
    assert result["location"] == "/srv/models/tiny"
    assert "job" not in result
    assert shown == ["ct200: models[0]: brought 250 MB of 1.0 GB (25 %), 1 of 4 files, 25.0 MB/s, 30 s left"]
    assert action.commands[0].startswith("cat '/srv/models/tiny folder/.gpuserve/status.json' && ")


def test_quiet_shows_nothing(shown: list[str]) -> None:
    run(f"{RUNNING}\nalive\n", f"{RESULT}\ngone\n", quiet=True)
    assert shown == []


def test_an_earlier_run_s_transfer_is_joined(shown: list[str]) -> None:
    run(f"{RUNNING}\nalive\n", f"{RESULT}\ngone\n", joined=True)
    assert shown[0] == "ct200: models[0]: joins the transfer that an earlier run began"


def test_a_lost_connection_is_waited_for(shown: list[str]) -> None:
    _, result = run(f"{RUNNING}\nalive\n", AnsibleConnectionFailure("no route"), f"{RESULT}\ngone\n")
    assert result["changed"]
    assert shown[1].startswith("WARNING ct200: models[0]: out of reach, the transfer goes on there: ")


def test_a_connection_that_does_not_come_back_ends_the_wait(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf_snapshot, "PATIENCE", -1.0)
    with pytest.raises(AnsibleConnectionFailure):
        run(AnsibleConnectionFailure("no route"))


def test_a_killed_transfer_is_told(shown: list[str]) -> None:
    _, result = run(f"{RUNNING}\nalive\n", f"{RUNNING}\ngone\n", f"{RUNNING}\ngone\n")
    assert result["failed"]
    assert "ended without a word" in result["msg"]


def test_the_last_word_is_heard_though_the_process_is_gone(shown: list[str]) -> None:
    _, result = run(f"{RUNNING}\nalive\n", f"{RUNNING}\ngone\n", f"{RESULT}\ngone\n")
    assert "failed" not in result


def test_half_a_status_is_read_again(shown: list[str]) -> None:
    _, result = run('{"pid": 7', f"{RUNNING}\nalive\n", f"{RESULT}\ngone\n")
    assert "failed" not in result


def test_a_status_that_stays_away_is_told(shown: list[str]) -> None:
    _, result = run("", "")
    assert result["failed"]
