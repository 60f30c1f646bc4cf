# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest, repository, snapshot

from lab.hub import HubServer

Usage = namedtuple("Usage", "total used free")


def hold(request: snapshot.Request) -> snapshot.Plan:
    """Plan, and bring what is missing; the plan that was carried out."""
    planned = snapshot.plan(request)
    if not planned.in_place:
        snapshot.bring(request, planned, sys.executable)
    return planned


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_copied_once(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    first = snapshot.plan(request)
    assert (first.in_place, first.commit, first.location) == (False, None, str(model))
    assert first.missing_bytes == sum(manifest.listing(model).values())
    assert not request.dest.exists()
    snapshot.bring(request, first, None)
    assert manifest.listing(request.dest) == manifest.listing(model)
    second = snapshot.plan(request)
    assert (second.in_place, second.missing, second.location) == (True, (), str(request.dest))


def test_a_folder_that_is_gone_is_not_asked_again(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    shutil.rmtree(model)
    assert snapshot.plan(request).in_place


def test_a_folder_that_holds_other_files_now_is_copied_again(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    (model / "config.json").write_text('{"model_type": "mistral"}\n')
    (model / "added.json").write_text("{}\n")
    assert hold(request).missing == ("added.json", "config.json")
    assert (request.dest / "config.json").read_text() == '{"model_type": "mistral"}\n'


@pytest.mark.parametrize(("name", "told"), [("absent", "does not exist"), ("", "has no config.json")])
def test_a_source_without_a_model_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(snapshot.SnapshotError, match=told):
        snapshot.plan(snapshot.Request(tmp_path / "dest", source=tmp_path / name))


def test_an_interrupted_copy_is_not_believed(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    request.dest.mkdir()
    (request.dest / "model.safetensors.partial").write_bytes(b"half")
    (request.dest / "config.json").write_text('{"model_type": "XXXXX"}\n')
    hold(request)
    assert (request.dest / "config.json").read_bytes() == (model / "config.json").read_bytes()
    assert snapshot.plan(request).in_place


def test_only_a_damaged_file_is_brought_again(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    (request.dest / "model.safetensors").write_bytes(b"short")
    assert hold(request).missing == ("model.safetensors",)
    assert (request.dest / "model.safetensors").stat().st_size == 1 << 20


def test_too_little_space_stops_before_the_first_byte(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot.shutil, "disk_usage", lambda _: Usage(1 << 30, 1 << 30, 1000))
    request = snapshot.Request(tmp_path / "dest", source=model)
    with pytest.raises(snapshot.SnapshotError, match=r"has 1000 bytes free, \d+ are still missing; free some space"):
        hold(request)
    assert manifest.listing(request.dest) == {}


def test_a_repository_is_downloaded_at_its_commit(hub: HubServer, model: Path, tmp_path: Path) -> None:
    added = hub.add("lab/tiny", model)
    request = snapshot.Request(tmp_path / "dest", repo_id="lab/tiny", revision=added.commit, endpoint=hub.endpoint)
    planned = hold(request)
    assert (planned.commit, planned.location) == (added.commit, f"lab/tiny@{added.commit}")
    held = contents(request.dest)
    assert {name: held[name] for name in contents(model)} == contents(model)
    asked = len(hub.seen)
    assert snapshot.plan(request).in_place
    assert len(hub.seen) == asked


def test_a_branch_keeps_the_commit_of_the_first_run(hub: HubServer, model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", repo_id="lab/tiny", endpoint=hub.endpoint)
    first = hub.add("lab/tiny", model).commit
    hold(request)
    moved = shutil.copytree(model, tmp_path / "moved")
    (moved / "config.json").write_text("{}\n")
    second = hub.add("lab/tiny", moved).commit
    assert snapshot.plan(request).commit == first
    pinned = snapshot.Request(tmp_path / "dest", repo_id="lab/tiny", revision=second, endpoint=hub.endpoint)
    assert hold(pinned).commit == second
    assert (request.dest / "config.json").read_text() == "{}\n"


def test_a_gated_repository_needs_its_token(hub: HubServer, model: Path, tmp_path: Path) -> None:
    hub.add("lab/gated", model, token="hf_secret", gated=True)
    request = snapshot.Request(tmp_path / "dest", repo_id="lab/gated", endpoint=hub.endpoint)
    with pytest.raises(repository.HubError, match="give a token"):
        hold(request)
    hold(snapshot.Request(tmp_path / "dest", repo_id="lab/gated", endpoint=hub.endpoint, token="hf_secret"))
    assert snapshot.plan(request).in_place


def test_a_download_without_huggingface_hub_says_what_to_install(hub: HubServer, model: Path, tmp_path: Path) -> None:
    hub.add("lab/tiny", model)
    request = snapshot.Request(tmp_path / "dest", repo_id="lab/tiny", endpoint=hub.endpoint)
    with pytest.raises(snapshot.SnapshotError, match="needs a Python with huggingface_hub"):
        snapshot.bring(request, snapshot.plan(request), "/nonexistent/python")
