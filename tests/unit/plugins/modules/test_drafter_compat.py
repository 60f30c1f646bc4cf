# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task runs it: options in, JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.modules import drafter_compat

from tests.fixtures import checkpoints as small
from tests.fixtures.modules import in_process

NAMES = {
    "base": "sglang_server_model_path",
    "drafter": "sglang_server_speculative_draft_model_path",
    "algorithm": "sglang_server_speculative_algorithm",
}


def status(result: dict[str, Any], id: str) -> str:
    return next(check["status"] for check in result["checks"] if check["id"] == id)


def test_a_fitting_pair(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    result = in_process(
        capsys, drafter_compat, base=str(base), drafter=str(drafter), algorithm="EAGLE3", engine="0.5.20", names=NAMES
    )
    assert "failed" not in result
    assert result["compatible"] is True
    assert result["changed"] is False
    assert result["bytes_read"] == 0


def test_another_hidden_size_is_refused_with_the_variable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path, hidden_size=32)
    result = in_process(
        capsys, drafter_compat, base=str(base), drafter=str(drafter), algorithm="EAGLE3", engine="0.5.20", names=NAMES
    )
    assert result["failed"] is True
    assert "hidden_size 32" in result["msg"]
    assert "hidden size 64" in result["msg"]
    assert "sglang_server_speculative_draft_model_path" in result["msg"]
    assert status(result, "drafter.hidden_size") == "fail"


def test_a_path_that_does_not_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = in_process(capsys, drafter_compat, base=f"{tmp_path}/no/model", engine="0.5.20", names=NAMES)
    assert result["failed"] is True
    assert "sglang_server_model_path" in result["msg"]
    assert f"{tmp_path}/no/model, which does not exist" in result["msg"]


def test_a_base_alone_is_judged_and_the_rest_skipped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    result = in_process(capsys, drafter_compat, base=str(base), engine="0.5.20", names=NAMES)
    assert status(result, "base.readable") == "pass"
    assert status(result, "drafter.fit") == "skipped"
    assert result["drafter"] is None


def test_an_unknown_algorithm(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    result = in_process(
        capsys, drafter_compat, base=str(base), drafter=str(drafter), algorithm="EAGLE9", engine="0.5.20", names=NAMES
    )
    assert result["failed"] is True
    assert "sglang_server_speculative_algorithm 'EAGLE9'" in result["msg"]
    assert "EAGLE3" in result["msg"]


def test_the_silent_trap_of_eagle_with_an_eagle3_drafter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    result = in_process(
        capsys, drafter_compat, base=str(base), drafter=str(drafter), algorithm="EAGLE", engine="0.5.20", names=NAMES
    )
    assert status(result, "drafter.architecture") == "fail"
    assert "set sglang_server_speculative_algorithm to EAGLE3" in result["msg"]


def test_fail_on_never_reports_and_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path, num_attention_heads=3)
    options = {"base": str(base), "drafter": str(drafter), "algorithm": "EAGLE3", "engine": "0.5.20", "tp_size": 2}
    result = in_process(capsys, drafter_compat, **options, fail_on="never")
    assert "failed" not in result
    assert result["compatible"] is False


def test_layers_that_the_base_does_not_have(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path, eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3, 7]})
    result = in_process(
        capsys, drafter_compat, base=str(base), drafter=str(drafter), algorithm="EAGLE3", engine="0.5.20"
    )
    assert status(result, "drafter.aux_layer_ids") == "fail"
    assert "before layers [2, 4, 8] are asked for, [2, 4] exist" in result["msg"]
