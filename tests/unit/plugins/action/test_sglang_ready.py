# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.gpuserve.sglang.plugins.action import sglang_ready

Told = dict[str, Any]
READY: Told = {"ready": True, "ready_after": 95.0}
FAILED: Told = {"failed": True, "msg": "sglang@main.service ended"}


def going(status: str, run: str = "0a1b", quiet: bool = False) -> Told:
    seen = {"run": run, "restarts": 0, "waited": 8.0}
    return {"ready": False, "status": status, "seen": seen, "invocation": {"module_args": {"quiet": quiet}}}


class Action(sglang_ready.ActionModule):
    """The action without Ansible around it: what each look at the host says."""

    def __init__(self, looks: Iterator[Told | Exception], no_log: bool = False) -> None:
        arguments = {"url": "http://127.0.0.1:30000", "unit": "sglang@main.service"}
        self._task = SimpleNamespace(args=arguments, no_log=no_log)
        self.looks = looks
        self.asked: list[Told] = []

    def _execute_module(self, **named: Any) -> Told:
        self.asked.append(dict(named["module_args"]))
        said = next(self.looks)
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(sglang_ready.ActionBase, "run", lambda *_: {})
    monkeypatch.setattr(sglang_ready.time, "sleep", lambda _: None)
    monkeypatch.setattr(sglang_ready.display, "display", lines.append)
    monkeypatch.setattr(sglang_ready.display, "warning", lambda text: lines.append(f"WARNING {text}"))
    return lines


def run(*looks: Told | Exception, **named: bool) -> tuple[Action, Told]:
    action = Action(iter(looks), **named)
    return action, action.run(task_vars={"inventory_hostname": "ct200"})


def test_a_server_that_is_ready_is_not_talked_about(shown: list[str]) -> None:
    action, result = run(READY)
    assert (result["ready_after"], len(action.asked), shown) == (95.0, 1, [])


def test_each_look_is_shown_with_its_host(shown: list[str]) -> None:
    _, result = run(going("importing; 9 s since its start"), going("loading weights; 18 s since its start"), READY)
    assert result["ready"]
    assert shown == [
        "ct200: sglang@main.service: importing; 9 s since its start",
        "ct200: sglang@main.service: loading weights; 18 s since its start",
    ]


def test_the_next_look_knows_what_the_last_one_saw(shown: list[str]) -> None:
    action, _ = run(going("importing"), going("importing", run="2c3d"), READY)
    assert [asked.get("run") for asked in action.asked] == [None, "0a1b", "2c3d"]
    assert [asked.get("restarts") for asked in action.asked] == [None, 0, 0]
    waited = [asked["waited"] for asked in action.asked]
    assert waited == sorted(waited)


def test_a_failure_ends_it_at_once(shown: list[str]) -> None:
    action, result = run(going("importing"), FAILED)
    assert (result["failed"], result["msg"], len(action.asked)) == (True, "sglang@main.service ended", 2)


@pytest.mark.parametrize("named", [{"quiet": True}, {"no_log": True}])
def test_what_must_not_be_shown_is_not(shown: list[str], named: dict[str, bool]) -> None:
    no_log = named.get("no_log", False)
    run(going("importing", quiet=named.get("quiet", False)), READY, no_log=no_log)
    assert shown == []


def test_a_lost_connection_is_waited_for(shown: list[str]) -> None:
    _, result = run(going("importing"), AnsibleConnectionFailure("no route"), READY)
    assert result["ready"]
    assert shown[1].startswith("WARNING ct200: sglang@main.service: out of reach, the start goes on there: ")


def test_a_connection_that_does_not_come_back_ends_the_wait(shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang_ready, "PATIENCE", -1.0)
    with pytest.raises(AnsibleConnectionFailure):
        run(AnsibleConnectionFailure("no route"))
