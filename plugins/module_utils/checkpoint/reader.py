# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One checkpoint, read: its config, and the headers of its weights, without a byte of their data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from .config import Config, parse_json_object
from .errors import CheckpointError, NotReadError
from .safetensors import PREFIX_BYTES, Tensor, header_length, parse_header
from .source import Source

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# Weights that this reader cannot look into.
OTHER_WEIGHTS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.safetensors")
MAX_JSON_BYTES = 64_000_000
# The first request for a header brings this much: enough for a drafter's whole header in one go.
FIRST_HEADER_BYTES = 16_384
# More shards than any published model has.
MAX_SHARDS = 10_000


@dataclass(frozen=True)
class Checkpoint:
    """What is read of one checkpoint. ``role`` is base or drafter; weights are looked at when first asked for."""

    role: str
    source: Source
    config: Config

    @cached_property
    def index(self) -> Config | None:
        """The index of a sharded checkpoint, None for one of a single file. Raises CheckpointError."""
        return self.json(INDEX_FILE)

    @property
    def index_bytes(self) -> int | None:
        """Bytes of all tensors as the index tells, None when it does not. Raises CheckpointError."""
        metadata = self.index.mapping("metadata") if self.index is not None else None
        return metadata.integer("total_size", minimum=0) if metadata is not None else None

    @cached_property
    def weight_map(self) -> Mapping[str, str] | None:
        """Tensor name to shard file, or None for a checkpoint of one file. Raises CheckpointError."""
        if self.index is None:
            return None
        names = self.index.values.get("weight_map")
        if not isinstance(names, dict) or not names or not all(isinstance(file, str) for file in names.values()):
            found = f"{names!r:.60}"
            expected = f"a weight_map in {INDEX_FILE} of the {self.role}"
            raise CheckpointError(expected, found, f"download {INDEX_FILE} again")
        return names

    @cached_property
    def shards(self) -> tuple[str, ...]:
        """The weight files. Raises CheckpointError when there are none that can be read."""
        if self.weight_map is None:
            return (SINGLE_FILE,)
        files = tuple(sorted(set(self.weight_map.values())))
        if len(files) > MAX_SHARDS:
            raise CheckpointError(f"at most {MAX_SHARDS} shards", str(len(files)), f"download {INDEX_FILE} again")
        return files

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """Every tensor of the checkpoint. Raises CheckpointError when a shard is missing or damaged."""
        tensors: dict[str, Tensor] = {}
        for name in self.shards:
            tensors.update(self.shard(name))
        if self.weight_map is not None:
            self._require(self.weight_map, tensors)
        return tensors

    def json(self, file: str) -> Config | None:
        """Another JSON file of the checkpoint, None when there is none. Raises CheckpointError."""
        data = self.source.whole(file, MAX_JSON_BYTES)
        where = f"{file} of the {self.role}"
        return Config(parse_json_object(data, where), where) if data is not None else None

    def shard(self, name: str) -> dict[str, Tensor]:
        """The tensors of one weight file. Raises CheckpointError when it is missing or damaged."""
        piece = self.source.piece(name, 0, FIRST_HEADER_BYTES)
        if piece is None:
            raise self._missing(name)
        length = header_length(piece.data[:PREFIX_BYTES], name, piece.file_bytes)
        header = piece.data[PREFIX_BYTES : PREFIX_BYTES + length]
        if len(header) < length:
            rest = self.source.piece(name, PREFIX_BYTES + len(header), length - len(header))
            header += rest.data if rest is not None else b""
        return parse_header(header, name, piece.file_bytes)

    @property
    def outline(self) -> tuple[int, int]:
        """Number and bytes of the weight files, each there and at least as long as its header says.

        Raises CheckpointError when a file is missing, or all of them are smaller than the tensors that the index tells.
        The tensors themselves are not looked at, so that this is quick for a model of a terabyte.
        """
        total = 0
        for name in self.shards:
            piece = self.source.piece(name, 0, PREFIX_BYTES)
            if piece is None:
                raise self._missing(name)
            header_length(piece.data, name, piece.file_bytes)
            total += piece.file_bytes
        if self.weight_map is None:
            self.shard(SINGLE_FILE)
        elif self.index_bytes is not None and total < self.index_bytes:
            expected = f"{self.index_bytes} bytes of tensors, as {INDEX_FILE} of the {self.role} tells"
            raise CheckpointError(expected, f"{total} bytes in {len(self.shards)} files", "finish the model's download")
        return len(self.shards), total

    def data(self, name: str, limit: int) -> bytes:
        """The bytes of one tensor, at most ``limit``. Raises CheckpointError when there are more, or fewer."""
        tensor = self.tensors[name]
        if tensor.bytes > limit:
            raise CheckpointError(f"at most {limit} bytes in {name}", str(tensor.bytes), "check it by hand")
        prefix = self.source.piece(tensor.file, 0, PREFIX_BYTES)
        if prefix is None:
            raise self._missing(tensor.file)
        start = PREFIX_BYTES + int.from_bytes(prefix.data, "little") + tensor.start
        piece = self.source.piece(tensor.file, start, tensor.bytes)
        if piece is None or len(piece.data) != tensor.bytes:
            raise CheckpointError(f"{tensor.bytes} bytes of {name}", "fewer", f"download {tensor.file} again")
        return piece.data

    def _missing(self, name: str) -> CheckpointError:
        expected = f"the weights of the {self.role} in {name}"
        for other in OTHER_WEIGHTS:
            if self.weight_map is None and self.source.piece(other, 0, 1) is not None:
                fix = "take the safetensors version of this model"
                return NotReadError(expected, f"only {other}, which the engine loads but this check does not read", fix)
        return CheckpointError(expected, f"no such file in {self.source.label}", "finish the model's download")

    def _require(self, names: Iterable[str], tensors: Mapping[str, Tensor]) -> None:
        lost = sorted(set(names) - set(tensors))
        if lost:
            found = f"{len(lost)} tensors of the index in no shard, {lost[0]} among them"
            raise CheckpointError(f"each tensor of {INDEX_FILE} in its shard", found, "download the model again")


def read_checkpoint(source: Source, role: str) -> Checkpoint:
    """The checkpoint behind ``source``. Raises CheckpointError when it has no readable config.json."""
    file = f"config.json of the {role}"
    data = source.whole("config.json", MAX_JSON_BYTES)
    if data is None:
        fix = "finish the model's download, or correct the path"
        raise CheckpointError(file, f"no such file in {source.label}", fix)
    return Checkpoint(role, source, Config(parse_json_object(data, file), file))
