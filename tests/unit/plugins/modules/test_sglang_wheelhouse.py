# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from tests.fixtures import venvs, wheels
from tests.fixtures.modules import run


def test_check_mode_then_fill_then_nothing(tmp_path: Path) -> None:
    # A path by URL needs no index.
    made = wheels.wheel(tmp_path / "from", "alpha", "1.0")
    asked = {
        "path": str(tmp_path / "house"),
        "requirements": [f"alpha @ {made.as_uri()}"],
        "python": venvs.PYTHON,
    }
    looked = run("sglang_wheelhouse", check_mode=True, **asked)
    assert (looked["changed"], looked["wheels"], looked["bytes"]) == (True, None, None)
    assert not (tmp_path / "house").exists()

    filled = run("sglang_wheelhouse", **asked)
    assert filled["changed"], filled
    assert (filled["wheels"], filled["bytes"]) == (1, made.stat().st_size)
    assert (tmp_path / "house" / "lock.txt").read_text(encoding="utf-8") == wheels.lock_text([made])

    for check_mode in (True, False):
        assert not run("sglang_wheelhouse", check_mode=check_mode, **asked)["changed"]


def test_a_pin_that_cannot_work_is_not_even_fetched(tmp_path: Path) -> None:
    failed = run(
        "sglang_wheelhouse",
        path=str(tmp_path / "house"),
        requirements_no_deps=["sglang==0.5.20", "compressed-tensors==0.8.1"],
        names={"requirements_no_deps": "sglang_install_requirements_no_deps"},
    )
    assert "compressed-tensors==0.8.1 in sglang_install_requirements_no_deps" in failed["msg"]
    assert not (tmp_path / "house").exists()


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    failed = run("sglang_wheelhouse", path=str(tmp_path / "house"), requirements=["./alpha.whl"])
    assert "NAME @ URL" in failed["msg"]
    failed = run("sglang_wheelhouse", path=str(tmp_path / "house"), lock="<html>")
    assert "the lock cannot be used" in failed["msg"]
