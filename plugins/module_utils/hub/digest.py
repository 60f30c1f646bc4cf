# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashes of files, several at once: hashlib lets other threads run while it works on a block."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from pathlib import Path

# Fits a CPU's cache, so that what was read is there when it is hashed.
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Digest:
    """``blob`` is git's hash of a blob: SHA-1 over "blob SIZE", a zero byte, and the content."""

    size: int
    sha256: str
    blob: str | None = None


def of(path: Path, with_blob: bool = False, read: Callable[[int], None] | None = None) -> Digest:
    """The digest of one file; ``read`` is told how many bytes each step took. Raises OSError."""
    size = path.stat().st_size
    sha256 = hashlib.sha256()
    # SHA-1 is what git names content by; nothing is kept secret with it.
    blob = hashlib.new("sha1", b"blob %d\0" % size, usedforsecurity=False) if with_blob else None
    buffer = bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    length = 0
    with path.open("rb", buffering=0) as opened:
        while count := opened.readinto(buffer):
            sha256.update(view[:count])
            if blob is not None:
                blob.update(view[:count])
            length += count
            if read is not None:
                read(count)
    return Digest(length, sha256.hexdigest(), blob.hexdigest() if blob is not None else None)


class Follower:
    """Hashes a file while it grows, so that little is left to do when it is whole. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._buffer = bytearray(_BLOCK_BYTES)
        self._begin()

    def _begin(self) -> None:
        self._sha256 = hashlib.sha256()
        self._position = 0

    def again(self) -> None:
        """From the front: what was read has been written anew."""
        with self._guard:
            self._begin()

    def advance(self) -> None:
        """Take what has come. Raises OSError."""
        with self._guard, self._path.open("rb", buffering=0) as opened:
            opened.seek(self._position)
            view = memoryview(self._buffer)
            while count := opened.readinto(self._buffer):
                self._sha256.update(view[:count])
                self._position += count

    def finish(self) -> Digest:
        """The digest of the whole file. Raises OSError."""
        self.advance()
        return Digest(self._position, self._sha256.hexdigest())


def pool() -> ThreadPoolExecutor:
    """Threads to hash with, one for each CPU that this process may use."""
    return ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)), thread_name_prefix="digest")


@dataclass(frozen=True)
class Job:
    """A file to hash under a name; ``size`` in bytes decides only in which order."""

    name: str
    path: Path
    size: int
    with_blob: bool


def of_all(jobs: Iterable[Job], tick: Callable[[int, int], None]) -> dict[str, Digest]:
    """The digests of many files, at the speed of all CPUs or of the disk; those that cannot be read are left out.

    ``tick`` is told twice a second how many bytes and files are done.
    """
    # The largest first, so that no thread begins one when the others are done.
    ordered = sorted(jobs, key=lambda job: -job.size)
    read: dict[str, int] = {}

    def hashed(job: Job) -> Digest | None:
        def count(size: int) -> None:
            read[job.name] = read.get(job.name, 0) + size

        try:
            return of(job.path, job.with_blob, count)
        except OSError:
            return None

    with pool() as threads:
        futures: dict[Future[Digest | None], Job] = {threads.submit(hashed, job): job for job in ordered}
        left = set(futures)
        while left:
            left = wait_for(left, timeout=0.5).not_done
            tick(sum(list(read.values())), len(futures) - len(left))
    return {job.name: found for future, job in futures.items() if (found := future.result()) is not None}
