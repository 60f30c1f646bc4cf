# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

from lab.hub import HubServer
from tests.fixtures.modules import run


def look(*models: dict[str, object], **parameters: object) -> dict[str, object]:
    return run("hf_snapshot_info", models=list(models), **parameters)


def test_what_would_be_brought_and_nothing_is_written(model: Path, tmp_path: Path) -> None:
    result = look({"dest": str(tmp_path / "dest"), "source": str(model)})
    assert not result["changed"]
    (told,) = result["models"]
    assert [(check["id"], check["status"]) for check in told["checks"]] == [("model.space", "pass")]
    assert (told["in_place"], told["location"], told["missing_bytes"]) == (False, str(model), 100_003)
    assert told["missing"] == ["config.json", "model.safetensors"]
    assert not (tmp_path / "dest").exists()


def test_several_at_once_and_what_is_in_place(model: Path, tmp_path: Path) -> None:
    here, gone = {"dest": str(tmp_path / "dest"), "source": str(model)}, str(tmp_path / "gone")
    run("hf_snapshot", **here)
    result = look(here, {"dest": gone, "state": "absent"}, {"dest": here["dest"], "state": "absent"})
    assert [told["in_place"] for told in result["models"]] == [True, True, False]
    assert [told["model"] for told in result["models"]] == [here["dest"], gone, here["dest"]]
    (tmp_path / "dest" / "model.safetensors").write_bytes(bytes(99_999))
    assert not look(here)["models"][0]["in_place"]


def test_a_model_that_is_to_go_whole_is_not_gone_while_others_lie_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine\n")
    absent = {"dest": str(tmp_path), "state": "absent"}
    assert look(absent)["models"][0]["in_place"]
    assert not look({**absent, "prune": True})["models"][0]["in_place"]


def test_a_branch_is_resolved_and_the_code_is_judged(hub: HubServer, model: Path, tmp_path: Path) -> None:
    commit = hub.add("lab/tiny", model).commit
    asked = {"dest": str(tmp_path / "dest"), "repo_id": "lab/tiny", "allow_moving": True}
    (told,) = look(asked, endpoint=hub.endpoint)["models"]
    assert (told["location"], told["commit"]) == (f"lab/tiny@{commit}", commit)
    assert (told["code"]["id"], told["code"]["status"]) == ("model.remote_code", "pass")
    assert told["paste"] == f"to pin models[0], write into it: revision: {commit}"


def test_each_model_that_cannot_be_had_is_named(hub: HubServer, model: Path, tmp_path: Path) -> None:
    hub.add("lab/gated", model, token="hf_secret", gated=True)
    dest = str(tmp_path / "dest")
    result = look(
        {"dest": dest, "repo_id": "lab/gated", "revision": "main"},
        {"dest": dest, "source": str(model)},
        {"dest": dest, "repo_id": "lab/gated", "allow_moving": True},
        endpoint=hub.endpoint,
        token="hf_wrong",
        name="hf_models_models",
    )
    assert result["failed"]
    first, second = result["msg"].splitlines()
    assert first.startswith("hf_models_models[0]: expected a commit of 40 hexadecimal digits as revision; found 'main'")
    assert second.startswith("hf_models_models[2]: lab/gated at revision main on ")
    assert "hf_wrong" not in json.dumps(result)
