# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""config.json: nested values, their types, and the context that the engine derives."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.config import Config, parse_json_object
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.errors import CheckpointError, ConfigError


def config(**values: Any) -> Config:
    return Config(values, "config.json of the base")


def test_the_language_model_of_a_vision_base() -> None:
    assert config(text_config={"hidden_size": 8}).text_part.need("hidden_size") == 8
    assert config(thinker_config={"text_config": {"hidden_size": 9}}).text_part.need("hidden_size") == 9
    assert config(llm_config={"hidden_size": 7}, text_config={"hidden_size": 8}).text_part.need("hidden_size") == 7
    assert config(hidden_size=6).text_part.need("hidden_size") == 6


@pytest.mark.parametrize("value", ["64", 64.0, True, -1, 0, 2**41, [64], {}])
def test_a_size_that_is_none(value: object) -> None:
    with pytest.raises(ConfigError, match=r"hidden_size in config\.json of the base"):
        config(hidden_size=value).integer("hidden_size")


def test_a_size_that_is_missing() -> None:
    assert config().integer("hidden_size") is None
    assert config(hidden_size=None).integer("hidden_size") is None
    with pytest.raises(ConfigError, match="found None"):
        config().need("hidden_size")


@pytest.mark.parametrize(
    ("read", "value"),
    [("flag", 1), ("text", 1), ("texts", "x"), ("texts", [1]), ("integers", [True]), ("integers", 3), ("mapping", [])],
)
def test_values_of_another_type(read: str, value: object) -> None:
    with pytest.raises(ConfigError):
        getattr(config(key=value), read)("key")


@pytest.mark.parametrize(
    ("values", "tokens"),
    [
        ({}, 2048),
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "max_sequence_length": 100}, 100),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": 4.0}}, 16384),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": 4.0, "rope_type": "llama3"}}, 4096),
        (
            {
                "max_position_embeddings": 262144,
                "rope_scaling": {"type": "yarn", "factor": 64.0, "original_max_position_embeddings": 4096},
            },
            262144,
        ),
        ({"max_position_embeddings": 4096, "rope_parameters": {"factor": 2.0}}, 8192),
    ],
)
def test_the_context_that_the_engine_derives(values: dict[str, Any], tokens: int) -> None:
    assert config(**values).context() == tokens


def test_the_origin_that_newer_libraries_fill_in() -> None:
    yarn = config(max_position_embeddings=4096, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    assert (yarn.context(filled=True), yarn.context(filled=False)) == (4096, 16384)
    llama3 = config(max_position_embeddings=4096, rope_scaling={"rope_type": "llama3", "factor": 4.0})
    assert (llama3.context(filled=True), llama3.context(filled=False)) == (4096, 4096)


@pytest.mark.parametrize("factor", ["2", True, -1.0, 0, float("inf"), float("nan")])
def test_a_factor_that_is_none(factor: object) -> None:
    with pytest.raises(ConfigError, match="factor"):
        config(max_position_embeddings=4096, rope_scaling={"factor": factor}).context()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "no JSON"),
        (b"\xff\xfe{}", "no JSON"),
        (b"[1]", "JSON of type list"),
        (b"  <html>", "a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
    ],
)
def test_what_is_no_json_object(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        parse_json_object(data, "config.json")


def test_a_byte_order_mark_is_no_matter() -> None:
    assert parse_json_object(b"\xef\xbb\xbf{}", "config.json") == {}
