# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header reader, held against the format's own library."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.errors import CheckpointError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.reader import read_checkpoint
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.safetensors import (
    MAX_HEADER_BYTES,
    Tensor,
    header_length,
    parse_header,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.source import Directory
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.fixtures import checkpoints as small


def read(data: bytes) -> dict[str, Tensor]:
    length = header_length(data[:8], "file", len(data))
    return parse_header(data[8 : 8 + length], "file", len(data))


def test_a_file_of_the_library() -> None:
    arrays = {"a": np.zeros((2, 3), np.float16), "b": np.ones((4,), np.int64), "c": np.zeros((0, 5), np.float32)}
    tensors = read(save(arrays, {"format": "pt"}))
    assert {name: (tensor.dtype, tensor.shape, tensor.bytes) for name, tensor in tensors.items()} == {
        "a": ("F16", (2, 3), 12),
        "b": ("I64", (4,), 32),
        "c": ("F32", (0, 5), 0),
    }


def header(**entries: Any) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


FINE = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a file of 0 bytes"),
        (b"1234", "a file of 4 bytes"),
        (b"<!DOCTYPE html><html>", "a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        ((MAX_HEADER_BYTES + 1).to_bytes(8, "little") + b"{}", "a header said to be"),
        ((1000).to_bytes(8, "little") + b"{}", "the file is truncated"),
        ((2).to_bytes(8, "little") + b"{x", "no JSON"),
        ((2).to_bytes(8, "little") + b"\xff\xfe", "no JSON"),
        ((2).to_bytes(8, "little") + b"[]", "JSON of type list"),
        (header(a=FINE) + b"123", "3: the file is truncated"),
        (header(a=FINE) + b"12345", "5: the file does not belong to its header"),
        (header(a=7) + b"1234", "tensor a with no description"),
        (header(a={**FINE, "dtype": "Q9"}) + b"1234", "the unknown dtype"),
        (header(a={**FINE, "shape": [-4]}) + b"1234", "the shape"),
        (header(a={**FINE, "shape": [True, 4]}) + b"1234", "the shape"),
        (header(a={**FINE, "shape": [2**62, 2**62]}) + b"1234", "in 4 bytes"),
        (header(a={**FINE, "shape": [1] * 17}) + b"1234", "the shape"),
        (header(a={**FINE, "data_offsets": [4, 0]}) + b"1234", "in -4 bytes"),
        (header(a={**FINE, "data_offsets": [0]}) + b"1234", "the offsets"),
        (header(a=FINE, b={**FINE, "data_offsets": [2, 6]}) + b"123456", "where byte 4 follows"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(data)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A valid file, then some bytes of it changed, cut or added."""
    names = draw(st.lists(st.text(max_size=4), unique=True, max_size=4))
    dtypes = st.sampled_from(sorted(small.BYTES))
    shapes = {
        name: (draw(dtypes), tuple(draw(st.lists(st.integers(0, 4), max_size=3))))
        for name in names
        if name != "__metadata__"
    }
    data = bytearray(small.safetensors(shapes))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@given(files())
@settings(max_examples=500, deadline=None)
def test_accepts_exactly_what_the_library_accepts(data: bytes) -> None:
    try:
        ours: set[str] | None = set(read(data))
    except CheckpointError:
        ours = None
    try:
        theirs: set[str] | None = {name for name, _ in safetensors.deserialize(data)}
    except (safetensors.SafetensorError, ValueError):
        theirs = None
    assert ours == theirs


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes_do_not_crash_it(data: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        read(data)


def test_headers_longer_than_the_first_request(tmp_path: Path) -> None:

    shapes: small.Shapes = {f"tensor.{number}": ("U8", (1,)) for number in range(1000)}
    small.write(tmp_path, {}, shapes)
    assert len(read_checkpoint(Directory.open(str(tmp_path), "base"), "base").tensors) == 1000


def test_half_a_surrogate_pair_is_no_name() -> None:
    header = b'{"a\\ud800": {"dtype": "F16", "shape": [], "data_offsets": [0, 2]}}'
    with pytest.raises(CheckpointError):
        read(len(header).to_bytes(8, "little") + header + b"\0\0")
