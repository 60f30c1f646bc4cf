# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import records

IDENTITY = {"model": "abc", "engine": "0.5.20", "gpus": ["NVIDIA H200"]}
ANSWERS = {"Write": records.Answer("sea", 63, 0.5)}


def test_a_run_is_kept_by_its_release_and_level(tmp_path: Path) -> None:
    folder = tmp_path / "new/records"
    records.keep_run(folder, "3f2a", IDENTITY, "full", {"passed": True})
    records.keep_run(folder, "3f2a", IDENTITY, "quick", {"passed": False})
    path = records.keep_run(folder, "3f2a", IDENTITY, "quick", {"passed": True})
    told = json.loads(path.read_text())
    assert told == {
        "release": "3f2a",
        "identity": IDENTITY,
        "runs": {"full": {"passed": True}, "quick": {"passed": True}},
    }
    assert [one.name for one in folder.iterdir()] == ["3f2a.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("before", ["", "[]", '{"runs": 5}', "{"])
def test_a_record_that_cannot_be_read_is_replaced(tmp_path: Path, before: str) -> None:
    (tmp_path / "3f2a.json").write_text(before)
    path = records.keep_run(tmp_path, "3f2a", {}, "full", {"passed": True})
    assert json.loads(path.read_text())["runs"] == {"full": {"passed": True}}


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(records.RecordError, match="cannot be"):
        records.keep_run(tmp_path / "file", "3f2a", {}, "full", {})


def test_a_baseline_comes_back_as_it_was(tmp_path: Path) -> None:
    path = records.baseline_path(tmp_path, IDENTITY)
    records.keep_baseline(path, IDENTITY, "3f2a", "2026-11-29T20:00:00Z", {"tp_size": 8}, ANSWERS)
    told = records.Baseline(str(path), "3f2a", "2026-11-29T20:00:00Z", {"tp_size": 8}, ANSWERS)
    assert records.read_baseline(path) == told


def test_a_baseline_belongs_to_all_of_its_identity(tmp_path: Path) -> None:
    same = dict(reversed(list(IDENTITY.items())))
    assert records.baseline_path(tmp_path, same) == records.baseline_path(tmp_path, IDENTITY)
    for name in IDENTITY:
        assert records.baseline_path(tmp_path, {**IDENTITY, name: "x"}) != records.baseline_path(tmp_path, IDENTITY)


def test_no_baseline_is_none(tmp_path: Path) -> None:
    assert records.read_baseline(tmp_path / "baseline-0.json") is None


@pytest.mark.parametrize("told", ["", "[]", "{}", '{"answers": 5}', '{"answers": {"a": {}}}', "[" * 100_000])
def test_a_file_that_is_no_baseline_is_told(tmp_path: Path, told: str) -> None:
    path = tmp_path / "baseline-0.json"
    path.write_text(told)
    with pytest.raises(records.RecordError, match=str(path)):
        records.read_baseline(path)


@pytest.mark.parametrize("release", ["../etc", "a/b", ".hidden", "baseline-1", "a\n"])
def test_a_release_that_is_no_name_for_a_file(release: str) -> None:
    with pytest.raises(records.RecordError, match="no name for a file"):
        records.name_of(release, "20261129T200000Z")


def test_without_a_release_the_time_names_the_file() -> None:
    assert records.name_of(None, "20261129T200000Z") == "20261129T200000Z"
    assert records.name_of("3f2a", "20261129T200000Z") == "3f2a"
