# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.engine_logs import LOGS
from tests.fixtures.modules import run
from tests.fixtures.systemd import Systemd


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path / "systemd")


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_unit(systemd: Systemd, check_mode: bool) -> None:
    systemd.states(systemd.failed())
    systemd.journal(LOGS["drafter.vocabulary"].encode())
    result = run("sglang_diagnose", systemd.binaries, check_mode, unit="sglang@main.service")
    assert not result["changed"]
    assert result["diagnosis"]["finding"]["id"] == "drafter.vocabulary"
    assert result["summary"].startswith("Cause [drafter.vocabulary]: ")


def test_a_log_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    lines = [f"Nov 29 14:28:{second:02d} ct200 python[71]: {second}\n" for second in range(10)]
    file.write_bytes("".join(lines).encode() + LOGS["memory.unbalanced"].encode() + bytes(range(128, 256)))
    result = run("sglang_diagnose", log=str(file))
    found = result["diagnosis"]["finding"]
    assert (found["id"], found["number"]) == ("memory.unbalanced", 19)
    assert result["diagnosis"]["exception"]["where"].startswith("sglang/srt/distributed/bootstrap.py:366")
    assert "sk-very-secret" not in str(result)


def test_a_log_file_that_is_not_there(tmp_path: Path) -> None:
    result = run("sglang_diagnose", log=str(tmp_path / "engine.log"))
    assert result["failed"]
    assert "cannot be read: No such file or directory; correct the path" in result["msg"]


def test_a_unit_that_is_not_there(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\n")
    assert "there is no unit" in run("sglang_diagnose", systemd.binaries, unit="sglang@no.service")["msg"]


@pytest.mark.parametrize("arguments", [{}, {"unit": "a", "log": "/b"}])
def test_one_of_both(arguments: dict[str, str]) -> None:
    assert run("sglang_diagnose", **arguments)["failed"]
