# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import engine_http
from tests.fixtures.modules import run
from tests.fixtures.systemd import Systemd

NUMBERS = {"speculative_num_steps": "3", "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
ASKED = {"algorithm": "EAGLE3", "numbers": NUMBERS}


@pytest.fixture
def systemd(tmp_path: Path) -> Systemd:
    return Systemd(tmp_path / "systemd")


def test_a_server_that_does_what_was_asked(systemd: Systemd) -> None:
    with engine_http.running(engine_http.serving()) as engine:
        result = run("sglang_probe", systemd.binaries, url=engine.url, unit="sglang@main.service", **ASKED)
    assert not result.get("failed"), result["msg"]
    assert (result["changed"], result["accept_length"], result["completion"]) == (False, 2.0, " and the sea")
    assert result["summary"] == f"{engine.url}: 6 passed"


def test_speculation_that_accepts_nothing_fails_and_still_tells_its_checks(systemd: Systemd) -> None:
    with engine_http.running(engine_http.serving(accept_length=1.0)) as engine:
        result = run("sglang_probe", systemd.binaries, url=engine.url, **ASKED)
    assert result["failed"]
    assert "[speculation.accept_length] expected at least 1.30; found 1.00; fix: nothing was accepted" in result["msg"]
    assert len(result["checks"]) == 6


def test_a_unit_that_ended_is_told_with_its_journal(systemd: Systemd) -> None:
    systemd.states(systemd.failed())
    systemd.journal(b"RuntimeError: no kernel image\n")
    with engine_http.running(engine_http.Engine({"/health": [(503, "")]})) as engine:
        result = run("sglang_probe", systemd.binaries, url=engine.url, unit="sglang@main.service")
    assert "RuntimeError: no kernel image" in result["msg"]


def test_a_broken_generation_is_told(systemd: Systemd) -> None:
    engine = engine_http.serving()
    engine.answers["/generate"] = [(500, {"error": "out of memory"})]
    with engine_http.running(engine):
        result = run("sglang_probe", systemd.binaries, url=engine.url)
    assert "HTTP 500" in result["msg"]
    assert "out of memory" in result["msg"]


def test_numbers_that_are_none(systemd: Systemd) -> None:
    result = run("sglang_probe", systemd.binaries, url="http://127.0.0.1:9", numbers={"speculative_num_steps": "x"})
    assert "numbers must map names to whole numbers" in result["msg"]
