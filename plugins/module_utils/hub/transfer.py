# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings files into a staging folder, proves each by its hash, and stays with it through stalls and broken connections.

A file is there under its key: ``KEY.partial`` while it grows, ``KEY.whole`` once its content is what it must be and has
reached the disk. A key names path and content, so that a partial file is continued only into the content it belongs to.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import digest, manifest, trouble
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.fetch import (
    Again,
    Arrived,
    Ended,
    Failed,
    Fetcher,
    Moved,
    Ready,
    Wanted,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.repository import Entry
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

# Given up when no byte came for so many stall timeouts: two attempts as asked for, then over plain HTTP.
PATIENCE = 5
# How often the same file may come wrong, or not grow, before that is told.
TRIES = 3
_LONGEST_PAUSE = 15.0
# What a process may take to begin: on a busy host the import of huggingface_hub alone takes seconds.
_START_SECONDS = 60.0
_TICK = 0.5
# Files from this size on are hashed while they come, every so many seconds.
_FOLLOWED_BYTES = 8 << 20
_FOLLOW_EVERY = 0.1
# The rate is that of the last so many seconds.
_RATE_SECONDS = 20.0


@dataclass(frozen=True)
class Progress:
    """How a transfer goes. Sizes in bytes, ``rate`` in bytes per second, ``left`` in seconds, None when not known."""

    phase: str
    done: int
    total: int
    files_done: int
    files: int
    rate: float = 0.0
    note: str = ""

    @property
    def left(self) -> float | None:
        return (self.total - self.done) / self.rate if self.rate > 0 else None


Report = Callable[[Progress], None]


@dataclass
class Meter:
    """Turns sizes at times into a rate."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, done: int) -> float:
        now = time.monotonic()
        self._seen.append((now, done))
        while now - self._seen[0][0] > _RATE_SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        begun, at_first = self._seen[0]
        return max(0.0, (done - at_first) / (now - begun)) if now > begun else 0.0


def key(entry: Entry) -> str:
    """A file name for an entry's path and content."""
    content = entry.sha256 or entry.blob or f"{entry.size} {entry.stamp}"
    return hashlib.sha256(f"{entry.path}\0{content}".encode()).hexdigest()[:40]


def partial(staging: Path, entry: Entry) -> Path:
    return staging / f"{key(entry)}.partial"


def whole(staging: Path, entry: Entry) -> Path:
    return staging / f"{key(entry)}.whole"


def staged(staging: Path, entry: Entry) -> int:
    """How many bytes of an entry are there already."""
    for path in (whole(staging, entry), partial(staging, entry)):
        try:
            return min(path.stat().st_size, entry.size)
        except OSError:
            continue
    return 0


def proves(entry: Entry, found: digest.Digest) -> bool:
    """Whether a content is the one that the entry names. An entry that names none is proved by its size alone."""
    if found.size != entry.size:
        return False
    if entry.sha256 is not None:
        return found.sha256 == entry.sha256
    return entry.blob is None or found.blob == entry.blob


class _Wrong(Exception):
    """A whole file with another content."""


@dataclass
class Transfer:
    """One transfer: its files, where they are staged, how they are brought."""

    entries: Sequence[Entry]
    staging: Path
    # Makes an attempt; told whether Xet may be used.
    fetcher: Callable[[bool], Fetcher]
    # Where from, for messages.
    source: str
    stall_timeout: float
    xet: bool
    report: Report
    note: str = ""
    sha256: dict[str, str] = field(default_factory=dict)
    _left: dict[str, Entry] = field(default_factory=dict)
    _wrong: dict[str, int] = field(default_factory=dict)
    _size_at_failure: dict[str, tuple[int, int]] = field(default_factory=dict)
    _checks: dict[Future[str], Entry] = field(default_factory=dict)
    _followers: dict[str, digest.Follower] = field(default_factory=dict)
    _advances: dict[str, Future[None]] = field(default_factory=dict)
    _last_advance: float = 0.0
    _meter: Meter = field(default_factory=Meter)
    _last_byte: float = 0.0
    _last_report: float = 0.0
    _error: SnapshotError | None = None
    _crash: SnapshotError | None = None

    def run(self) -> dict[str, str]:
        """Bring everything; the SHA-256 of each path.

        Raises:
            SnapshotError: what will not come, or came wrong, or nothing came for too long.
        """
        self._left = {entry.path: entry for entry in self.entries}
        self._last_byte = time.monotonic()
        pause, stalls, crashes = 0.0, 0, 0
        with digest.pool() as pool:
            self._check_staged(pool)
            while self._left:
                begun = time.monotonic()
                stalled = self._attempt(pool, self.fetcher(self.xet))
                if not self._left:
                    break
                if self._last_byte > begun:
                    pause, stalls, crashes = 0.0, 0, 0
                elif time.monotonic() - self._last_byte > PATIENCE * self.stall_timeout:
                    raise self._given_up()
                if self._crash is not None:
                    crashes += 1
                    if crashes >= TRIES:
                        raise self._crash
                if stalled:
                    stalls += 1
                    self.note = f"no byte for {self.stall_timeout:.0f} s: begun again"
                    if stalls >= 2 and self.xet:
                        self.xet = False
                        self.note += ", over plain HTTP now"
                else:
                    pause = min(_LONGEST_PAUSE, pause * 2 or 0.5)
                    self.note = f"interrupted ({self._error.found}), goes on" if self._error else self.note
                    time.sleep(pause)
        self._tell(force=True)
        return self.sha256

    def _given_up(self) -> SnapshotError:
        waited = time.monotonic() - self._last_byte
        why = f" ({self._error.found})" if self._error else ""
        return SnapshotError(
            f"no byte of {self.source} came for {waited:.0f} s{why}",
            "check the network and run again: what is there is kept",
        )

    def _check_staged(self, pool: ThreadPoolExecutor) -> None:
        """Take what an earlier run left: whole files, and partial ones that have everything."""
        for entry in list(self._left.values()):
            there = whole(self.staging, entry)
            if there.exists() and entry.sha256 is not None and there.stat().st_size == entry.size:
                self._take(entry, entry.sha256)
            elif there.exists():
                there.replace(partial(self.staging, entry))
                self._check(pool, entry)
            elif entry.is_named and staged(self.staging, entry) == entry.size > 0:
                self._check(pool, entry)
        while self._checks:
            self._settle()
            self._tell()
            time.sleep(0.01)

    def _attempt(self, pool: ThreadPoolExecutor, fetcher: Fetcher) -> bool:
        """One attempt; whether it stalled."""
        wanted = [Wanted(entry, partial(self.staging, entry)) for entry in self._left.values()]
        for one in wanted:
            # Longer than it may be: not this content.
            if one.partial.exists() and one.partial.stat().st_size > one.entry.size:
                one.partial.unlink()
        self._followers = {
            one.entry.path: digest.Follower(one.partial)
            for one in wanted
            if one.entry.size >= _FOLLOWED_BYTES and one.entry.blob is None
        }
        # The clock of a stall runs from when bytes may come.
        begun = time.monotonic() + _START_SECONDS
        fetcher.start(sorted(wanted, key=lambda one: -one.entry.size))
        ended = False
        try:
            while not ended or self._checks:
                event = fetcher.next(_FOLLOW_EVERY if self._followers else _TICK if not self._checks else 0.05)
                if isinstance(event, Ready):
                    begun = time.monotonic()
                elif isinstance(event, Moved):
                    self._last_byte = time.monotonic()
                elif isinstance(event, Again):
                    if event.path in self._followers:
                        self._followers[event.path].again()
                elif isinstance(event, Arrived):
                    self._last_byte = time.monotonic()
                    self._check(pool, self._left[event.path], event.sha256)
                elif isinstance(event, Failed):
                    self._failed(event)
                elif isinstance(event, Ended):
                    ended = True
                    self._crash = event.error
                    self._error = event.error or self._error
                self._follow(pool)
                self._settle()
                self._tell()
                waiting = not ended and not self._checks
                if waiting and time.monotonic() - max(self._last_byte, begun) > self.stall_timeout:
                    return True
            return False
        finally:
            fetcher.stop()
            wait_for(self._advances.values())
            self._advances.clear()
            self._followers.clear()

    def _follow(self, pool: ThreadPoolExecutor) -> None:
        """Hash what has come of the files that are on their way."""
        if time.monotonic() - self._last_advance < _FOLLOW_EVERY:
            return
        self._last_advance = time.monotonic()
        for path, follower in self._followers.items():
            running = self._advances.get(path)
            if (running is None or running.done()) and partial(self.staging, self._left[path]).exists():
                self._advances[path] = pool.submit(follower.advance)

    def _failed(self, event: Failed) -> None:
        if event.fatal:
            raise event.error
        self._error = event.error
        size = staged(self.staging, self._left[event.path])
        at, times = self._size_at_failure.get(event.path, (-1, 0))
        times = times + 1 if size == at and size > 0 else 1
        self._size_at_failure[event.path] = (size, times)
        if times >= TRIES:
            raise SnapshotError(
                f"{event.path} of {self.source} does not grow beyond {size} of {self._left[event.path].size} bytes: "
                f"{event.error.found}",
                event.error.fix,
            )

    def _check(self, pool: ThreadPoolExecutor, entry: Entry, sha256: str | None = None) -> None:
        named = entry if sha256 is None else replace(entry, sha256=sha256)
        follower = self._followers.pop(entry.path, None)
        self._checks[pool.submit(self._prove, entry, named, follower)] = entry

    def _prove(self, entry: Entry, named: Entry, follower: digest.Follower | None) -> str:
        """Hash what came, against the content that ``named`` names; then it is whole. Returns its SHA-256."""
        path = partial(self.staging, entry)
        if follower is not None:
            found = follower.finish()
        else:
            found = digest.of(path, with_blob=named.sha256 is None and named.blob is not None)
        if not proves(named, found):
            path.unlink()
            expected = f"SHA-256 {named.sha256}" if named.sha256 else f"git's hash {named.blob}"
            came = found.sha256 if named.sha256 else found.blob
            raise _Wrong(f"expected {entry.size} bytes with {expected}; found {found.size} bytes with {came}")
        manifest.sync(path)
        path.replace(whole(self.staging, entry))
        return found.sha256

    def _settle(self) -> None:
        """Look at the files that have been hashed meanwhile."""
        for future in [future for future in self._checks if future.done()]:
            entry = self._checks.pop(future)
            try:
                self._take(entry, future.result())
            except _Wrong as wrong:
                self._wrong[entry.path] = self._wrong.get(entry.path, 0) + 1
                if self._wrong[entry.path] >= TRIES:
                    raise SnapshotError(
                        f"{entry.path} of {self.source} came wrong {TRIES} times: {wrong}",
                        "ask its operator why it serves other content than it announces, or use another source",
                    ) from wrong
                self._error = SnapshotError(f"{entry.path} came wrong", "run again")
            except OSError as error:
                raise trouble.explain(error, self.staging) from error

    def _take(self, entry: Entry, sha256: str) -> None:
        self.sha256[entry.path] = sha256
        del self._left[entry.path]

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._last_report < 1.0:
            return
        self._last_report = now
        done = sum(e.size if e.path not in self._left else staged(self.staging, e) for e in self.entries)
        total = sum(entry.size for entry in self.entries)
        files_done = len(self.entries) - len(self._left)
        rate = self._meter.rate(done)
        self.report(Progress("bring", done, total, files_done, len(self.entries), rate, self.note))
