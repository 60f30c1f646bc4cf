# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task runs it: options in, JSON out."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.modules import vram_plan

from tests.fixtures import checkpoints as small
from tests.fixtures.modules import in_process

GIB = 2**30


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_pair_that_fits(capsys: pytest.CaptureFixture[str], tmp_path: Path, check_mode: bool) -> None:
    base, drafter = small.llama_pair(tmp_path)
    options = {"base": str(base), "drafter": str(drafter), "gpus": [24 * GIB], "mem_fraction": 0.6}
    result = in_process(capsys, vram_plan, **options, _ansible_check_mode=check_mode)
    assert "failed" not in result
    assert (result["fits"], result["changed"], result["bytes_read"]) == (True, False, 0)
    assert result["plan"]["max_total_tokens"] > 0
    assert result["assumptions"]["context"] == GIB
    assert result["models"]["base"]["total"] > 0


def test_one_that_does_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    names = {"mem_fraction": "sglang_server_mem_fraction_static", "context_length": "sglang_server_context_length"}
    options = {"base": str(base), "gpus": [4 * GIB], "mem_fraction": 0.34, "context_length": 10**9, "names": names}
    result = in_process(capsys, vram_plan, **options)
    assert result["failed"] is True
    assert result["fits"] is False
    assert "set sglang_server_context_length to" in result["msg"]


def test_assumptions_are_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    options = {"base": str(base), "gpus": [4 * GIB], "mem_fraction": 0.5}
    result = in_process(capsys, vram_plan, **options, assumptions={"context": 0}, fail_on="never")
    assert result["plan"]["before_load"] == 4 * GIB
    assert result["assumptions"]["load"] == GIB


def test_without_gpus_nothing_is_claimed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    result = in_process(capsys, vram_plan, base=str(base), gpus=[], mem_fraction=0.5)
    assert result["fits"] is None
    assert result["plan"] is None
    assert "1 not checked" in result["summary"]


def test_a_fraction_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = in_process(capsys, vram_plan, base=str(tmp_path), gpus=[GIB], mem_fraction=85)
    assert result["failed"] is True
    assert result["msg"] == "mem_fraction is 85.0; set it to a number between 0 and 1"
