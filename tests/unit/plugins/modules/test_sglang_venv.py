# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import engine_wheels, venvs, wheels
from tests.fixtures.modules import run


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    wheels.wheel(folder, "alpha", "1.0")
    wheels.lock(folder)
    return folder


def test_check_mode_then_install_then_nothing(tmp_path: Path, house: Path) -> None:
    asked = {"path": str(tmp_path / "engine"), "python": venvs.PYTHON, "wheelhouse": str(house)}
    looked = run("sglang_venv", check_mode=True, **asked)
    assert looked["changed"]
    assert looked["problems"] == ["there is no venv yet"]
    assert looked["packages"] is None
    assert looked["diff"] == {"prepared": f"{tmp_path}/engine: there is no venv yet\n"}
    assert not (tmp_path / "engine").exists()

    made = run("sglang_venv", **asked)
    assert made["changed"], made
    assert (made["venv"], made["python"]) == (str(tmp_path / "engine"), f"{tmp_path}/engine/bin/python")
    assert made["diff"]["before"] == ""
    assert "alpha==1.0\n" in made["diff"]["after"]

    again = run("sglang_venv", **asked)
    assert (again["changed"], again["problems"], again["repairs"]) == (False, [], [])
    assert again["diff"]["before"] == again["diff"]["after"]
    assert again["python_version"] == made["python_version"]


def test_a_lock_is_text(tmp_path: Path, house: Path) -> None:
    lock = (house / "lock.txt").read_text(encoding="utf-8").replace("sha256:", "sha256:00")
    asked = {"path": str(tmp_path / "engine"), "python": venvs.PYTHON, "wheelhouse": str(house), "lock": lock}
    failed = run("sglang_venv", **asked)
    assert failed["failed"]
    assert "alpha==1.0" in failed["msg"]
    assert "fix: a wheel is not the one whose hash the lock names" in failed["msg"]


def test_a_wheelhouse_that_is_not_there_is_named(tmp_path: Path) -> None:
    failed = run("sglang_venv", path=str(tmp_path / "engine"), wheelhouse=str(tmp_path / "nowhere"))
    assert f"{tmp_path}/nowhere/lock.txt cannot be read" in failed["msg"]
    assert "playbooks/wheelhouse.yml" in failed["msg"]


def test_a_pin_that_cannot_work_is_refused_by_the_operators_own_words(tmp_path: Path) -> None:
    failed = run(
        "sglang_venv",
        path=str(tmp_path / "engine"),
        requirements=["sglang==0.5.20"],
        constraints=["compressed-tensors==0.8.1"],
        names={"constraints": "sglang_install_constraints"},
    )
    assert failed["failed"]
    assert "compressed-tensors==0.8.1 in sglang_install_constraints" in failed["msg"]
    assert "nvfp4_pack_quantized (sglang/srt/layers/quantization/compressed_tensors/utils.py)" in failed["msg"]
    assert "fix: ask for compressed-tensors==0.18.0" in failed["msg"]
    assert [check["status"] for check in failed["checks"]] == ["fail"]


def test_a_python_that_is_not_there(tmp_path: Path, house: Path) -> None:
    failed = run("sglang_venv", path=str(tmp_path / "engine"), python="/usr/bin/python3.99", wheelhouse=str(house))
    assert "there is no Python that starts as /usr/bin/python3.99; install it or name another one" in failed["msg"]


def test_nothing_asked_for() -> None:
    assert "nothing is asked for; give requirements, a lock" in run("sglang_venv", path="/nowhere")["msg"]
    assert "nothing is asked for; give requirements" in run("sglang_wheelhouse", path="/nowhere")["msg"]


def test_an_engine_tells_its_checks(tmp_path: Path) -> None:
    house = tmp_path / "house"
    engine_wheels.sglang(house, "0.5.12")
    engine_wheels.compressed_tensors(house, "0.18.0", "dense", "nvfp4_pack_quantized")
    wheels.lock(house)
    asked = {"path": str(tmp_path / "engine"), "python": venvs.PYTHON, "wheelhouse": str(house), "keep": 0}
    looked = run("sglang_venv", check_mode=True, system_packages=["nowhere"], **asked)
    assert looked["system_packages_missing"] == ["nowhere"]
    assert looked["summary"] == f"{tmp_path}/engine: 1 passed"
    assert looked["kept"] == []
