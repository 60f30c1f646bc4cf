# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints on disk: whole ones, and what can be wrong with their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.errors import CheckpointError, NotReadError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.reader import (
    INDEX_FILE,
    Checkpoint,
    read_checkpoint,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.source import Directory

from tests.fixtures import checkpoints as small


def read(path: Path) -> Checkpoint:
    return read_checkpoint(Directory.open(str(path), "the_variable"), "base")


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    config = small.llama_config()
    return small.write(tmp_path / "model", config, small.llama_base_shapes(config), shards=3)


def test_shards_and_a_single_file_hold_the_same(tmp_path: Path, sharded: Path) -> None:
    config = small.llama_config()
    single = small.write(tmp_path / "single", config, small.llama_base_shapes(config))
    plain = {name: (tensor.dtype, tensor.shape) for name, tensor in read(single).tensors.items()}
    assert plain == {name: (tensor.dtype, tensor.shape) for name, tensor in read(sharded).tensors.items()}
    assert read(sharded).outline[0] == 3


def test_a_tensor_of_a_shard_is_read_from_its_place(tmp_path: Path) -> None:
    shapes: small.Shapes = {"a": ("U8", (3,)), "b": ("U8", (2,)), "c": ("U8", (4,))}
    small.write(tmp_path, {}, shapes, {"a": b"aaa", "b": b"bb", "c": b"cccc"}, shards=2)
    checkpoint = read(tmp_path)
    assert [checkpoint.data(name, 10) for name in "abc"] == [b"aaa", b"bb", b"cccc"]
    with pytest.raises(CheckpointError, match="at most 3 bytes in c"):
        checkpoint.data("c", 3)


def test_a_missing_shard(sharded: Path) -> None:
    (sharded / "model-00002-of-00003.safetensors").unlink()
    for look in ("tensors", "outline"):
        with pytest.raises(CheckpointError, match=r"model-00002-of-00003\.safetensors; found no such file"):
            getattr(read(sharded), look)


def test_a_shard_cut_short(sharded: Path) -> None:
    path = sharded / "model-00002-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="the file is truncated"):
        _ = read(sharded).tensors


def test_shards_smaller_than_the_index_tells(sharded: Path) -> None:
    path = sharded / "model-00002-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match="finish the model's download"):
        _ = read(sharded).outline


@pytest.mark.parametrize(
    "index",
    [
        "[]",
        "{}",
        '{"weight_map": []}',
        '{"weight_map": {}}',
        '{"weight_map": {"a": 1}}',
        "<html>",
        '{"weight_map": {"a": "../../x"}}',
    ],
)
def test_an_index_that_is_none(sharded: Path, index: str) -> None:
    (sharded / INDEX_FILE).write_text(index)
    with pytest.raises(CheckpointError):
        _ = read(sharded).tensors


def test_a_tensor_in_no_shard(sharded: Path) -> None:
    index = json.loads((sharded / INDEX_FILE).read_text())
    index["weight_map"]["more"] = "model-00001-of-00003.safetensors"
    (sharded / INDEX_FILE).write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="1 tensors of the index in no shard, more among them"):
        _ = read(sharded).tensors


def test_weights_of_another_format_are_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(NotReadError, match=r"only pytorch_model\.bin"):
        _ = read(tmp_path).tensors


def test_no_weights_at_all(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="no such file"):
        _ = read(tmp_path).tensors


def test_no_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="finish the model's download"):
        read(tmp_path)


def test_a_file_instead_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="set the_variable to the directory"):
        read(tmp_path / "file")


def test_a_config_that_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(CheckpointError, match="Is a directory"):
        read(tmp_path)


def test_a_path_that_is_a_loop(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(CheckpointError, match="the_variable"):
        read(tmp_path / "loop")


def test_a_name_with_a_null_byte() -> None:
    with pytest.raises(CheckpointError, match="the_variable"):
        read(Path("/tmp/a\0b"))


def test_a_directory_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CheckpointError, match="let this user read"):
        read(tmp_path / "closed")


def test_digests_are_those_of_git_and_of_the_large_file_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hello\n")
    digest = Directory.open(str(tmp_path), "the_variable").digest("file")
    assert digest is not None
    assert digest.git == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert digest.sha256 == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
