# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import deploy, nodes, store
from ansible_collections.gpuserve.sglang.plugins.modules import sglang_release, sglang_release_info

from tests.fixtures.modules import in_process
from tests.fixtures.systemd import Systemd

SECRET = "hf_secret"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a start is asked for, on a host where nothing runs."""
    systemd = Systemd(tmp_path / "systemd")
    systemd.states("LoadState=not-found\nActiveState=inactive\nMainPID=0\n")
    monkeypatch.setenv("PATH", f"{systemd.binaries}:/usr/bin:/bin")
    root = tmp_path / "etc"
    monkeypatch.setattr(store, "ROOT", root)
    places = deploy.Places(root, tmp_path / "units", tmp_path / "cache", str(tmp_path / "dev" / "nvidia"))
    monkeypatch.setattr(deploy, "Places", lambda: places)
    engine, model = tmp_path / "engine", tmp_path / "model"
    engine.mkdir()
    model.mkdir()
    state.write_record(engine, state.Record("k", "3.11", {"sglang": "0.5.20"}))
    manifest.Manifest("there", None, {}).write(model)
    environment = f"HF_TOKEN={SECRET}\n"
    return {
        "instance": "main",
        "args": ["--port", "1"],
        "environment": environment,
        "venv": str(engine),
        "models": [str(model)],
    }


def take(capsys: pytest.CaptureFixture[str], asked: dict[str, Any], **other: object) -> dict[str, Any]:
    return in_process(capsys, sglang_release, **{"unit": "[Service]\n", **asked, **other})


def look(capsys: pytest.CaptureFixture[str], asked: dict[str, Any]) -> dict[str, Any]:
    return in_process(capsys, sglang_release_info, **asked)


def test_a_folder_in_the_place_of_a_file_is_named(
    capsys: pytest.CaptureFixture[str], asked: dict[str, Any], tmp_path: Path
) -> None:
    environment = tmp_path / "etc" / "main" / "releases" / take(capsys, asked)["release"] / "environment"
    environment.unlink()
    environment.mkdir()
    told = take(capsys, asked)
    assert told["msg"] == f"{environment}: there is a folder in the place of this file; move it away"
    environment.rmdir()
    assert take(capsys, asked)["changed"]


def test_from_first_deploy_to_rollback(capsys: pytest.CaptureFixture[str], asked: dict[str, Any]) -> None:
    assert look(capsys, asked)["known_good"] is False
    first = take(capsys, asked)
    assert (first["changed"], first["proven"], first["running"]) == (True, None, None)
    assert first["asked"]["url"] == "http://127.0.0.1:1"
    named = {"instance": "main", "release": first["release"]}
    assert in_process(
        capsys, sglang_release, **named, state="proven", told="6 passed", measured={"accept_length": 2.7}
    )["changed"]
    again = take(capsys, asked)
    assert (again["changed"], again["proven"]) == (False, True)
    assert look(capsys, asked)["known_good"] is True
    second = take(capsys, asked, args=["--port", "2"])
    in_process(capsys, sglang_release, **{**named, "release": second["release"]}, state="rejected", told="1.00")
    assert "failed its gates" in take(capsys, asked, args=["--port", "2"])["msg"]
    back = in_process(capsys, sglang_release, instance="main", state="back")
    assert (back["release"], back["changed"]) == (first["release"], True)
    told = look(capsys, {"instance": "main"})
    assert told["current"] == first["release"]
    shown = {one["release"]: (one["proven"], one["told"], one["current"]) for one in told["releases"]}
    assert shown == {first["release"]: (True, "6 passed", True), second["release"]: (False, "1.00", False)}
    assert "known_good" not in told


def test_what_it_would_be_as_the_current_one(capsys: pytest.CaptureFixture[str], asked: dict[str, Any]) -> None:
    assert "as_current" not in look(capsys, asked)
    unit = {"unit": "[Service]\n"}
    assert look(capsys, {**asked, **unit})["as_current"]["changed"] is True
    assert look(capsys, {"instance": "main"})["releases"] == []
    taken = take(capsys, asked)
    seen = look(capsys, {**asked, **unit})["as_current"]
    again = take(capsys, asked)
    assert {name: again[name] for name in seen} == seen
    assert (seen["changed"], seen["settled"], seen["unit"]) == (False, False, "sglang@main.service")
    assert look(capsys, {**asked, "unit": "[Service]\nUser=root\n"})["as_current"]["changed"] is True
    in_process(capsys, sglang_release, instance="main", release=taken["release"], state="rejected", told="1.00")
    assert look(capsys, {**asked, **unit})["as_current"] is None
    assert "unit" in in_process(capsys, sglang_release_info, instance="main", **unit)["msg"]


def test_device_nodes_are_judged_and_give_their_groups(
    capsys: pytest.CaptureFixture[str], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(capsys, asked)["checks"] == []
    node = nodes.Node("/dev/nvidia0", 0o660, 104, "render")
    monkeypatch.setattr(nodes, "look", lambda prefix: [node])
    (check,) = look(capsys, asked)["checks"]
    assert (check["id"], check["status"]) == ("service.nodes", "pass")
    assert take(capsys, asked, unit="SupplementaryGroups=@groups@\n")["diff"]["after"] == "SupplementaryGroups=render\n"
    monkeypatch.setattr(nodes, "look", lambda prefix: [replace(node, group="")])
    assert look(capsys, asked)["checks"][0]["status"] == "fail"
    assert "groupadd --gid 104 nvidia" in take(capsys, asked)["msg"]


def test_a_model_from_elsewhere_is_never_known_good(
    capsys: pytest.CaptureFixture[str], asked: dict[str, Any], tmp_path: Path
) -> None:
    asked = {**asked, "models": [str(tmp_path / "elsewhere")]}
    release = take(capsys, asked)["release"]
    in_process(capsys, sglang_release, instance="main", release=release, state="proven")
    told = look(capsys, asked)
    assert told["parts"][str(tmp_path / "elsewhere")] is None
    assert told["known_good"] is False


def test_no_secret_is_told(capsys: pytest.CaptureFixture[str], asked: dict[str, Any]) -> None:
    for told in (take(capsys, asked), look(capsys, asked)):
        assert SECRET not in str({name: value for name, value in told.items() if name != "invocation"})
        assert SECRET not in str(told["invocation"])


def test_what_is_missing_is_told(capsys: pytest.CaptureFixture[str], asked: dict[str, Any]) -> None:
    told = in_process(capsys, sglang_release, instance="main", state="back")
    assert told["msg"].startswith("instance main has no release whose gates passed")
    assert "unit" in in_process(capsys, sglang_release, **asked)["msg"]


def test_a_disk_that_takes_nothing(capsys: pytest.CaptureFixture[str], asked: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file in the way")
    assert "check free space and permissions" in take(capsys, asked)["msg"]
