# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = manifest.Manifest("lab/tiny", "0" * 40, {"config.json": 3})
    made.write(tmp_path)
    assert manifest.read(tmp_path) == made
    assert [path.name for path in tmp_path.iterdir()] == [manifest.NAME]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"origin": "a", "commit": null}', '{"files": {"a": "b"}}'])
def test_what_is_no_manifest_is_none(tmp_path: Path, text: str) -> None:
    assert manifest.read(tmp_path) is None
    (tmp_path / manifest.NAME).write_text(text)
    assert manifest.read(tmp_path) is None


def test_missing_and_short_files_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"123")
    (tmp_path / "short").write_bytes(b"12")
    assert manifest.damaged(tmp_path, {"whole": 3, "short": 3, "missing": 3}) == ["missing", "short"]


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
