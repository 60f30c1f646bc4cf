# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import installation
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import siblings, state, venv

from tests.fixtures import engine_wheels, venvs, wheels


@pytest.fixture(scope="session")
def empty_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return venvs.make(tmp_path_factory.mktemp("installation") / "empty")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine runs and writes is no part of a test."""
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(siblings, "UNIT_FOLDERS", ())
    monkeypatch.setattr(siblings, "PROC", tmp_path)


def wanted(folder: Path, *packages: Path, engine: Path) -> installation.Wanted:
    """A wheelhouse with ``packages``, and a venv to install it into."""
    wheels.lock(folder)
    assert packages
    return installation.Wanted(venv.Request(engine, python=venvs.PYTHON, wheelhouse=folder))


def test_a_pin_that_the_lock_shows_to_be_wrong_is_refused_before_anything(tmp_path: Path) -> None:
    house = tmp_path / "house"
    asked = wanted(
        house,
        engine_wheels.sglang(house, "0.5.12"),
        engine_wheels.compressed_tensors(house, "0.8.1", "dense"),
        engine=tmp_path / "engine",
    )
    for check_mode in (True, False):
        with pytest.raises(installation.NotAcceptable) as refused:
            installation.converge(asked, check_mode)
        (check,) = refused.value.checks
        assert check.actual.startswith("compressed-tensors==0.8.1 in wheelhouse, which lacks CompressionFormat.")
        assert "CompressionFormat.nvfp4_pack_quantized" in check.actual
    assert not (tmp_path / "engine").exists()


def test_one_that_only_the_files_show_is_refused_on_every_run_until_it_is_right(
    tmp_path: Path, empty_engine: Path
) -> None:
    house = tmp_path / "house"
    path = venvs.copy(empty_engine, tmp_path / "engine")
    # A build of its own that no table knows.
    asked = wanted(
        house,
        engine_wheels.sglang(house, "9.0.dev1"),
        engine_wheels.compressed_tensors(house, "0.8.1", "dense"),
        engine=path,
    )
    for dummy in range(2):
        with pytest.raises(installation.NotAcceptable) as refused:
            installation.converge(asked)
        (failed,) = [check for check in refused.value.checks if check.status == "fail"]
        assert failed.actual == f"0.8.1 lacks CompressionFormat.nvfp4_pack_quantized ({engine_wheels.UTILS}:3)"
        assert failed.fix == "install compressed-tensors>=0.10.0"
        record = state.read_record(path)
        assert record is None or not record.finished
    (house / "compressed_tensors-0.8.1-py3-none-any.whl").unlink()
    engine_wheels.compressed_tensors(house, "0.18.0", "dense", "nvfp4_pack_quantized")
    wheels.lock(house)
    result = installation.converge(installation.Wanted(replace(asked.request)))
    assert result.changed
    assert {check.id: check.status for check in result.checks}["engine.compressed_tensors"] == "pass"
    assert not installation.converge(installation.Wanted(replace(asked.request))).changed


def test_a_deviation_that_is_meant_passes_and_is_told(tmp_path: Path, empty_engine: Path) -> None:
    house = tmp_path / "house"
    path = venvs.copy(empty_engine, tmp_path / "engine")
    asked = wanted(
        house,
        engine_wheels.sglang(house, "0.5.12", requires=["alpha==1.0"]),
        wheels.wheel(house, "alpha", "2.0"),
        engine=path,
    )
    with pytest.raises(installation.NotAcceptable) as refused:
        installation.converge(asked)
    assert [check.id for check in refused.value.stopping] == ["engine.packages_versions"]
    result = installation.converge(replace(asked, ignore=["engine.packages_versions"]))
    assert {check.id: check.status for check in result.checks}["engine.packages_versions"] == "fail"
    assert not result.changed  # Every package was there already.


def test_what_is_no_engine_is_not_judged(tmp_path: Path, empty_engine: Path) -> None:
    house = tmp_path / "house"
    path = venvs.copy(empty_engine, tmp_path / "cuda")
    result = installation.converge(wanted(house, wheels.wheel(house, "ninja", "1.13"), engine=path))
    assert (result.changed, list(result.checks), list(result.removed)) == (True, [], [])


def test_the_range_holds_what_an_index_offers(
    tmp_path: Path, empty_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    engine_wheels.sglang(index, "0.5.7")
    engine_wheels.compressed_tensors(index, "0.15.0", "dense", "nvfp4_pack_quantized")
    engine_wheels.compressed_tensors(index, "0.20.1", "dense", "nvfp4_pack_quantized")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    path = venvs.copy(empty_engine, tmp_path / "engine")
    request = venv.Request(path, python=venvs.PYTHON, requirements=("sglang==0.5.7",))
    # -I keeps pip from no setting of the environment.
    installation.converge(installation.Wanted(request))
    assert venvs.packages(path) == {"sglang": "0.5.7", "compressed-tensors": "0.15.0"}


def older(root: Path, name: str, finished_at: int) -> None:
    (root / name).mkdir()
    state.write_record(root / name, state.Record("k", "3.11", {"sglang": name}))
    os.utime(root / name / state.RECORD, (finished_at, finished_at))


def test_older_engines_go_once_the_wanted_one_is_there(tmp_path: Path, empty_engine: Path) -> None:
    house, root = tmp_path / "house", tmp_path / "sglang"
    root.mkdir()
    for number, name in enumerate(("engine-1", "engine-2", "engine-3")):
        older(root, name, 1000 + number)
    path = venvs.copy(empty_engine, root / "engine-4")
    asked = wanted(
        house,
        engine_wheels.sglang(house, "0.5.12"),
        engine_wheels.compressed_tensors(house, "0.18.0", "dense", "nvfp4_pack_quantized"),
        engine=path,
    )
    asked = replace(asked, keep=1)
    assert list(installation.converge(asked, check_mode=True).removed) == []
    result = installation.converge(asked)
    assert [item.name for item in result.removed] == ["engine-2", "engine-1"]
    assert sorted(item.name for item in root.iterdir()) == ["engine-3", "engine-4"]
    older(root, "engine-0", 1)
    looked = installation.converge(asked, check_mode=True)
    assert looked.changed
    assert [item.name for item in looked.removed] == ["engine-0"]
    assert (root / "engine-0").exists()


def test_the_distributions_packages_are_looked_for_and_not_installed(tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()
    wheels.lock(tmp_path / "house")
    request = venv.Request(tmp_path / "engine", python=venvs.PYTHON, wheelhouse=tmp_path / "house")
    looked = installation.converge(installation.Wanted(request, system_packages=["nowhere", "dpkg"]), check_mode=True)
    assert list(looked.system_packages_missing) == ["nowhere"]
