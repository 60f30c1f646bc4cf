# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import siblings, state


def engine(path: Path, finished_at: int, package: str = "sglang", key: str = "k") -> Path:
    (path / "lib").mkdir(parents=True)
    (path / "lib" / "torch.so").touch()
    (path / "bin").mkdir()
    (path / "bin" / "python").symlink_to("/usr/bin/python3")
    state.write_record(path, state.Record(key, "3.11", {package: "1"}))
    os.utime(path / state.RECORD, (finished_at, finished_at))
    return path


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "units"
    folder.mkdir()
    monkeypatch.setattr(siblings, "UNIT_FOLDERS", (folder, tmp_path / "nowhere"))
    return folder


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "proc"
    (folder / "17").mkdir(parents=True)
    monkeypatch.setattr(siblings, "PROC", folder)
    return folder


@pytest.fixture
def root(tmp_path: Path, units: Path, processes: Path) -> Path:
    assert units.is_dir()
    assert processes.is_dir()
    folder = tmp_path / "sglang"
    for number in range(1, 5):
        engine(folder / f"engine-0.5.{number}", finished_at=number * 1000)
    return folder


def found(root: Path, current: str = "engine-0.5.4", keep: int = 1) -> dict[str, str | None]:
    return {item.path.name: item.used_by for item in siblings.superfluous(root / current, "sglang", keep)}


def test_the_ones_that_were_finished_last_stay(root: Path) -> None:
    assert found(root) == {"engine-0.5.2": None, "engine-0.5.1": None}
    assert list(found(root, keep=0)) == ["engine-0.5.3", "engine-0.5.2", "engine-0.5.1"]
    assert found(root, keep=3) == {}


def test_going_back_keeps_the_newer_one(root: Path) -> None:
    assert list(found(root, current="engine-0.5.3")) == ["engine-0.5.2", "engine-0.5.1"]


def test_what_is_no_engine_of_ours_is_never_counted(root: Path) -> None:
    engine(root / "cuda", 1, package="ninja")
    (root / "models" / "Kimi").mkdir(parents=True)
    (root / "by-hand" / "bin").mkdir(parents=True)
    (root / "notes.txt").touch()
    (root / "link").symlink_to(root / "engine-0.5.1")
    assert set(found(root, keep=0)) == {"engine-0.5.1", "engine-0.5.2", "engine-0.5.3"}


def test_the_wanted_one_behind_a_link_is_not_its_own_sibling(root: Path) -> None:
    (root / "current").symlink_to(root / "engine-0.5.4")
    assert "engine-0.5.4" not in found(root, current="current", keep=0)


@pytest.mark.parametrize("name", ["sglang@main.service", "sglang@main.service.d/venv.conf"])
def test_one_that_a_unit_names_is_in_use(name: str, root: Path, units: Path) -> None:
    unit = units / name
    unit.parent.mkdir(exist_ok=True)
    unit.write_text(f"[Service]\nExecStart={root}/engine-0.5.1/bin/python -m sglang.launch_server\n", encoding="utf-8")
    assert found(root) == {"engine-0.5.2": None, "engine-0.5.1": f"the unit {unit}"}


def test_a_unit_that_names_it_by_a_link(root: Path, units: Path) -> None:
    (root / "stable").symlink_to(root / "engine-0.5.1")
    (units / "a.service").write_text(f"ExecStart={root}/stable/bin/python\n", encoding="utf-8")
    assert found(root)["engine-0.5.1"] == f"the unit {units}/a.service"


def test_a_name_that_only_begins_alike_is_another_one(root: Path, units: Path) -> None:
    (units / "a.service").write_text(f"ExecStart={root}/engine-0.5.10/bin/python\n", encoding="utf-8")
    assert found(root)["engine-0.5.1"] is None


@pytest.mark.parametrize("told", ["cmdline", "maps"])
def test_one_that_a_process_runs_from_is_in_use(told: str, root: Path, processes: Path) -> None:
    (processes / "17" / told).write_bytes(f"7f00 r-xp {root}/engine-0.5.2/lib/torch.so\n".encode())
    assert found(root) == {"engine-0.5.2": "the process 17", "engine-0.5.1": None}


def test_a_removed_one_is_gone_and_what_it_links_to_stays(root: Path) -> None:
    siblings.remove(root / "engine-0.5.1")
    assert not (root / "engine-0.5.1").exists()
    assert Path("/usr/bin/python3").exists()


def test_what_a_killed_removal_leaves_is_found_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(siblings.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            siblings.remove(root / "engine-0.5.1")
    assert "engine-0.5.1" in found(root)
