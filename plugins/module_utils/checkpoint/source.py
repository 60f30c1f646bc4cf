# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a checkpoint's files come from, and what reading them has cost."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from .errors import CheckpointError


@dataclass
class Cost:
    """What has been read from the network so far, both checkpoints together."""

    bytes_read: int = 0
    requests: int = 0


@dataclass(frozen=True)
class Piece:
    """Some bytes of a file, and how long the whole file is."""

    data: bytes
    file_bytes: int


@dataclass(frozen=True)
class Digest:
    """What identifies a file's content without comparing it byte by byte; a Hub knows one of the two hashes."""

    bytes: int
    sha256: str | None = None
    git: str | None = None

    def equals(self, other: Digest) -> bool | None:
        """Whether the contents are the same; None when there is no hash of one kind for both."""
        for ours, theirs in ((self.sha256, other.sha256), (self.git, other.git)):
            if ours is not None and theirs is not None:
                return ours == theirs
        return None


class Source(ABC):
    """The files of one checkpoint, by their name inside it."""

    label: str

    @abstractmethod
    def piece(self, name: str, start: int, length: int) -> Piece | None:
        """Up to ``length`` bytes of a file from ``start`` on; None when there is no such file.

        Raises CheckpointError when the file may not be read, or the network says no.
        """

    @abstractmethod
    def whole(self, name: str, limit: int) -> bytes | None:
        """A whole file of at most ``limit`` bytes; None when there is none. Raises CheckpointError when longer."""

    @abstractmethod
    def digest(self, name: str) -> Digest | None:
        """The identity of a file's content; None when there is no such file. Raises CheckpointError."""

    def whole_or_none(self, name: str, limit: int) -> bytes | None:
        """The first ``limit`` bytes of a file that is no more than a hint; None when there is none."""
        piece = self.piece(name, 0, limit)
        return piece.data if piece is not None else None

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Where it was read: ``source`` (directory, cache or hub) and what belongs to it."""


@dataclass(frozen=True)
class Directory(Source):
    """A checkpoint on this host."""

    label: str
    path: Path
    facts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str, variable: str) -> Directory:
        """The checkpoint at ``path``. Raises CheckpointError naming ``variable`` when it is no readable directory."""
        root = Path(path)
        expected = "the directory of a checkpoint"
        try:
            if not root.exists():
                existing = next(parent for parent in root.parents if parent.exists())
                found = f"{path}, which does not exist ({existing} does)"
                raise CheckpointError(expected, found, f"correct {variable}, or put the model there first")
            if not root.is_dir():
                raise CheckpointError(expected, f"{path}, a file", f"set {variable} to the directory that holds it")
            next(root.iterdir(), None)
        except OSError as error:
            found = f"{path}: {error.strerror or error}"
            raise CheckpointError(expected, found, f"let this user read {path}, or correct {variable}") from error
        return cls(path, root)

    def piece(self, name: str, start: int, length: int) -> Piece | None:
        path = self._file(name)
        try:
            with path.open("rb") as file:
                file_bytes = file.seek(0, 2)
                file.seek(start)
                return Piece(file.read(length), file_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(path, error) from error

    def whole(self, name: str, limit: int) -> bytes | None:
        piece = self.piece(name, 0, limit + 1)
        if piece is not None and piece.file_bytes > limit:
            raise CheckpointError(
                f"at most {limit} bytes in {self._file(name)}", f"{piece.file_bytes} bytes", "replace the file"
            )
        return piece.data if piece is not None else None

    def digest(self, name: str) -> Digest | None:
        path = self._file(name)
        try:
            size = path.stat().st_size
            whole, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            with path.open("rb") as file:
                for chunk in iter(lambda: file.read(1 << 20), b""):
                    whole.update(chunk)
                    blob.update(chunk)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(path, error) from error
        return Digest(size, whole.hexdigest(), blob.hexdigest())

    def describe(self) -> dict[str, str]:
        return self.facts or {"source": "directory", "path": self.label}

    def _file(self, name: str) -> Path:
        # Names come from the checkpoint's own index: none may lead out of it.
        if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise CheckpointError("a file name inside the checkpoint", repr(name)[:80], "download the index again")
        return self.path / name

    @staticmethod
    def _unreadable(path: Path, error: OSError) -> CheckpointError:
        return CheckpointError(f"to read {path}", str(error.strerror or error), f"let this user read {path}")
