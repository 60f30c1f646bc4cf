# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    held = {"config.json": manifest.Held(3, "a" * 64, 5)}
    made = manifest.Manifest("lab/tiny", "0" * 40, held, ("*.json",), ("*.md",))
    made.write(tmp_path)
    assert manifest.read(tmp_path) == made
    assert (made.files, made.digests) == ({"config.json": 3}, {"config.json": "a" * 64})
    assert [path.name for path in tmp_path.iterdir()] == [manifest.NAME]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"origin": "a", "commit": null}', '{"files": {"a": "b"}}'])
def test_what_is_no_manifest_is_none(tmp_path: Path, text: str) -> None:
    assert manifest.read(tmp_path) is None
    (tmp_path / manifest.NAME).write_text(text)
    assert manifest.read(tmp_path) is None


def test_missing_and_short_files_are_damaged_and_later_ones_touched(tmp_path: Path) -> None:
    for name, content in (("whole", b"123"), ("touched", b"123"), ("short", b"12")):
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, ns=(7, 8 if name == "touched" else 7))
    entries = {name: manifest.Held(3, "", 7) for name in ("whole", "touched", "short", "missing")}
    assert manifest.look(tmp_path, entries) == manifest.Look(("missing", "short"), ("touched",))


def test_a_listing_follows_links_and_leaves_hidden_folders_out(model: Path) -> None:
    (model / ".cache").mkdir()
    (model / ".cache" / "junk").write_text("junk")
    (model / "linked.json").symlink_to(model / "config.json")
    assert sorted(manifest.listing(model)) == [
        "config.json",
        "linked.json",
        "model.safetensors",
        "original/params.json",
    ]


@pytest.mark.parametrize("text", ["", "{", "[1]", '[["a", "b"]]'])
def test_what_was_wrong_is_none_where_it_cannot_be_read(tmp_path: Path, text: str) -> None:
    assert manifest.wrong(tmp_path) == []
    (tmp_path / manifest.WORK).mkdir()
    (tmp_path / manifest.WORK / manifest.WRONG).write_text(text)
    assert manifest.wrong(tmp_path) == []
    manifest.remember_wrong(tmp_path, 1.0, 2.0)
    assert manifest.wrong(tmp_path) == [(1.0, 2.0)]
