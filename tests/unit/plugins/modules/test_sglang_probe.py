# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import deploy, store
from ansible_collections.gpuserve.sglang.plugins.modules import sglang_probe

from tests.fixtures import engine_http
from tests.fixtures.modules import in_process, run

NUMBERS = {"speculative_num_steps": "3", "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
ASKED: dict[str, Any] = {"algorithm": "EAGLE3", "numbers": NUMBERS}
IDENTITY = {"model": "abc", "engine": "0.5.20", "gpus": ["NVIDIA H200"]}


def test_a_server_that_does_what_was_asked(tmp_path: Path) -> None:
    kept = {"records": str(tmp_path), "identity": IDENTITY}
    with engine_http.running(engine_http.autoregressive()) as engine:
        baseline = run("sglang_probe", url=engine.url, release="plain", **kept)
    assert not baseline.get("failed"), baseline["msg"]
    assert (baseline["accept_length"], baseline["baseline"]) == (None, None)
    with engine_http.running(engine_http.serving()) as engine:
        result = run("sglang_probe", url=engine.url, release="3f2a", api_key="secret", **ASKED, **kept)
    assert not result.get("failed"), result["msg"]
    assert (result["changed"], result["accept_length"], result["cached_ratio"]) == (False, 1.8, 0.9)
    assert result["completion"] == " and the sea is wide"
    assert result["in_effect"]["version"] == "0.5.20"
    assert (result["baseline"]["release"], result["baseline"]["speedup"] > 0) == ("plain", True)
    assert result["decode_rate"] > 0
    assert result["seconds"] > 0
    assert json.loads((tmp_path / "3f2a.json").read_text())["runs"]["full"]["passed"]
    assert {key for _path, _body, key in engine.asked} == {"Bearer secret"}


def test_check_mode_asks_and_writes_nothing(tmp_path: Path) -> None:
    with engine_http.running(engine_http.serving()) as engine:
        result = run("sglang_probe", check_mode=True, url=engine.url, level="quick", records=str(tmp_path), **ASKED)
    assert result["summary"] == f"{engine.url}: 8 passed, 1 not checked"
    assert list(tmp_path.iterdir()) == []


def test_speculation_that_accepts_nothing_fails_and_still_tells_its_checks() -> None:
    with engine_http.running(engine_http.serving(steps=63)) as engine:
        result = run("sglang_probe", url=engine.url, **ASKED)
    assert result["failed"]
    assert "[speculation.accept_length] expected at least 1.30; found 1.00 over 6 prompts: nothing was" in result["msg"]
    assert (result["accept_length"], len(result["checks"])) == (1.0, 16)


def test_who_asks_not_to_fail_is_told_all_the_same() -> None:
    with engine_http.running(engine_http.serving(steps=63)) as engine:
        result = run("sglang_probe", url=engine.url, fail_on="never", **ASKED)
    assert not result.get("failed")
    assert "1 failed" in result["summary"]


@pytest.mark.parametrize(
    ("answer", "told", "fix"),
    [
        ((401, {"error": "Unauthorized"}), "HTTP 401", "give the server's key as api_key"),
        ((500, b"<html><h1>Bad gateway</h1>"), "HTTP 500", "journal of the server"),
        ((200, b"{"), "the answer is no JSON", "another server has its address"),
        (engine_http.Written(lambda handler: None), "no answer", "sglang_diagnose"),
    ],
    ids=["key", "html", "cut", "closed"],
)
def test_what_does_not_tell_its_arguments_is_told(answer: engine_http.Answer, told: str, fix: str) -> None:
    engine = engine_http.serving()
    engine.answers["/server_info"] = [answer]
    with engine_http.running(engine):
        result = run("sglang_probe", url=engine.url)
    assert result["failed"]
    assert f"{engine.url}/server_info: {told}" in result["msg"]
    assert fix in result["msg"]


def test_nobody_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = run("sglang_probe", url=f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert "no answer" in result["msg"]
    assert "refused" in result["msg"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"numbers": {"speculative_num_steps": "x"}}, "numbers must map names to whole numbers"),
        ({"timeout": 0}, "timeout must be at least 1 second"),
        ({"records": "/nonexistent", "release": "../x"}, "no name for a file"),
    ],
)
def test_parameters_that_are_none(parameters: dict[str, object], told: str) -> None:
    assert told in run("sglang_probe", url="http://127.0.0.1:9", **parameters)["msg"]


FLAGS = ["--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1"]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> store.Store:
    """The releases of instance main, none of which runs."""
    monkeypatch.setattr(store, "ROOT", tmp_path / "etc")
    return store.Store(tmp_path / "etc" / "main")


def test_what_runs_is_asked_as_its_release_was_started(
    kept: store.Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_http.running(engine_http.serving()) as engine:
        port = engine.url.rpartition(":")[2]
        release = deploy.record([*FLAGS, "--port", port], "", "", Path("/opt/engine"), [])
        kept.write(release, "[Service]\n", "", "admin-api-key: other\napi-key: 'it''s'\n")
        monkeypatch.setattr(deploy, "running", lambda instance: (release.release, None))
        result = in_process(capsys, sglang_probe, instance="main", level="quick")
    assert not result.get("failed"), result["msg"]
    assert result["release"] == release.release
    assert {key for _path, _body, key in engine.asked} == {"Bearer it's"}
    assert "--speculative-num-steps 3" in [check["expected"] for check in result["checks"]]


@pytest.mark.parametrize(("runs", "found"), [(None, "nothing runs"), ("", "from none"), ("gone", "from none")])
def test_what_runs_from_no_release_cannot_be_asked_so(
    kept: store.Store,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    runs: str | None,
    found: str,
) -> None:
    monkeypatch.setattr(deploy, "running", lambda instance: (runs, None))
    told = in_process(capsys, sglang_probe, instance="main")["msg"]
    assert told.startswith("sglang@main.service: expected an engine that was started from a release; found ")
    assert found in told
    assert told.endswith("fix: run the main playbook")


def test_an_instance_or_an_address_is_needed_and_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert "one of the following is required: instance, url" in in_process(capsys, sglang_probe)["msg"]
    both = in_process(capsys, sglang_probe, instance="main", url="http://127.0.0.1:1")
    assert "mutually exclusive: instance|url" in both["msg"]
