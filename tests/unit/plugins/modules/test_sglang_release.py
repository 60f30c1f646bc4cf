# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state

from tests.fixtures.modules import run


def test_the_hash_follows_the_engine_and_nothing_is_changed(tmp_path: Path) -> None:
    asked = {"args": ["--port", "1"], "venv": str(tmp_path), "models": [str(tmp_path / "model")]}
    before = run("sglang_release", **asked)
    assert before["parts"]["engine"] is None
    assert before["parts"][str(tmp_path / "model")] is None
    state.write_record(tmp_path, state.Record("k", "3.11", {"sglang": "0.5.20"}))
    after = run("sglang_release", check_mode=True, **asked)
    assert after["release"] != before["release"]
    assert not after["changed"]
    assert [item.name for item in tmp_path.iterdir()] == [state.RECORD]
