# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixtures.modules import run
from tests.unit.plugins.module_utils.engine.fake_engine import make_engine

RIGHT = ["--model-path", "/m", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/d"]


def test_right_list_without_a_venv_says_what_was_not_judged(tmp_path: Path) -> None:
    result = run("sglang_args", args=RIGHT, venv=str(tmp_path), version="0.5.20")
    assert (result["valid"], result["changed"], result["resolved"], result["adjusted"]) == (True, False, {}, [])
    assert result["summary"] == "SGLang arguments: 6 passed, 2 not checked"
    engine = result["checks"][0]  # type: ignore[index]
    assert (engine["id"], engine["status"]) == ("args.engine", "skipped")
    assert f"{tmp_path} is no virtual environment" in engine["actual"]


def test_wrong_list_fails_with_flag_variable_and_fix(tmp_path: Path) -> None:
    args = [*RIGHT, "--speculative-num-draft-tokens", "3"]
    names = {"--speculative-num-draft-tokens": "sglang_server_speculative_num_draft_tokens"}
    result = run("sglang_args", args=args, venv=str(tmp_path), version="0.5.20", names=names)
    assert result["failed"] is True
    assert result["valid"] is False
    assert "--speculative-num-draft-tokens (sglang_server_speculative_num_draft_tokens) = 3" in str(result["msg"])
    assert "fix: set all three" in str(result["msg"])


@pytest.mark.parametrize("check_mode", [True, False])
def test_check_mode_judges_as_well(tmp_path: Path, check_mode: bool) -> None:
    assert run("sglang_args", args=RIGHT, venv=str(tmp_path), version="0.5.20", check_mode=check_mode)["valid"] is True


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    result = run("sglang_args", args=[*RIGHT, "--api-key", "hunter2"], venv=str(tmp_path), version="0.5.20")
    assert "hunter2" not in json.dumps(result)


def test_the_engine_is_asked(tmp_path: Path) -> None:
    venv = make_engine(tmp_path / "venv", "0.9.0")
    numbers = ["--speculative-num-steps", "1", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "3"]
    args = ["--model-path", "org/model", "--device", "cpu", "--speculative-algorithm", "EAGLE", *numbers]
    result = run("sglang_args", args=args, venv=str(venv), allow_adjusted=["speculative-num-draft-tokens"])
    assert result["valid"] is True
    assert result["resolved"]["speculative_num_draft_tokens"] == 2  # type: ignore[index]
    assert result["not_binding"] == []
    assert [item["effective"] for item in result["adjusted"]] == [2]  # type: ignore[attr-defined]


def test_bad_version_is_one_sentence(tmp_path: Path) -> None:
    result = run("sglang_args", args=RIGHT, venv=str(tmp_path), version="latest")
    assert result["msg"] == (
        "'latest' is not a version; write it as the package does, for example 0.5.20 or 0.5.13.post1"
    )
