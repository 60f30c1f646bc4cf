# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

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


def test_a_generation_is_greedy_and_brings_its_accept_length(engine: engine_http.Engine) -> None:
    told = api.Server(engine.url + "/").generate("Write", 8)
    assert told == api.Generation(" and the sea", 8, 2.0)
    path, payload, authorization = engine.asked[-1]
    assert (path, payload["text"], authorization) == ("/generate", "Write", None)
    assert payload["sampling_params"] == {"temperature": 0, "max_new_tokens": 8, "ignore_eos": True}


def test_without_speculation_there_is_no_accept_length(engine: engine_http.Engine) -> None:
    engine.answers["/generate"] = [(200, engine_http.generated())]
    assert api.Server(engine.url).generate("Write", 8).accept_length is None


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
        ((200, engine_http.generated(spec_accept_length="many")), "not SGLang's"),
        (_cut, "the answer is no JSON"),
        (_gibberish, "no answer"),
    ],
    ids=["500", "401", "html", "list", "no-meta", "meta-is-text", "accept-length-is-text", "cut", "not-http"],
)
def test_a_bad_answer_is_told_with_the_address(engine: engine_http.Engine, answer: object, told: str) -> None:
    engine.answers["/generate"] = [answer]
    with pytest.raises(api.ApiError, match=f"{engine.url}/generate: .*{told}"):
        api.Server(engine.url).generate("Write", 8)


@pytest.mark.parametrize("body", [[1], "text", None])
def test_info_that_is_no_object_is_an_error(engine: engine_http.Engine, body: object) -> None:
    engine.answers["/get_server_info"] = [(200, body)]
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
    engine.answers["/generate"] = [lambda handler: bool(let_go.wait(30)) and None]
    engine.answers["/health"] = engine.answers["/generate"]
    started = time.monotonic()
    try:
        with pytest.raises(api.ApiError, match="timed out"):
            api.Server(engine.url, timeout=0.2).generate("Write", 8)
        assert not api.Server(engine.url).healthy(0.2)
    finally:
        let_go.set()
    assert time.monotonic() - started < 20
