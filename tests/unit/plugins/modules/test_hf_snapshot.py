# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
from pathlib import Path

from lab.hub import HubServer
from tests.fixtures.modules import run


def test_check_mode_tells_what_would_be_brought_and_writes_nothing(model: Path, tmp_path: Path) -> None:
    result = run("hf_snapshot", dest=str(tmp_path / "dest"), source=str(model), check_mode=True)
    assert (result["changed"], result["location"], result["missing_bytes"]) == (True, str(model), 100_003)
    assert result["missing"] == ["config.json", "model.safetensors"]
    assert not (tmp_path / "dest").exists()


def test_the_second_run_changes_nothing(model: Path, tmp_path: Path) -> None:
    parameters = {"dest": str(tmp_path / "dest"), "source": str(model)}
    first, second = run("hf_snapshot", **parameters), run("hf_snapshot", **parameters)
    assert (first["changed"], second["changed"]) == (True, False)
    assert second["location"] == second["model"] == str(tmp_path / "dest")
    assert (second["files"], second["missing"], second["paste"]) == (2, [], "")


def test_a_branch_needs_leave_and_shows_the_line_that_pins_it(hub: HubServer, model: Path, tmp_path: Path) -> None:
    commit = hub.add("lab/tiny", model).commit
    parameters = {"dest": str(tmp_path / "dest"), "repo_id": "lab/tiny", "endpoint": hub.endpoint, "name": "models[0]"}
    refused = run("hf_snapshot", **parameters, revision="main")
    assert refused["failed"]
    assert refused["msg"].startswith("models[0]: expected a commit of 40 hexadecimal digits as revision; found 'main'")
    looked = run("hf_snapshot", **parameters, allow_moving=True, check_mode=True)
    assert (looked["location"], looked["commit"]) == (f"lab/tiny@{commit}", commit)
    held = run("hf_snapshot", **parameters, allow_moving=True, python=sys.executable)
    assert held["paste"] == f"to pin models[0], write into it: revision: {commit}"
    pinned = run("hf_snapshot", **parameters, revision=commit)
    assert (pinned["changed"], pinned["paste"], pinned["location"]) == (False, "", str(tmp_path / "dest"))


def test_an_error_names_the_model_and_keeps_the_token_out(hub: HubServer, model: Path, tmp_path: Path) -> None:
    hub.add("lab/gated", model, token="hf_secret", gated=True)
    result = run(
        "hf_snapshot",
        dest=str(tmp_path / "dest"),
        repo_id="lab/gated",
        allow_moving=True,
        endpoint=hub.endpoint,
        token="hf_wrong",
        name="models[1]",
    )
    assert result["msg"].startswith("models[1]: lab/gated at revision main on ")
    assert "hf_wrong" not in json.dumps(result)
