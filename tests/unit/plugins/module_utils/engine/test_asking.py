# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.asking import Answer, ask

from tests.unit.plugins.module_utils.engine.fake_engine import make_engine

NUMBERS = "--speculative-num-steps {} --speculative-eagle-topk {} --speculative-num-draft-tokens {}"
EAGLE3 = "--device cpu --speculative-algorithm eagle3 "


@pytest.fixture(params=["0.5.19", "0.5.20"])
def venv(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_engine(tmp_path / "venv", request.param)


def put(venv: Path, words: str, model: str = "org/model", timeout: float = 60, **environment: str) -> Answer:
    return ask(venv / "bin" / "python", ["--model-path", model, *words.split()], environment, timeout)


def test_a_right_list_is_resolved(venv: Path) -> None:
    answer = put(venv, EAGLE3 + NUMBERS.format(3, 1, 4) + " --tp-size 8")
    assert (answer.stage, answer.error, answer.elsewhere) == ("done", "", False)
    assert answer.resolved["speculative_algorithm"] == "EAGLE3"
    assert answer.resolved["attention_backend"] == "triton"
    assert answer.explicit["speculative_num_steps"] == "--speculative-num-steps"
    assert "attention_backend" not in answer.explicit
    assert answer.parsed["tensor_parallel_size"] == answer.resolved["tp_size"] == 8


def test_a_changed_value_shows_asked_effective_and_warning(venv: Path) -> None:
    answer = put(venv, EAGLE3 + NUMBERS.format(1, 1, 3))
    assert answer.parsed["speculative_num_draft_tokens"] == 3
    assert answer.resolved["speculative_num_draft_tokens"] == 2
    assert answer.warnings == ["speculative_num_draft_tokens is adjusted to speculative_num_steps + 1"]


def test_the_step_that_decided_is_known_from_0_5_20_on(tmp_path: Path) -> None:
    answer = put(make_engine(tmp_path / "venv"), "--device cpu --attention-backend intel_amx")
    assert answer.steps["attention_backend"] == "_handle_everything"


def test_bare_assertion(venv: Path) -> None:
    answer = put(venv, EAGLE3 + "--speculative-num-draft-tokens 3")
    assert (answer.stage, answer.error, answer.message) == ("resolve", "AssertionError", "")
    assert str(answer.place).startswith("sglang/srt/server_args.py:")
    assert "speculative" in answer.place.code


def test_none_compared(venv: Path) -> None:
    answer = put(venv, EAGLE3 + "--speculative-num-steps 1 --speculative-num-draft-tokens 3")
    assert (answer.stage, answer.error) == ("resolve", "TypeError")
    assert "speculative_eagle_topk" in answer.place.code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--nonsense 3", "unrecognized arguments: --nonsense 3"),
        ("--tp-size eight", "argument --tensor-parallel-size/--tp-size: invalid int value: 'eight'"),
        ("--tp-size", "argument --tensor-parallel-size/--tp-size: expected one argument"),
    ],
)
def test_the_parser_refuses(venv: Path, words: str, message: str) -> None:
    answer = put(venv, words)
    assert (answer.stage, answer.error, answer.message) == ("parse", "argparse", message)


def test_the_late_check_is_made_too(venv: Path) -> None:
    answer = put(venv, "--device cpu --tp-size 64")
    assert (answer.error, answer.message) == ("AssertionError", "tp_size must be smaller than 64")


def test_without_an_accelerator_cuda_is_asked_for(venv: Path) -> None:
    answer = put(venv, "--tp-size 8")
    assert (answer.stage, answer.resolved["device"], answer.elsewhere) == ("done", "cuda", True)
    assert "device" not in answer.parsed or answer.parsed["device"] == "cuda"


@pytest.mark.parametrize(("gpu", "elsewhere"), [("False", True), ("True", False)])
def test_cuda_is_elsewhere_only_without_a_gpu(tmp_path: Path, gpu: str, elsewhere: bool) -> None:
    venv = make_engine(tmp_path / "venv", torch=f"def is_available(): return {gpu}")
    assert put(venv, "--device cuda").elsewhere is elsewhere
    assert put(venv, "--device=cuda --attention-backend fa3").elsewhere is elsewhere


def test_a_hang_ends_at_the_limit_with_the_last_lines(venv: Path) -> None:
    answer = put(venv, "--device cpu", model="hang", timeout=3)
    assert answer.stage == "timeout"
    assert answer.message == "no answer within 3 s; last lines: waiting for the other ranks"


def test_a_death_is_told_with_the_last_lines(venv: Path) -> None:
    answer = put(venv, "--device cpu", model="die")
    assert answer.stage == "died"
    assert answer.message == "the process ended with signal 9; last lines: Segmentation fault"


def test_what_the_engine_prints_is_no_answer(venv: Path) -> None:
    assert put(venv, "--device cpu", model="noise").stage == "done"


def test_an_engine_that_cannot_be_imported(venv: Path) -> None:
    (venv / "lib/python3.12/site-packages/sglang/srt/server_args.py").write_text("import no_such_package\n")
    answer = put(venv, "--device cpu")
    assert (answer.stage, answer.error) == ("import", "ModuleNotFoundError")
    assert answer.place.file == "sglang/srt/server_args.py"


def test_an_interpreter_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(tmp_path / "gone")
    answer = ask(tmp_path / "python", [], {}, 5)
    assert answer.stage == "start"
    assert answer.message == f"{tmp_path}/python does not run: No such file or directory"


def test_the_process_gets_a_bare_environment_and_leaves_nothing(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CONTROLLER", "x")
    answer = put(venv, "--device cpu", model="environment", MINE="1", SGLANG_CACHE_DIR="/var/cache/sglang")
    seen = answer.resolved["environment"]
    assert isinstance(seen, dict)
    assert "SECRET_OF_THE_CONTROLLER" not in seen
    assert (seen["MINE"], seen["HF_HUB_OFFLINE"]) == ("1", "1")
    assert seen["SGLANG_CACHE_DIR"] != "/var/cache/sglang"
    assert not Path(seen["SGLANG_CACHE_DIR"]).parent.exists()
    assert not list(venv.rglob("__pycache__"))
