# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import release

RECORD = state.Record("k", "3.11", {"sglang": "0.5.20"}, {"sglang": ["sha256:aa"]}, {})


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.mkdir()
    state.write_record(path, RECORD)
    return path


def read(engine: Path, args: tuple[str, ...] = ("--port", "1"), environment: str = "e") -> release.Release:
    return release.read(args, environment, "", engine, [])


def test_the_same_parts_make_the_same_release(engine: Path) -> None:
    assert read(engine).hash == read(engine).hash
    assert len(read(engine).hash) == 16


@pytest.mark.parametrize(
    "other",
    [
        replace(RECORD, packages={"sglang": "0.5.21"}),
        replace(RECORD, python="3.13"),
        replace(RECORD, hashes={"sglang": ["sha256:bb"]}),
        replace(RECORD, origins={"sglang": "git+https://example.test/sglang.git@main#abc"}),
    ],
    ids=["version", "python", "wheel built again", "commit"],
)
def test_another_engine_is_another_release(engine: Path, other: state.Record) -> None:
    before = read(engine)
    state.write_record(engine, other)
    assert read(engine).hash != before.hash


def test_another_way_to_ask_for_the_same_packages_is_no_other_release(engine: Path) -> None:
    before = read(engine)
    state.write_record(engine, replace(RECORD, key="another"))
    assert read(engine).hash == before.hash


def test_arguments_and_environment_count(engine: Path) -> None:
    assert len({read(engine).hash, read(engine, ("1", "--port")).hash, read(engine, environment="f").hash}) == 3


@pytest.mark.parametrize("unfinished", [True, False], ids=["unfinished", "no venv"])
def test_an_engine_that_is_not_whole_has_no_hash(engine: Path, tmp_path: Path, unfinished: bool) -> None:
    state.write_record(engine, replace(RECORD, key=""))
    told = read(engine if unfinished else tmp_path / "nowhere")
    assert told.parts["engine"] is None


def test_a_model_that_this_collection_did_not_bring_has_no_hash(engine: Path, tmp_path: Path) -> None:
    told = release.read([], "", "", engine, [tmp_path])
    assert told.parts[str(tmp_path)] is None


def test_a_model_of_the_same_sizes_and_other_content_is_another_release(engine: Path, tmp_path: Path) -> None:
    hashes = []
    for digest in ("a" * 64, "b" * 64):
        held = manifest.Held(size=1, sha256=digest, mtime_ns=1)
        manifest.Manifest("there", None, {"model.safetensors": held}).write(tmp_path)
        hashes.append(release.read((), "", "", engine, [tmp_path]).hash)
    assert hashes[0] != hashes[1]
