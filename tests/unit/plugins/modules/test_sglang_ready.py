# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import engine_http
from tests.fixtures.engine_logs import LOGS
from tests.fixtures.modules import run
from tests.fixtures.systemd import Systemd

UNIT = "sglang@main.service"


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path / "systemd")


def test_a_server_that_is_ready(systemd: Systemd) -> None:
    with engine_http.running(engine_http.serving()) as engine:
        result = run("sglang_ready", systemd.binaries, url=engine.url, unit=UNIT, api_key="sk")
    assert (result["changed"], result["ready"], result["phase"]) == (False, True, "ready")
    assert engine.asked[0][2] == "Bearer sk"


def test_a_look_at_a_start(systemd: Systemd) -> None:
    systemd.journal(b"[2026-11-29 14:28:46] Load weight begin. avail mem=93.13 GB\n")
    with engine_http.running(engine_http.Engine({"/health": [(503, "")]})) as engine:
        result = run("sglang_ready", systemd.binaries, url=engine.url, unit=UNIT, look=0, waited=3)
    assert (result["ready"], result["phase"], result["percent"], result["left"]) == (
        False,
        "loading weights",
        None,
        None,
    )
    assert result["status"].startswith("loading weights of the base model; ")
    assert (result["seen"]["run"], result["seen"]["restarts"], result["seen"]["waited"] >= 3) == ("0a1b", 0, True)


def test_a_unit_that_failed_tells_why(systemd: Systemd) -> None:
    systemd.states(systemd.failed())
    systemd.journal(LOGS["service.port"].encode())
    result = run("sglang_ready", systemd.binaries, url="http://127.0.0.1:9", unit=UNIT)
    assert result["failed"]
    assert "Cause [service.port]: another process listens on port 30000" in result["msg"]
    assert result["diagnosis"]["finding"]["id"] == "service.port"


def test_no_unit(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\n")
    assert "there is no unit" in run("sglang_ready", systemd.binaries, url="http://127.0.0.1:9", unit=UNIT)["msg"]
