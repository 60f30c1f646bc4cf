# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang's HTTP API, as far as the proof needs it.

Endpoints and fields: sglang/srt/entrypoints/http_server.py and managers/tokenizer_manager.py (0.5.9 to 0.5.23).
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ANSWER_LIMIT_BYTES = 16 << 20


class ApiError(Exception):
    """The server did not answer, or not as SGLang does."""


@dataclass(frozen=True)
class Server:
    """One server. ``timeout`` bounds a single answer, in seconds."""

    url: str
    api_key: str | None = None
    timeout: float = 60.0

    def _open(self, path: str, payload: Mapping[str, Any] | None, timeout: float) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None if payload is None else json.dumps(payload).encode()
        # A proxy of the environment must not stand between a host and its own server.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            request = urllib.request.Request(self.url.rstrip("/") + path, data=data, headers=headers)
            with opener.open(request, timeout=timeout) as answer:
                return int(answer.status), answer.read(_ANSWER_LIMIT_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_ANSWER_LIMIT_BYTES)
        # ValueError: not a URL. HTTPException: what answers does not speak HTTP, or ended in the middle.
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiError(f"{self.url}{path}: no answer ({getattr(error, 'reason', error) or error!r})") from error

    def _json(self, path: str, payload: Mapping[str, Any] | None = None) -> Any:
        status, body = self._open(path, payload, self.timeout)
        if status != 200:
            told = body[:300].decode("utf-8", "replace")
            raise ApiError(f"{self.url}{path}: HTTP {status}: {told}")
        try:
            return json.loads(body)
        except ValueError as error:
            raise ApiError(f"{self.url}{path}: the answer is no JSON") from error

    def healthy(self, timeout: float) -> bool:
        """Whether /health answers 200: it generates a token for that, 503 means that the server is still starting."""
        try:
            return self._open("/health", None, timeout)[0] == 200
        except ApiError:
            return False

    def info(self) -> dict[str, Any]:
        """The arguments in effect and the state of the scheduler, see :func:`effective`."""
        told = self._json("/get_server_info")
        if not isinstance(told, dict):
            raise ApiError(f"{self.url}/get_server_info: the answer is not SGLang's: {type(told).__name__}")
        return told

    def generate(self, prompt: str, max_new_tokens: int) -> Generation:
        """One greedy completion of exactly ``max_new_tokens`` tokens."""
        parameters = {"temperature": 0, "max_new_tokens": max_new_tokens, "ignore_eos": True}
        told = self._json("/generate", {"text": prompt, "sampling_params": parameters})
        try:
            meta = told["meta_info"]
            accept_length = meta.get("spec_accept_length")
            return Generation(
                text=str(told["text"]),
                tokens=int(meta["completion_tokens"]),
                accept_length=None if accept_length is None else float(accept_length),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ApiError(f"{self.url}/generate: the answer is not SGLang's: {error!r}") from error


@dataclass(frozen=True)
class Generation:
    """``accept_length``: tokens per step of the base model, its own included; None without speculation."""

    text: str
    tokens: int
    accept_length: float | None


# What the card shows and the proof compares: names of ServerArgs fields (sglang/srt/server_args.py).
EFFECTIVE = (
    "model_path",
    "served_model_name",
    "tp_size",
    "context_length",
    "mem_fraction_static",
    "attention_backend",
    "kv_cache_dtype",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
)


def effective(info: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in effect out of /get_server_info; a field that this version does not tell is None."""
    return {name: info.get(name) for name in EFFECTIVE}
