# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api

from tests.fixtures import engine_http


@pytest.fixture
def engine() -> Iterator[engine_http.Engine]:
    with engine_http.running(engine_http.serving()) as running:
        yield running


def test_a_generation_is_greedy_and_brings_its_verify_steps(engine: engine_http.Engine) -> None:
    told = api.Server(engine.url + "/").generate("Write", 8)
    assert told == api.Generation(" and the sea", 8, 35, 100, 90)
    path, payload, authorization = engine.asked[-1]
    assert (path, payload["text"], authorization) == ("/generate", "Write", None)
    assert payload["sampling_params"] == {"temperature": 0, "max_new_tokens": 8, "ignore_eos": True}


def test_without_speculation_there_are_no_verify_steps(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [(200, engine_http.generated())]
    assert api.Server(engine.url).generate("Write", 8).verify_steps is None


def test_a_timed_generation_leaves_out_the_prefill(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [
        engine_http.streamed([engine_http.generated(" and", 2), engine_http.generated(" and the sea", 9)], pause=0.05)
    ]
    told = api.Server(engine.url).generate_timed("Write", 9)
    assert (told.text, told.tokens, told.timed_tokens) == (" and the sea", 9, 7)
    assert 0.02 < told.timed_seconds < 10


def test_chunks_that_bring_their_own_text_alone_are_put_together(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [engine_http.streamed([engine_http.generated(" and"), engine_http.generated(" and")])]
    assert api.Server(engine.url).generate_timed("Write", 9, incremental=True).text == " and and"
    assert api.Server(engine.url).generate_timed("Write", 9).text == " and"


@pytest.mark.parametrize(
    ("info", "incremental"),
    [({}, False), ({"stream_output": True}, True), ({"incremental_streaming_output": True}, True)],
)
def test_the_flag_that_makes_chunks_incremental_had_two_names(info: dict[str, bool], incremental: bool) -> None:
    assert api.incremental(info) is incremental


def test_a_stream_without_an_end_is_told(engine: engine_http.Engine) -> None:
    engine.answers["/v1/chat/completions"] = [engine_http.deltas("a", "", "b", done=False), engine_http.deltas("a")]
    server = api.Server(engine.url)
    assert server.chat_streamed("tiny", "Say", 8) == api.Streamed("ab", 2, False)
    assert server.chat_streamed("tiny", "Say", 8) == api.Streamed("a", 1, True)


def test_a_stream_without_a_chunk_is_an_error(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [engine_http.streamed([])]
    with pytest.raises(api.ApiError, match="not SGLang's"):
        api.Server(engine.url).generate_timed("Write", 9)


def test_an_error_within_a_stream_is_an_error(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [engine_http.streamed([{"error": {"message": "out of memory"}}])]
    with pytest.raises(api.ApiError, match="not SGLang's"):
        api.Server(engine.url).generate_timed("Write", 9)


def test_a_message_brings_text_thoughts_and_calls(engine: engine_http.Engine) -> None:
    engine.answers["/v1/chat/completions"] = [
        engine_http.message(content=None, reasoning_content="hm"),
        engine_http.called(),
    ]
    server = api.Server(engine.url)
    assert server.chat("tiny", "Say", 8) == api.Message("", "hm", (), "stop")
    call = api.ToolCall("read_thermometer", '{"room": "engine room"}')
    assert server.chat("tiny", "Say", 8, tools=[]) == api.Message("", "", (call,), "tool_calls")
    assert "tools" in engine.asked[-1][1]


def test_a_completion_may_end_at_a_string(engine: engine_http.Engine) -> None:
    server = api.Server(engine.url)
    assert server.complete("tiny", "Write", 8) == api.Completion(" and the sea is wide", "length")
    assert server.complete("tiny", "Write", 8, "sea") == api.Completion(" and the ", "stop")


def test_the_models_and_their_context(engine: engine_http.Engine) -> None:
    assert api.Server(engine.url).models() == {"tiny": 2048}


def test_info_has_another_name_before_0_5_6(engine: engine_http.Engine) -> None:
    engine.answers["/get_server_info"] = engine.answers.pop("/server_info")
    assert api.Server(engine.url).info()["version"] == "0.5.20"
    assert [path for path, _body, _key in engine.asked] == ["/server_info", "/get_server_info"]


def test_a_refused_info_is_not_asked_for_by_its_other_name(engine: engine_http.Engine) -> None:
    engine.answers["/server_info"] = [(401, {"error": "Unauthorized"})]
    with pytest.raises(api.Refused, match="HTTP 401") as refused:
        api.Server(engine.url).info()
    assert (refused.value.status, len(engine.asked)) == (401, 1)


def test_half_a_surrogate_pair_does_not_come_through(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [(200, engine_http.generated("sea \ud800"))]
    assert api.Server(engine.url).generate("Write", 8).text == "sea ?"


def test_the_key_is_sent(engine: engine_http.Engine) -> None:
    api.Server(engine.url, "secret").info()
    assert engine.asked[-1][2] == "Bearer secret"


def test_a_proxy_of_the_environment_is_not_asked(engine: engine_http.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert api.Server(engine.url).healthy(5)


def test_only_200_is_healthy(engine: engine_http.Engine) -> None:
    engine.answers["/health"] = [(503, ""), (200, "")]
    server = api.Server(engine.url)
    assert [server.healthy(5), server.healthy(5)] == [False, True]


def test_effective_tells_what_this_version_does_not_tell_as_none() -> None:
    told = api.effective(engine_http.INFO)
    assert (told["speculative_num_steps"], told["kv_cache_dtype"]) == (3, None)
    assert "internal_states" not in told


def _cut(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.close_connection = True


def _gibberish(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 mail ready\r\n")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((500, {"error": "out of memory"}), "HTTP 500: .*out of memory"),
        ((401, b""), "HTTP 401"),
        ((200, b"<html>"), "the answer is no JSON"),
        ((200, []), "not SGLang's"),
        ((200, {"text": "x"}), "not SGLang's: KeyError"),
        ((200, {"text": "x", "meta_info": "none"}), "not SGLang's"),
        ((200, engine_http.generated(spec_verify_ct="many")), "not SGLang's"),
        ((200, engine_http.generated(spec_verify_ct=-1)), "not SGLang's"),
        ((200, {"text": 5, "meta_info": {"completion_tokens": 1}}), "not SGLang's"),
        ((200, b"[" * 100_000), "the answer is no JSON"),
        ((302, b"elsewhere"), "HTTP 302"),
        (engine_http.Written(_cut), "the answer is no JSON"),
        (engine_http.Written(_gibberish), "no answer"),
    ],
    ids=[
        "500",
        "401",
        "html",
        "list",
        "no-meta",
        "meta-is-text",
        "steps-are-text",
        "steps-are-negative",
        "text-is-a-number",
        "deep",
        "elsewhere",
        "cut",
        "not-http",
    ],
)
def test_a_bad_answer_is_told_with_the_address(engine: engine_http.Engine, answer: object, told: str) -> None:
    engine.answers["/generate"] = [answer]
    with pytest.raises(api.ApiError, match=f"{engine.url}/generate: .*{told}"):
        api.Server(engine.url).generate("Write", 8)


@pytest.mark.parametrize("body", [[1], "text", None])
def test_info_that_is_no_object_is_an_error(engine: engine_http.Engine, body: object) -> None:
    engine.answers["/server_info"] = [(200, body)]
    with pytest.raises(api.ApiError, match="not SGLang's"):
        api.Server(engine.url).info()


@pytest.mark.parametrize("url", ["127.0.0.1:30000", "http://127.0.0.1:x", "nonsense"])
def test_what_is_no_url_is_told(url: str) -> None:
    with pytest.raises(api.ApiError, match="no answer"):
        api.Server(url).info()


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        server = api.Server(url)
        assert not server.healthy(5)
        with pytest.raises(api.ApiError, match=r"no answer .*refused"):
            server.info()


def test_a_server_that_hangs_ends_at_the_time_limit(engine: engine_http.Engine) -> None:
    let_go = threading.Event()
    engine.answers["/generate"] = [engine_http.Written(lambda handler: bool(let_go.wait(30)) and None)]
    engine.answers["/health"] = engine.answers["/generate"]
    started = time.monotonic()
    try:
        with pytest.raises(api.ApiError, match="timed out"):
            api.Server(engine.url, timeout=0.2).generate("Write", 8)
        assert not api.Server(engine.url).healthy(0.2)
    finally:
        let_go.set()
    assert time.monotonic() - started < 20


def test_a_server_that_trickles_ends_at_the_time_limit_too(engine: engine_http.Engine) -> None:
    """Each byte comes in time, the answer as a whole does not."""
    ended = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        with contextlib.suppress(OSError):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not ended.wait(0.05):
                handler.wfile.write(b"X-Wait: 1\r\n")

    engine.answers["/generate"] = [engine_http.Written(trickle)]
    started = time.monotonic()
    try:
        with pytest.raises(api.NoAnswer, match="timed out after"):
            api.Server(engine.url, timeout=0.5).generate("Write", 8)
    finally:
        ended.set()
    assert time.monotonic() - started < 20
