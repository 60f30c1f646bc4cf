# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to bring files: by huggingface_hub, out of a folder, or from another host over ssh.

Each writes into the partial files that it is given, goes on where one of them ends, and tells on a queue how it goes.
What arrived is not yet proved.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, AnyStr, Union

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import repository, trouble, worker
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.repository import Entry
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

# Read now: when a transfer goes on by itself, the files that Ansible sent for the module are gone.
_WORKER = inspect.getsource(worker)
_LAST_LINES = 15
# How long a shared ssh connection waits for the next file.
_SHARED_SECONDS = 10
_BLOCK_BYTES = 4 << 20
# rsync(1), EXIT VALUES: 12 and 30 stream and timeout, 10 socket, 255 is ssh's own.
_SSH_SAYS = ("ssh: ", "Host key verification failed", "Permission denied", "Connection ", "kex_exchange")
_RSYNC_AGAIN = (10, 12, 30, 35, 255)


@dataclass(frozen=True)
class Wanted:
    """A file to bring, and the partial file to bring it into."""

    entry: Entry
    partial: Path


@dataclass(frozen=True)
class Ready:
    """From now on bytes may come."""


@dataclass(frozen=True)
class Moved:
    """Bytes came."""


@dataclass(frozen=True)
class Again:
    """What there was of a file is given up; it comes from the front."""

    path: str


@dataclass(frozen=True)
class Arrived:
    """A partial file is as long as it shall become. ``sha256`` is that of the source, when it was read for the first
    time now."""

    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class Failed:
    """A file did not come. Trying again is no use when ``fatal``."""

    path: str
    error: SnapshotError
    fatal: bool


@dataclass(frozen=True)
class Ended:
    """No more will come. ``error`` tells why, if it should have."""

    error: SnapshotError | None = None


Event = Union[Ready, Moved, Again, Arrived, Failed, Ended]


def _pipe(stream: IO[AnyStr] | None) -> IO[AnyStr]:
    """A process's stream that was asked for as a pipe."""
    if stream is None:
        raise AssertionError("the process was started without this pipe")
    return stream


class Fetcher(ABC):
    """One attempt to bring files."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    @abstractmethod
    def start(self, wanted: Sequence[Wanted]) -> None:
        """Begin; returns at once. Ended is the last event."""

    @abstractmethod
    def stop(self) -> None:
        """End it, whatever it is doing."""

    def next(self, seconds: float) -> Event | None:
        """The next event, or None after ``seconds``."""
        try:
            return self.events.get(timeout=seconds)
        except queue.Empty:
            return None


@dataclass(frozen=True)
class HubSource:
    """A repository at a commit, and the Python that has huggingface_hub."""

    repo_id: str
    commit: str
    endpoint: str
    token: str | None
    python: str
    max_workers: int
    timeout: float
    # A folder for what huggingface_hub keeps for itself.
    home: Path


class HubFetcher(Fetcher):
    """A download by huggingface_hub, in a process of its own, so that it can be ended when it hangs."""

    def __init__(self, source: HubSource, xet: bool, lock: int | None) -> None:
        """``lock`` is held open by the process, so that no other run begins before it is gone."""
        super().__init__()
        self._source, self._xet, self._lock = source, xet, lock
        self._process: subprocess.Popen[str] | None = None

    def start(self, wanted: Sequence[Wanted]) -> None:
        source = self._source
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("HF_HUB_OFFLINE", "TRANSFORMERS_"))
            },
            "HF_ENDPOINT": source.endpoint,
            "HF_HOME": str(source.home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DOWNLOAD_TIMEOUT": str(max(1, round(source.timeout))),
        }
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            environment.pop(name, None)
        request = {
            "repo_id": source.repo_id,
            "commit": source.commit,
            "token": source.token,
            "xet": self._xet,
            "max_workers": source.max_workers,
            "timeout": source.timeout,
            "files": [{"path": w.entry.path, "size": w.entry.size, "partial": str(w.partial)} for w in wanted],
        }
        process = subprocess.Popen(
            [source.python, "-I", "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            cwd="/",
            pass_fds=() if self._lock is None else (self._lock,),
        )
        self._process = process
        asked = _pipe(process.stdin)
        # An error here: it is gone already, and its last lines tell why.
        with contextlib.suppress(OSError):
            asked.write(json.dumps(request) + "\n")
            asked.flush()
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        lines: deque[str] = deque(maxlen=_LAST_LINES)
        other = threading.Thread(target=lines.extend, args=(_pipe(process.stderr),), daemon=True)
        other.start()
        for line in _pipe(process.stdout):
            event = self._event(json.loads(line))
            if event is not None:
                self.events.put(event)
        status = process.wait()
        other.join()
        last = "".join(lines).strip()
        if self._source.token:
            last = last.replace(self._source.token, "********")
        found = f"the download ended with status {status}:\n{last}\n"
        self.events.put(Ended(SnapshotError(found, "put that right and run again") if status else None))

    def _event(self, told: dict[str, Any]) -> Event | None:
        kind, path = told["kind"], str(told.get("path", ""))
        where = f"{path} of {self._source.repo_id}@{self._source.commit} on {self._source.endpoint}"
        if kind == "ready":
            return Ready()
        if kind == "moved":
            return Moved()
        if kind == "again":
            return Again(path)
        if kind == "arrived":
            return Arrived(path)
        if kind == "missing":
            found = f"{self._source.python} has no huggingface_hub ({told['text']})"
            return Failed("", SnapshotError(found, "install it there or name another"), fatal=True)
        if kind == "size":
            error = SnapshotError(
                f"{where}: the server announces {told['told']} bytes, its list of files tells another size",
                "ask the operator of the endpoint, or use another one",
            )
            return Failed(path, error, fatal=True)
        return self._failure(path, where, told)

    def _failure(self, path: str, where: str, told: dict[str, Any]) -> Event:
        if told["status"]:
            what, fix = repository.refusal(told["status"], told["code"], bool(self._source.token))
            # An address of a store expires, and is then refused; the Hub's own refusals have a code.
            fatal = bool(told["code"]) and told["status"] in (401, 403, 404)
            return Failed(path, SnapshotError(f"{where}: {what}", fix), fatal)
        if trouble.is_known(told["errno"]):
            error = OSError(told["errno"], os.strerror(told["errno"]), told["file"] or None)
            return Failed(path, trouble.explain(error, self._source.home.parent), fatal=True)
        text = told["text"].replace(self._source.token, "********") if self._source.token else told["text"]
        return Failed(path, SnapshotError(f"{where}: {text}", "check the network and run again"), fatal=False)


class _Threads(Fetcher):
    """Files one by one, in a few threads."""

    def __init__(self, max_workers: int) -> None:
        super().__init__()
        self._max_workers = max_workers
        self._left: deque[Wanted] = deque()
        self._stopped = threading.Event()

    def start(self, wanted: Sequence[Wanted]) -> None:
        self._left.extend(wanted)
        # Daemons: one that waits for a dead NFS server must not keep the process from ending.
        number = min(self._max_workers, len(wanted))
        threads = [threading.Thread(target=self._work, daemon=True) for unused in range(number)]
        self.events.put(Ready())
        for thread in threads:
            thread.start()
        threading.Thread(target=self._await, args=(threads,), daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _await(self, threads: Sequence[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        self.events.put(Ended())

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                wanted = self._left.popleft()
            except IndexError:
                return
            event = self._bring(wanted)
            if not self._stopped.is_set():
                self.events.put(event)

    @abstractmethod
    def _bring(self, wanted: Wanted) -> Arrived | Failed:
        """Bring one file."""


class FolderFetcher(_Threads):
    """A copy out of a folder of this host, on NFS at best."""

    def __init__(self, folder: Path, max_workers: int) -> None:
        super().__init__(max_workers)
        self._folder = folder

    def _bring(self, wanted: Wanted) -> Arrived | Failed:
        entry = wanted.entry
        source = self._folder / entry.path
        # The source's own hash, if nobody has named one, is taken while it is read for the copy: then from the front.
        sha256 = None if entry.is_named else hashlib.sha256()
        try:
            with source.open("rb", buffering=0) as read, wanted.partial.open("ab", buffering=0) as written:
                if sha256 is not None:
                    written.truncate(0)
                    self.events.put(Again(entry.path))
                read.seek(written.tell())
                while not self._stopped.is_set() and (block := read.read(_BLOCK_BYTES)):
                    if sha256 is not None:
                        sha256.update(block)
                    view = memoryview(block)
                    while view:
                        view = view[written.write(view) :]
                    self.events.put(Moved())
        except OSError as error:
            return Failed(entry.path, trouble.explain(error, source), fatal=True)
        return Arrived(entry.path, sha256.hexdigest() if sha256 is not None else None)


@dataclass(frozen=True)
class Seed:
    """Another host's folder, as ssh and rsync name it. ``key`` is a private key's file on this host."""

    address: str
    folder: str
    key: str | None
    timeout: float

    def __str__(self) -> str:
        return f"{self.address}:{self.folder}"

    def command(self, path: str, target: Path, control: str | None = None) -> list[str]:
        """The rsync that brings one file of the folder, going on where ``target`` ends.

        ``control`` is a socket over which many of them share one connection.
        """
        wait = max(1, round(self.timeout))
        ssh = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={wait}"]
        ssh += ["-o", "ServerAliveInterval=15", *(["-i", self.key] if self.key else [])]
        if control is not None:
            ssh += [
                "-o",
                f"ControlPath={control}",
                "-o",
                "ControlMaster=auto",
                "-o",
                f"ControlPersist={_SHARED_SECONDS}",
            ]
        return [
            *("rsync", "--append", "--inplace", "--copy-links", "--protect-args", "--info=progress2", "--no-motd"),
            *("--timeout", str(wait), "--rsh", shlex.join(ssh)),
            *("--", f"{self.address}:{self.folder}/{path}", str(target)),
        ]

    def refused(self, status: int, said: str) -> SnapshotError:
        """What rsync's end means."""
        # What ssh, or the other side, says first is the cause; rsync's own complaints follow.
        cause = next((line for line in said.splitlines() if line.strip()), "no word")
        # Whether it is ssh's status or the end of the pipe that rsync sees first is a race.
        if status == 255 or cause.startswith(_SSH_SAYS):
            fix = f"let this host's root reach {self.address} by ssh without a question (key, known host)"
        elif status == 23:
            fix = f"bring the model to {self.address} first"
        else:
            fix = f"look at {self.address}, and run again"
        return SnapshotError(f"{self}: rsync ended with status {status} ({cause})", fix)


class SeedFetcher(_Threads):
    """Another host's copy, by rsync over ssh."""

    def __init__(self, seed: Seed, max_workers: int) -> None:
        super().__init__(max_workers)
        self._seed = seed
        self._running: set[subprocess.Popen[bytes]] = set()
        # A short path: a socket's may have 108 bytes.
        self._control = tempfile.TemporaryDirectory(prefix="hub-")
        self._guard = threading.Lock()

    def stop(self) -> None:
        super().stop()
        with self._guard:
            for process in self._running:
                process.send_signal(signal.SIGTERM)

    def _bring(self, wanted: Wanted) -> Arrived | Failed:
        path = wanted.entry.path
        with tempfile.TemporaryFile() as errors:
            try:
                # Its progress goes into a pipe of ours: when this process dies, so does rsync.
                process = subprocess.Popen(
                    self._seed.command(path, wanted.partial, f"{self._control.name}/%C"),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            except FileNotFoundError:
                return Failed(path, no_rsync(), fatal=True)
            with self._guard:
                self._running.add(process)
            have = -1
            while os.read(_pipe(process.stdout).fileno(), 4096):
                now = wanted.partial.stat().st_size if wanted.partial.exists() else 0
                if now != have:
                    have = now
                    self.events.put(Moved())
            status = process.wait()
            with self._guard:
                self._running.discard(process)
            if status == 0:
                return Arrived(path)
            errors.seek(0)
            error = self._seed.refused(status, errors.read().decode("utf-8", "replace"))
            return Failed(path, error, fatal=status not in _RSYNC_AGAIN)


def no_rsync() -> SnapshotError:
    return SnapshotError("this host has no rsync, which brings files from another host", "install the package rsync")


def read_manifest(seed: Seed, name: str) -> str:
    """The text of a small file of the seed. Raises SnapshotError."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / name
        try:
            done = subprocess.run(
                seed.command(name, target), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise no_rsync() from error
        if done.returncode:
            raise seed.refused(done.returncode, done.stderr)
        return target.read_text(encoding="utf-8")
