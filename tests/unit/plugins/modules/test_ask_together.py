# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import toolkit
from ansible_collections.gpuserve.sglang.plugins.modules import ask_together

from lab.hub import HubServer
from tests.fixtures import venvs, wheels
from tests.fixtures.modules import in_process, run

GPUS = {"devices": ["/dev/null"], "driver": "absent"}


def asked(module: str, **arguments: object) -> dict[str, object]:
    return {"module": module, "arguments": arguments}


def ask(secrets: dict[str, object] | None = None, /, **questions: object) -> dict[str, Any]:
    return run("ask_together", questions=questions, secrets=secrets or {})


def alone(module: str, **arguments: object) -> dict[str, Any]:
    """What the module itself returns, with what every answer has."""
    result = run(module, check_mode=True, **arguments)
    return {"changed": False, "failed": False, "msg": "", **result}


def same(answer: dict[str, Any], result: dict[str, Any]) -> bool:
    return answer == {name: value for name, value in result.items() if name not in ("invocation", "warnings")}


def without_readings(answer: dict[str, Any]) -> dict[str, Any]:
    """What a check found can be another number a moment later, as free memory is."""
    return {**answer, "checks": [{**check, "actual": ""} for check in answer["checks"]]}


def test_each_answer_is_what_the_module_itself_returns(model: Path, tmp_path: Path) -> None:
    wheels.wheel(tmp_path / "house", "alpha", "1.0")
    wheels.lock(tmp_path / "house")
    asking: dict[str, tuple[str, dict[str, object]]] = {
        "models": ("hf_snapshot_info", {"models": [{"dest": str(tmp_path / "dest"), "source": str(model)}]}),
        "gpus": ("gpu_health", GPUS),
        "venv": (
            "sglang_venv",
            {"path": str(tmp_path / "engine"), "python": venvs.PYTHON, "wheelhouse": str(tmp_path / "house")},
        ),
        "compiler": ("cuda_toolkit_info", {"fallback_version": "13.0", "architectures": ["sm_120"]}),
        "release": ("sglang_release_info", {"instance": "nobody-s"}),
    }
    answers = ask(**{name: asked(module, **arguments) for name, (module, arguments) in asking.items()})["answers"]
    results = {name: alone(module, **arguments) for name, (module, arguments) in asking.items()}
    answers["gpus"], results["gpus"] = without_readings(answers["gpus"]), without_readings(results["gpus"])
    assert list(answers) == list(asking)
    for name, answer in answers.items():
        assert same(answer, results[name]), name
        assert not answer["failed"], answer
    assert answers["venv"]["changed"]
    assert not (tmp_path / "engine").exists()
    assert answers["compiler"]["msg"].startswith("cuda_toolkit: 13.0")


def test_each_failing_answer_is_what_the_module_itself_returns_beside_one_that_passes(tmp_path: Path) -> None:
    engine = str(tmp_path / "engine")
    asking: dict[str, tuple[str, dict[str, object]]] = {
        "models": ("hf_snapshot_info", {"models": [{"dest": str(tmp_path), "source": str(tmp_path / "nowhere")}]}),
        "gpus": ("gpu_health", {**GPUS, "devices": [str(tmp_path / "nvidia0")]}),
        "venv": ("sglang_venv", {"path": engine, "wheelhouse": str(tmp_path / "nowhere")}),
        "pins": ("sglang_venv", {"path": engine, "requirements": ["sglang==0.5.20", "compressed-tensors==0.8.1"]}),
        "compiler": ("cuda_toolkit_info", {"fallback_version": "12.8", "architectures": ["sm_120"]}),
        "server": ("sglang_probe", {"instance": "nobody-s"}),
        "release": ("sglang_release_info", {"instance": "main", "args": ["--port", "1"]}),
        "sources": ("sglang_venv", {"path": engine, "wheelhouse": "/w", "index_url": "http://127.0.0.1/"}),
        "threshold": ("gpu_health", {"thresholds": {"temperature_margin": "warm"}}),
    }
    result = ask(
        **{name: asked(module, **arguments) for name, (module, arguments) in asking.items()},
        sound=asked("gpu_health", **GPUS),
    )
    assert "failed" not in result
    answers = result["answers"]
    sound = answers.pop("sound")
    assert (sound["failed"], sound["msg"]) == (False, "")
    results = {name: alone(module, **arguments) for name, (module, arguments) in asking.items()}
    answers["gpus"], results["gpus"] = without_readings(answers["gpus"]), without_readings(results["gpus"])
    for name, answer in answers.items():
        assert same(answer, results[name]), name
        assert answer["failed"], name
        assert answer["msg"], name


def test_what_cannot_be_read_takes_no_other_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied", "/opt/engine")

    monkeypatch.setattr(toolkit, "torch_cuda", refuse)
    questions = {
        "compiler": asked("cuda_toolkit_info", fallback_version="13.0", architectures=["sm_120"]),
        "gpus": asked("gpu_health", **GPUS),
    }
    answers = in_process(capsys, ask_together, questions=questions)["answers"]
    assert answers["compiler"] == {
        "changed": False,
        "failed": True,
        "msg": "the host could not be looked at: [Errno 13] Permission denied: '/opt/engine'",
    }
    assert not answers["gpus"]["failed"]


def test_warnings_name_the_answer() -> None:
    result = ask(gpus=asked("gpu_health", **GPUS, ignore=["gpu.tempreature"]))
    assert "gpus: ignore: gpu.tempreature is no check of this run" in str(result["warnings"])
    assert "warnings" not in result["answers"]["gpus"]


def test_null_counts_as_not_given() -> None:
    result = ask({"models": {"token": None}}, models=asked("hf_snapshot_info", models=[], timeout=None, token=None))
    assert result["answers"]["models"]["models"] == []
    answers = ask(models=asked("hf_snapshot_info", models=None))["answers"]
    assert answers["models"]["msg"] == "missing required arguments: models"
    assert "gpus" in ask(gpus={"module": "gpu_health", "arguments": None})["answers"]


def test_everything_that_is_wrong_in_the_asking_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    questions = {
        "compiler": asked("sglang_release"),
        "models": asked("hf_snapshot_info", models=[]),
        "engine": asked("sglang_venv"),
        "text": "gpu_health",
    }
    secrets = {"compilr": {}, "engine": {"path": "/x"}, "models": "hf_secret"}
    result = in_process(capsys, ask_together, questions=questions, secrets=secrets)
    assert result["failed"]
    assert "answers" not in result
    lines = result["msg"].splitlines()
    beginnings = [
        "secrets.compilr: nothing of this name is asked; give it the name of a question, or leave it out",
        "questions.compiler: value of module must be one of: cuda_toolkit_info, gpu_health, hf_snapshot_info, "
        "sglang_probe, sglang_release_info, sglang_venv, got: sglang_release; correct it",
        "secrets.models: expected a dictionary; found str; correct it",
        "secrets.engine.path: this is no secret of sglang_venv; give it in questions.engine.arguments",
        "questions.text: expected a dictionary; found str; correct it",
    ]
    assert [line for line, begin in zip(lines, beginnings) if not line.startswith(begin)] == []
    assert len(lines) == len(beginnings)


def test_a_secret_is_used_and_not_shown(hub: HubServer, model: Path, tmp_path: Path) -> None:
    hub.add("lab/gated", model, token="hf_right", gated=True)
    wanted = {"dest": str(tmp_path / "dest"), "repo_id": "lab/gated", "allow_moving": True}
    question = asked("hf_snapshot_info", models=[wanted], endpoint=hub.endpoint)
    passed = ask({"models": {"token": "hf_right"}}, models=question)
    assert passed["answers"]["models"]["models"][0]["files"] == 2
    failed = ask({"models": {"token": "hf_wrong"}}, models=question)
    assert failed["answers"]["models"]["failed"]
    for result, token in ((passed, "hf_right"), (failed, "hf_wrong")):
        assert "invocation" in result
        assert token not in json.dumps(result)


def test_a_secret_among_what_is_shown_is_refused() -> None:
    result = ask(models=asked("hf_snapshot_info", models=[], token="hf_secret"))
    assert result["msg"] == (
        "questions.models.arguments.token: a secret of hf_snapshot_info, which this shows; give it in secrets.models"
    )
    assert "hf_secret" not in json.dumps(result)
