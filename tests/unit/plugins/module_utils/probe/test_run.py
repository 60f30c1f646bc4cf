# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import STATUSES
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import prompts, records, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures import engine_http

NUMBERS = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
ASKED = run.Asked(run.FULL, "EAGLE3", NUMBERS, 1.3, "Write")
PLAIN = replace(ASKED, algorithm=None, numbers={})
IDENTITY = {"model": "abc", "engine": "0.5.20", "gpus": ["NVIDIA H200"]}

QUICK_GATES = [
    "speculation.algorithm",
    "speculation.speculative_num_steps",
    "speculation.speculative_eagle_topk",
    "speculation.speculative_num_draft_tokens",
    "serve.models",
    "serve.completion",
    "serve.generate",
    "speculation.accept_length",
]
FULL_GATES = [
    *QUICK_GATES[:6],
    "serve.chat",
    "serve.stream",
    "serve.stop",
    "serve.json_schema",
    "serve.tool_call",
    *QUICK_GATES[6:],
    "cache.prefix",
    "golden.answers",
    "speed.decode_rate",
]


def prove(
    engine: engine_http.Engine, asked: run.Asked = ASKED, place: run.Place | None = None, write: bool = True
) -> run.Findings:
    with engine_http.running(engine):
        return run.prove(api.Server(engine.url, timeout=30), asked, place, write)


def statuses(found: run.Findings) -> dict[str, str]:
    return {check.id: check.status for check in found.checks}


def check_of(found: run.Findings, name: str) -> str:
    (check,) = [check for check in found.checks if check.id == name]
    return check.sentence()


def place(folder: Path, release: str = "3f2a") -> run.Place:
    return run.Place(folder, release, IDENTITY)


def test_a_server_that_does_what_was_asked() -> None:
    found = prove(engine_http.serving())
    assert list(statuses(found)) == FULL_GATES
    without_baseline = {"golden.answers": "skipped", "speed.decode_rate": "skipped"}
    assert statuses(found) == {**dict.fromkeys(FULL_GATES, "pass"), **without_baseline}
    assert found.accept_length == pytest.approx(63 / 35)
    assert found.decode_rate is not None
    assert found.cached_ratio == 0.9
    assert (found.completion, len(found.answers)) == (" and the sea is wide", len(prompts.GOLDEN))


def test_a_quick_look_asks_little() -> None:
    engine = engine_http.serving()
    found = prove(engine, replace(ASKED, level=run.QUICK))
    assert list(statuses(found)) == QUICK_GATES
    assert set(statuses(found).values()) == {"pass"}
    assert (len(engine.asked), found.decode_rate, found.speedup) == (3 + prompts.FEW, None, None)


def test_a_quick_look_without_speculation_has_no_accept_length_to_take() -> None:
    engine = engine_http.autoregressive()
    found = prove(engine, replace(PLAIN, level=run.QUICK))
    assert statuses(found) == {
        "serve.models": "pass",
        "serve.completion": "pass",
        "speculation.accept_length": "skipped",
    }
    assert [path for path, _body, _key in engine.asked] == ["/server_info", "/v1/models", "/v1/completions"]


@pytest.mark.parametrize(
    ("path", "answer", "gate", "status"),
    [
        ("/v1/models", (200, {"data": []}), "serve.models", "fail"),
        ("/v1/completions", engine_http.completing(" \n"), "serve.completion", "fail"),
        ("/v1/completions", engine_http.completing("sea"), "serve.stop", "skipped"),
        ("/v1/chat/completions", engine_http.chatting(plain=engine_http.message(content="")), "serve.chat", "fail"),
        ("/v1/chat/completions", engine_http.chatting(stream=engine_http.deltas("It")), "serve.stream", "fail"),
        (
            "/v1/chat/completions",
            engine_http.chatting(schema=engine_http.message(content="yes")),
            "serve.json_schema",
            "fail",
        ),
        ("/v1/chat/completions", engine_http.chatting(schema=(500, {})), "serve.json_schema", "fail"),
        (
            "/v1/chat/completions",
            engine_http.chatting(tool=engine_http.called(arguments="{")),
            "serve.tool_call",
            "fail",
        ),
        ("/generate", engine_http.generating(63), "speculation.accept_length", "fail"),
        ("/generate", engine_http.generating(None), "speculation.accept_length", "fail"),
        ("/generate", engine_http.generating(text=" "), "serve.generate", "fail"),
        ("/server_info", (200, {**engine_http.INFO, "tool_call_parser": None}), "serve.tool_call", "skipped"),
        ("/server_info", (200, {**engine_http.INFO, "grammar_backend": "none"}), "serve.json_schema", "skipped"),
        ("/server_info", (200, {**engine_http.INFO, "disable_radix_cache": True}), "cache.prefix", "skipped"),
        (
            "/server_info",
            (200, {**engine_http.INFO, "speculative_algorithm": "EAGLE"}),
            "speculation.algorithm",
            "fail",
        ),
    ],
)
def test_each_that_is_off_is_told_alone(path: str, answer: engine_http.Answer, gate: str, status: str) -> None:
    engine = engine_http.serving()
    engine.answers[path] = [answer]
    told = statuses(prove(engine))
    usual = {"golden.answers": "skipped", "speed.decode_rate": "skipped"}
    if gate == "serve.completion":
        usual["serve.stop"] = "skipped"
    assert {name: one for name, one in told.items() if one != "pass"} == {**usual, gate: status}


def test_a_stop_string_that_is_gone_past_fails() -> None:
    engine = engine_http.serving()
    engine.answers["/v1/completions"] = [lambda body: engine_http.completing()({})]  # type: ignore[operator]
    assert statuses(prove(engine))["serve.stop"] == "fail"


def test_a_prefix_that_is_not_in_the_cache_fails() -> None:
    engine = engine_http.serving()
    streamed = engine_http.generating()

    def answer(body: dict[str, Any]) -> object:
        return streamed(body) if body.get("stream") else (200, engine_http.generated(cached_tokens=0))  # type: ignore[operator]

    engine.answers["/generate"] = [answer]
    found = prove(engine)
    assert (statuses(found)["cache.prefix"], found.cached_ratio) == ("fail", 0.0)


def test_the_second_prefix_begins_with_the_first_and_fits() -> None:
    engine = engine_http.serving()
    prove(engine)
    first, second = [
        str(body["text"]) for path, body, _key in engine.asked if path == "/generate" and "stream" not in body
    ]
    assert second.startswith(first)
    assert len(second) < 2048


def test_speculation_that_nobody_asked_for_fails() -> None:
    assert statuses(prove(engine_http.serving(), PLAIN))["speculation.algorithm"] == "fail"


@pytest.mark.parametrize("answer", [(401, {"error": "Unauthorized"}), (200, b"<html>"), (200, [])])
def test_what_does_not_tell_its_arguments_is_an_error(answer: tuple[int, object]) -> None:
    engine = engine_http.serving()
    engine.answers["/server_info"] = [answer]
    with pytest.raises(api.ApiError, match="/server_info"):
        prove(engine)


def test_who_does_not_answer_is_not_asked_again() -> None:
    """Each further question could cost the whole time limit."""
    let_go = threading.Event()
    engine = engine_http.serving()
    hang = engine_http.Written(lambda handler: bool(let_go.wait(30)) and None)
    engine.answers["/v1/chat/completions"] = [engine_http.chatting(schema=hang)]
    try:
        with engine_http.running(engine):
            found = run.prove(api.Server(engine.url, timeout=2), ASKED, None, True)
    finally:
        let_go.set()
    told = statuses(found)
    assert list(told) == FULL_GATES
    assert told["serve.json_schema"] == "fail"
    assert "timed out after 2 s" in check_of(found, "serve.json_schema")
    for name in ("serve.tool_call", "serve.generate", "cache.prefix", "speculation.accept_length", "golden.answers"):
        assert told[name] == "skipped"
    assert "stopped answering at serve.json_schema" in check_of(found, "serve.tool_call")


def test_a_run_without_speculation_is_what_later_ones_are_compared_with(tmp_path: Path) -> None:
    baseline = prove(engine_http.autoregressive(), PLAIN, place(tmp_path, "plain"))
    assert statuses(baseline)["records.kept"] == "pass"
    found = prove(engine_http.serving(), ASKED, place(tmp_path))
    assert found.compared.baseline is not None
    assert found.compared.baseline.release == "plain"
    assert statuses(found)["golden.answers"] == "pass"
    assert found.speedup is not None
    assert statuses(found)["speed.decode_rate"] in ("pass", "warn")
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["3f2a.json", "baseline", "plain.json"]
    told = json.loads((tmp_path / "3f2a.json").read_text())["runs"]["full"]
    assert (told["passed"], len(told["answers"])) == (True, len(prompts.GOLDEN))
    assert [check["id"] for check in told["checks"]] == FULL_GATES


def test_another_text_than_the_baseline_s_warns(tmp_path: Path) -> None:
    prove(engine_http.autoregressive(), PLAIN, place(tmp_path))
    engine = engine_http.serving()
    engine.answers["/generate"] = [engine_http.generating(text="something else")]
    assert statuses(prove(engine, ASKED, place(tmp_path)))["golden.answers"] == "warn"


def test_where_equality_is_promised_another_text_fails_and_is_no_baseline(tmp_path: Path) -> None:
    info = {**engine_http.AUTOREGRESSIVE, "enable_deterministic_inference": True}
    prove(engine_http.serving(None, info), PLAIN, place(tmp_path, "first"))
    engine = engine_http.serving(None, info)
    engine.answers["/generate"] = [engine_http.generating(None, " and the see")]
    assert statuses(prove(engine, PLAIN, place(tmp_path, "second")))["golden.answers"] == "fail"
    assert json.loads((tmp_path / "second.json").read_text())["runs"]["full"]["passed"] is False
    found = prove(engine_http.serving(None, info), PLAIN, place(tmp_path, "third"))
    assert statuses(found)["golden.answers"] == "pass"
    assert found.compared.baseline is not None
    assert found.compared.baseline.release == "first"


@pytest.mark.parametrize(("seconds", "status"), [(1e-9, "fail"), (1e9, "pass")])
def test_a_required_speedup(tmp_path: Path, seconds: float, status: str) -> None:
    answers = {prompt: records.Answer(" and the sea", 63, seconds) for prompt in prompts.GOLDEN}
    path = records.baseline_path(tmp_path, IDENTITY)
    records.keep_baseline(path, IDENTITY, "plain", "2026-11-29T20:00:00Z", engine_http.AUTOREGRESSIVE, answers)
    found = prove(engine_http.serving(), replace(ASKED, require_speedup=1.1), place(tmp_path))
    assert statuses(found)["speed.decode_rate"] == status


def test_another_tp_size_is_not_compared(tmp_path: Path) -> None:
    prove(engine_http.autoregressive(), PLAIN, place(tmp_path))
    found = prove(engine_http.serving(info={**engine_http.INFO, "tp_size": 2}), ASKED, place(tmp_path))
    assert "TP 1, this server runs with TP 2" in check_of(found, "speed.decode_rate")


@pytest.mark.parametrize(
    ("identity", "before", "reason"),
    [
        ({}, "", "no identity was given"),
        (IDENTITY, "", "no baseline is recorded for this model, engine and hardware"),
        (IDENTITY, "{}", "the baseline is lost"),
    ],
)
def test_why_there_is_no_baseline_is_told(
    tmp_path: Path, identity: dict[str, object], before: str, reason: str
) -> None:
    if before:
        records.baseline_path(tmp_path, identity).write_text(before)
    found = prove(engine_http.serving(), ASKED, run.Place(tmp_path, "3f2a", identity))
    for gate in ("golden.answers", "speed.decode_rate"):
        assert statuses(found)[gate] == "skipped"
        assert reason in check_of(found, gate)
        assert "deploy once without a speculative algorithm" in check_of(found, gate)


@pytest.mark.parametrize(
    ("asked", "steps_info"),
    [
        (replace(PLAIN, level=run.QUICK), (None, engine_http.AUTOREGRESSIVE)),
        (ASKED, (35, engine_http.INFO)),
        (PLAIN, (None, {**engine_http.AUTOREGRESSIVE, "served_model_name": None})),
    ],
    ids=["quick", "speculates", "failed"],
)
def test_no_other_run_is_a_baseline(
    tmp_path: Path, asked: run.Asked, steps_info: tuple[int | None, dict[str, object]]
) -> None:
    prove(engine_http.serving(*steps_info), asked, place(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["3f2a.json"]


def test_an_operator_s_prompts_are_asked_too(tmp_path: Path) -> None:
    found = prove(engine_http.serving(), replace(ASKED, golden_prompts=["Mine", "Mine", prompts.GOLDEN[0]]))
    assert list(found.answers) == [*prompts.GOLDEN, "Mine"]


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    found = prove(engine_http.serving(), ASKED, place(tmp_path / "records"), write=False)
    assert statuses(found)["records.kept"] == "skipped"
    assert not (tmp_path / "records").exists()


def test_a_folder_that_cannot_be_written_to_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    found = prove(engine_http.serving(), ASKED, place(tmp_path / "records"))
    assert statuses(found)["records.kept"] == "warn"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# What the API reads, with anything in it.
KEYS = st.sampled_from(
    [
        "text",
        "meta_info",
        "completion_tokens",
        "spec_verify_ct",
        "prompt_tokens",
        "cached_tokens",
        "choices",
        "message",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "delta",
        "finish_reason",
        "data",
        "id",
        "max_model_len",
    ]
)
LIKELY = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=12
)
BODY = LIKELY.map(lambda told: json.dumps(told).encode()) | st.binary(max_size=40)
EVENTS = BODY.map(lambda told: b"data: " + told.replace(b"\n", b" ") + b"\n\ndata: [DONE]\n\n")
ANSWERS = st.tuples(st.sampled_from([200, 200, 200, 204, 301, 401, 500]), BODY | EVENTS)


@pytest.fixture(scope="module")
def odd() -> Iterator[engine_http.Engine]:
    with engine_http.running(engine_http.serving()) as engine:
        yield engine


@given(
    info=st.dictionaries(st.sampled_from(api.EFFECTIVE), LIKELY, max_size=6),
    told=st.lists(ANSWERS, min_size=4, max_size=4),
    algorithm=st.sampled_from(["EAGLE3", None]),
)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_makes_it_crash(
    odd: engine_http.Engine, info: dict[str, object], told: list[tuple[int, bytes]], algorithm: str | None
) -> None:
    paths = ["/v1/models", "/v1/completions", "/v1/chat/completions", "/generate"]
    odd.answers.update({path: [answer] for path, answer in zip(paths, told, strict=True)})
    odd.answers["/server_info"] = [(200, info)]
    found = run.prove(api.Server(odd.url, timeout=30), replace(ASKED, algorithm=algorithm), None, True)
    assert {check.status for check in found.checks} <= set(STATUSES)
    json.dumps(vars(found.checks[0]))
