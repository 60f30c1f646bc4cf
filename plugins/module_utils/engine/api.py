# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang's HTTP API, as far as the proof needs it.

Endpoints and fields: sglang/srt/entrypoints/http_server.py, entrypoints/openai/protocol.py and
managers/tokenizer_manager.py (0.5.2 to 0.5.23).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

_ANSWER_LIMIT_BYTES = 16 << 20
# As much of a refusal as a line of output bears.
_TOLD_LIMIT = 200

_T = TypeVar("_T")


class ApiError(Exception):
    """The server did not answer, or not as SGLang does."""


class NoAnswer(ApiError):
    """Nothing listens there, or the answer did not come within the time limit: there is no use in asking more."""


class Refused(ApiError):
    """An answer with another HTTP status than 200."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Generation:
    """One answer of /generate.

    ``verify_steps`` is how often the base model verified a draft, None without speculation. ``timed_tokens`` came
    within ``timed_seconds`` after the first chunk, which holds what the prefill took: 0 where nothing was timed.
    """

    text: str
    tokens: int
    verify_steps: int | None
    prompt_tokens: int
    cached_tokens: int
    timed_tokens: int = 0
    timed_seconds: float = 0.0


@dataclass(frozen=True)
class Completion:
    """``finish`` is stop, length or another reason of the engine."""

    text: str
    finish: str


@dataclass(frozen=True)
class ToolCall:
    """``arguments`` is text that should be JSON."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """An answer to a chat. ``reasoning`` is what a reasoning parser took out of the text."""

    content: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    finish: str


@dataclass(frozen=True)
class Streamed:
    """``chunks`` with text in them, and whether the stream ended with [DONE]."""

    text: str
    chunks: int
    done: bool


@dataclass(frozen=True)
class Server:
    """One server. ``timeout`` bounds a single request as a whole, in seconds."""

    url: str
    api_key: str | None = None
    timeout: float = 60.0

    def healthy(self, timeout: float) -> bool:
        """Whether /health answers 200: it generates a token for that, 503 means that the server is still starting."""
        try:
            return self._ask("/health", None, timeout, lambda answer: answer.status == 200)
        except ApiError:
            return False

    def info(self) -> dict[str, Any]:
        """The arguments in effect and the state of the scheduler, see :func:`effective`."""
        path = "/server_info"
        try:
            told = self._json(path)
        except Refused as error:
            if error.status != 404:
                raise
            # The only name before 0.5.6; a deprecated one since.
            path = "/get_server_info"
            told = self._json(path)
        if not isinstance(told, dict):
            raise ApiError(f"{self.url}{path}: the answer is not SGLang's: {type(told).__name__}")
        return told

    def models(self) -> dict[str, int | None]:
        """The longest context of each model by its name, in tokens."""
        told = self._json("/v1/models")
        with self._shaped("/v1/models"):
            lengths = {_text(card["id"]): card.get("max_model_len") for card in told["data"]}
            return {name: length if isinstance(length, int) else None for name, length in lengths.items()}

    def generate(self, prompt: str, max_new_tokens: int) -> Generation:
        """One greedy completion of exactly ``max_new_tokens`` tokens."""
        told = self._json("/generate", _generating(prompt, max_new_tokens))
        with self._shaped("/generate"):
            return _generation(told)

    def generate_timed(self, prompt: str, max_new_tokens: int, incremental: bool = False) -> Generation:
        """The same as a stream, so that the decoding alone is timed.

        ``incremental``: each chunk brings its own text alone, and not all text until then.
        """
        chunks, _done = self._stream("/generate", _generating(prompt, max_new_tokens))
        with self._shaped("/generate"):
            ends = [(at, _count(chunk["meta_info"]["completion_tokens"])) for at, chunk in chunks]
            last = _generation(chunks[-1][1])
            return Generation(
                "".join(_text(chunk["text"]) for _at, chunk in chunks) if incremental else last.text,
                last.tokens,
                last.verify_steps,
                last.prompt_tokens,
                last.cached_tokens,
                ends[-1][1] - ends[0][1],
                ends[-1][0] - ends[0][0],
            )

    def complete(self, model: str, prompt: str, max_tokens: int, stop: str | None = None) -> Completion:
        """A greedy completion of the OpenAI API that no end of text ends, only ``stop``."""
        asked = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
        told = self._json("/v1/completions", asked if stop is None else {**asked, "stop": [stop]})
        with self._shaped("/v1/completions"):
            choice = told["choices"][0]
            return Completion(_text(choice["text"]), str(choice.get("finish_reason")))

    def chat(self, model: str, content: str, max_tokens: int, **more: object) -> Message:
        """A greedy answer to one message."""
        told = self._json("/v1/chat/completions", _chatting(model, content, max_tokens, more))
        with self._shaped("/v1/chat/completions"):
            choice = told["choices"][0]
            message = choice["message"]
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            return Message(
                _text(message.get("content")),
                _text(message.get("reasoning_content")),
                tuple(ToolCall(_text(call["name"]), _text(call["arguments"])) for call in calls),
                str(choice.get("finish_reason")),
            )

    def chat_streamed(self, model: str, content: str, max_tokens: int) -> Streamed:
        """A greedy answer to one message, in chunks."""
        path = "/v1/chat/completions"
        chunks, done = self._stream(path, _chatting(model, content, max_tokens, {}))
        with self._shaped(path):
            deltas = [choice["delta"] for _at, chunk in chunks for choice in chunk["choices"]]
            texts = [_text(delta.get("content")) or _text(delta.get("reasoning_content")) for delta in deltas]
            return Streamed("".join(texts), sum(bool(text) for text in texts), done)

    def _json(self, path: str, payload: Mapping[str, Any] | None = None) -> Any:
        body = self._ask(path, payload, self.timeout, lambda answer: self._good(path, answer).read(_ANSWER_LIMIT_BYTES))
        return self._parsed(path, body)

    def _stream(self, path: str, payload: Mapping[str, Any]) -> tuple[list[tuple[float, Any]], bool]:
        """When each event came, and what it brought; and whether [DONE] was the last one."""

        def read(answer: http.client.HTTPResponse) -> tuple[list[tuple[float, bytes]], bool]:
            self._good(path, answer)
            events: list[tuple[float, bytes]] = []
            left = _ANSWER_LIMIT_BYTES
            while left > 0:
                line = answer.readline(left)
                if not line:
                    break
                left -= len(line)
                if line.startswith(b"data:"):
                    told = line[5:].strip()
                    if told == b"[DONE]":
                        return events, True
                    events.append((time.monotonic(), told))
            return events, False

        events, done = self._ask(path, {**payload, "stream": True}, self.timeout, read)
        return [(at, self._parsed(path, told)) for at, told in events], done

    def _good(self, path: str, answer: http.client.HTTPResponse) -> http.client.HTTPResponse:
        if answer.status != 200:
            told = " ".join(answer.read(_ANSWER_LIMIT_BYTES).decode("utf-8", "replace").split())
            raise Refused(f"{self.url}{path}: HTTP {answer.status}: {told[:_TOLD_LIMIT]}", answer.status)
        return answer

    def _parsed(self, path: str, body: bytes) -> Any:
        try:
            return json.loads(body)
        # RecursionError: brackets without end.
        except (ValueError, RecursionError) as error:
            raise ApiError(f"{self.url}{path}: the answer is no JSON") from error

    @contextlib.contextmanager
    def _shaped(self, path: str) -> Iterator[None]:
        """What is not where SGLang puts it is an error of the server."""
        try:
            yield
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ApiError(f"{self.url}{path}: the answer is not SGLang's: {error!r:.{_TOLD_LIMIT}}") from error

    def _ask(
        self,
        path: str,
        payload: Mapping[str, Any] | None,
        timeout: float,
        read: Callable[[http.client.HTTPResponse], _T],
    ) -> _T:
        """What ``read`` makes of the answer. No proxy of the environment stands between, no redirection is followed."""
        expired = threading.Event()
        try:
            with contextlib.closing(_connection(self.url, timeout)) as connection:
                connection.connect()
                with _cut_off(connection.sock, timeout, expired):
                    data = None if payload is None else json.dumps(payload).encode()
                    headers = {"Content-Type": "application/json"}
                    if self.api_key:
                        headers["Authorization"] = f"Bearer {self.api_key}"
                    prefix = urlsplit(self.url).path.rstrip("/")
                    connection.request("GET" if data is None else "POST", prefix + path, data, headers)
                    with connection.getresponse() as answer:
                        told = read(answer)
        # ValueError: not a URL. HTTPException: what answers does not speak HTTP, or ended in the middle.
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"timed out after {timeout:g} s" if expired.is_set() else str(error) or repr(error)
            raise NoAnswer(f"{self.url}{path}: no answer ({reason})") from error
        if expired.is_set():
            raise NoAnswer(f"{self.url}{path}: no answer (timed out after {timeout:g} s)")
        return told


def _connection(url: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not a URL that begins with http:// or https://")
    kind = http.client.HTTPConnection if parts.scheme == "http" else http.client.HTTPSConnection
    return kind(parts.hostname, parts.port, timeout=timeout)


@contextlib.contextmanager
def _cut_off(connected: socket.socket, timeout: float, expired: threading.Event) -> Iterator[None]:
    """End the connection after ``timeout`` seconds: a socket's own limit begins anew with each byte that comes in."""

    def cut() -> None:
        expired.set()
        # It may have ended meanwhile.
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(timeout, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _generating(prompt: str, max_new_tokens: int) -> dict[str, Any]:
    parameters = {"temperature": 0, "max_new_tokens": max_new_tokens, "ignore_eos": True}
    return {"text": prompt, "sampling_params": parameters}


def _chatting(model: str, content: str, max_tokens: int, more: Mapping[str, object]) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": max_tokens,
        "temperature": 0,
        # A model that thinks first would spend the tokens on that: Kimi and Qwen each have a word of their own to leave
        # it out, and a template ignores words that it does not know.
        "chat_template_kwargs": {"thinking": False, "enable_thinking": False},
        **more,
    }


def _generation(told: Mapping[str, Any]) -> Generation:
    meta = told["meta_info"]
    steps = meta.get("spec_verify_ct")
    return Generation(
        _text(told["text"]),
        _count(meta["completion_tokens"]),
        None if steps is None else _count(steps),
        _count(meta.get("prompt_tokens", 0)),
        _count(meta.get("cached_tokens", 0)),
    )


def _count(value: Any) -> int:
    count = int(value)
    if count < 0:
        raise ValueError(f"a count of {count}")
    return count


def _text(value: Any) -> str:
    """A text that can be written anywhere; none is empty. Half a surrogate pair is legal in JSON and nowhere else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    return value.encode("utf-8", "replace").decode("utf-8")


# What the card shows and the proof compares: names of ServerArgs fields (sglang/srt/server_args.py), and the version.
EFFECTIVE = (
    "version",
    "model_path",
    "served_model_name",
    "tp_size",
    "context_length",
    "mem_fraction_static",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "kv_cache_dtype",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "tool_call_parser",
    "reasoning_parser",
    "grammar_backend",
    "disable_radix_cache",
    "enable_deterministic_inference",
)


def effective(info: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in effect out of /server_info; a field that this version does not tell is None."""
    return {name: info.get(name) for name in EFFECTIVE}


def incremental(info: Mapping[str, Any]) -> bool:
    """Whether a chunk of /generate brings its own text alone. The flag's first name was stream_output (to 0.5.9)."""
    return bool(info.get("incremental_streaming_output") or info.get("stream_output"))
