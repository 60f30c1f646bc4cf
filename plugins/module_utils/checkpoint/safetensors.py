# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header of a safetensors file: names, types, shapes and places of its tensors, without their data.

Format: 8 bytes little-endian header length N, N bytes JSON, then the data. Source: the safetensors format
description (huggingface/safetensors, README "Format") and the checks that its reader makes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from .errors import CheckpointError

PREFIX_BYTES = 8
# The reader of the format refuses longer headers; so does every engine that uses it.
MAX_HEADER_BYTES = 100_000_000
# More dimensions than any checkpoint has; a bound, so that a product of sizes stays small work.
MAX_DIMENSIONS = 16
DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
DOWNLOAD_AGAIN = "delete the file and download it again"


class Tensor(NamedTuple):
    """One tensor. ``start`` and ``end`` are bytes counted from the end of the header of ``file``.

    A model of a terabyte has 200,000 of them, hence the light kind of class.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """Bytes of data."""
        return self.end - self.start


def header_length(prefix: bytes, file: str, file_bytes: int) -> int:
    """Bytes of the JSON header, from the file's first 8 bytes.

    Raises CheckpointError when the file is too short, or the length cannot be one.
    """
    expected = f"a safetensors header at the start of {file}"
    if len(prefix) < PREFIX_BYTES or file_bytes < PREFIX_BYTES:
        raise CheckpointError(expected, f"a file of {file_bytes} bytes", DOWNLOAD_AGAIN)
    length = int.from_bytes(prefix[:PREFIX_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        if prefix.startswith(b"<"):
            raise CheckpointError(expected, "a page of HTML", "download the file again, past the proxy or login page")
        if prefix.startswith(b"version "):
            fix = "fetch the file itself (git lfs pull, or download again)"
            raise CheckpointError(expected, "a Git LFS pointer", fix)
        raise CheckpointError(expected, f"a header said to be {length} bytes long", DOWNLOAD_AGAIN)
    if PREFIX_BYTES + length > file_bytes:
        found = f"a header of {length} bytes in a file of {file_bytes}: the file is truncated"
        raise CheckpointError(expected, found, DOWNLOAD_AGAIN)
    return length


def parse_header(header: bytes, file: str, file_bytes: int) -> dict[str, Tensor]:
    """The tensors named in a header of ``file``, whose whole size is ``file_bytes``.

    Raises CheckpointError when it is not JSON of the format's shape, or does not describe this file's data exactly.
    """
    expected = f"a valid safetensors header in {file}"
    try:
        parsed = json.loads(header.decode("utf-8"))
        if b"\\u" in header:
            # Half of a surrogate pair is text to Python, and none to the library that the engine loads with.
            json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(expected, f"no JSON ({error})", DOWNLOAD_AGAIN) from error
    if not isinstance(parsed, dict):
        raise CheckpointError(expected, f"JSON of type {type(parsed).__name__}", DOWNLOAD_AGAIN)
    tensors = {}
    for name, entry in parsed.items():
        if name != "__metadata__":
            tensors[name] = _tensor(name, entry, file, expected)
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != position:
            found = f"tensor {name} at byte {tensor.start} where byte {position} follows"
            raise CheckpointError(expected, found, DOWNLOAD_AGAIN)
        position = tensor.end
    held = file_bytes - PREFIX_BYTES - len(header)
    if position != held:
        kind = "the file is truncated" if held < position else "the file does not belong to its header"
        raise CheckpointError(f"{position} bytes of tensors in {file}", f"{held}: {kind}", DOWNLOAD_AGAIN)
    return tensors


def _tensor(name: str, entry: object, file: str, expected: str) -> Tensor:
    def refuse(found: str) -> CheckpointError:
        return CheckpointError(expected, f"tensor {name} with {found}", DOWNLOAD_AGAIN)

    if not isinstance(entry, dict):
        raise refuse("no description")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise refuse(f"the unknown dtype {dtype!r:.60}")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise refuse(f"the shape {shape!r:.60}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not _is_size(offsets[0]) or not _is_size(offsets[1]):
        raise refuse(f"the offsets {offsets!r:.60}")
    bits = DTYPE_BITS[dtype]
    for size in shape:
        if not _is_size(size):
            raise refuse(f"the shape {shape!r:.60}")
        bits *= size
    if bits != 8 * (offsets[1] - offsets[0]):
        raise refuse(f"shape {shape} of {dtype} in {offsets[1] - offsets[0]} bytes")
    return Tensor(file, dtype, tuple(shape), offsets[0], offsets[1])


def _is_size(value: object) -> bool:
    # True is an int to isinstance, but no size.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
