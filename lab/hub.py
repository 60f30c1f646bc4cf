# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model Hub: repositories out of folders, answered as the public Hub answers, and every byte counted.

Served are ``/NAME/resolve/REVISION/FILE`` with ranges, commits and ETags (git's hash of a blob, or the SHA-256 behind a
redirect to a second host for large files) and ``/api/models/NAME`` with its tree in pages; repositories may be gated or
private. What shall go wrong is a list of faults, each asked before a request is answered.

Run as a program it serves the folders below one folder; the lab does that. Nothing but the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import select
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Files from this size on live in the large-file store, like any safetensors file.
LARGE_BYTES = 10_000_000
# The public Hub's pages are larger; a small page makes a small repository need several.
PAGE = 50
_BLOCK = 1 << 20


@dataclass
class Seen:
    """One request: what was asked, with which headers, and how many bytes of body were sent back."""

    method: str
    path: str
    range: str
    token: bool
    store: bool
    status: int = 0
    sent: int = 0


@dataclass(frozen=True)
class File:
    """A file's size in bytes, SHA-256 and git's hash of its blob."""

    size: int
    sha256: str
    blob: str

    @classmethod
    def of(cls, path: Path) -> File:
        size = path.stat().st_size
        sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size)
        with path.open("rb") as opened:
            while block := opened.read(_BLOCK):
                sha256.update(block)
                blob.update(block)
        return cls(size, sha256.hexdigest(), blob.hexdigest())


@dataclass
class Repository:
    """A repository: the folder of each commit, the commit of ``main``, and who may read it."""

    commit: str
    folders: dict[str, Path]
    token: str | None = None
    gated: bool = False
    # Whether large files are told to be in the Xet store as well.
    xet: bool = False
    _known: dict[tuple[Path, int, int], File] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.folders[self.commit]

    @property
    def files(self) -> list[str]:
        return listing(self.folder)

    def file(self, path: Path) -> File:
        """Size and hashes of a file, remembered until it changes."""
        told = path.stat()
        key = (path, told.st_size, told.st_mtime_ns)
        if key not in self._known:
            self._known[key] = File.of(path)
        return self._known[key]


def listing(folder: Path) -> list[str]:
    """The files below a folder, sorted."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


Fault = Callable[["Handler", str], bool]


@dataclass
class HubServer:
    """Repositories by name, requests in their order, and faults: each is asked first and answers itself by returning
    True."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    endpoint: str = ""
    store: str = ""
    # Of each connection to the store; None: as fast as it goes.
    bytes_per_second: float | None = None

    def add(
        self, name: str, folder: Path, token: str | None = None, gated: bool = False, xet: bool = False
    ) -> Repository:
        """Serve ``folder`` as the repository ``name``. A second folder is a second commit, and ``main`` moves to it."""
        made = hashlib.sha1(name.encode())
        for file in listing(folder):
            made.update(f"{file}\0{File.of(folder / file).blob}\0".encode())
        commit = made.hexdigest()
        known = self.repositories.get(name)
        folders = known.folders if known is not None else {}
        self.repositories[name] = Repository(commit, {**folders, commit: folder}, token, gated, xet)
        return self.repositories[name]

    @property
    def sent(self) -> int:
        """Bytes of all bodies."""
        return sum(request.sent for request in self.seen)

    def sent_of(self, file: str) -> int:
        """Bytes of all bodies of one file."""
        return sum(request.sent for request in self.seen if request.path.endswith(f"/{file}"))


class Handler(BaseHTTPRequestHandler):
    """Answers for both the Hub and its store."""

    protocol_version = "HTTP/1.1"
    # Headers and body are two writes: without this they wait for each other's acknowledgement.
    disable_nagle_algorithm = True
    is_store = False
    request_seen: Seen

    server: _Server

    @property
    def hub(self) -> HubServer:
        return self.server.hub

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed: requests are in ``seen``."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urllib.parse.urlsplit(self.path).path
        token = self.headers.get("Authorization", "")
        self.request_seen = Seen(self.command, path, self.headers.get("Range", ""), bool(token), self.is_store)
        self.hub.seen.append(self.request_seen)
        with contextlib.suppress(OSError):
            if not any(fault(self, path) for fault in self.hub.faults):
                self._serve(path)

    def _serve(self, path: str) -> None:
        if self.is_store:
            self.send_path(self.stored(path), {})
            return
        match = re.fullmatch(r"/((?:[^/]+/)?[^/]+)/resolve/([^/]+)/(.+)", path)
        if match:
            self._resolve(*(urllib.parse.unquote(part) for part in match.groups()))
            return
        match = re.fullmatch(r"/api/models/((?:[^/]+/)?[^/]+?)(?:/(revision|tree|xet-read-token)/([^/]+))?", path)
        if match:
            name, kind, revision = (urllib.parse.unquote(part or "") for part in match.groups())
            self._tell(name, kind or "revision", revision or "main")
            return
        self.refuse(404)

    def stored(self, path: str) -> Path:
        """The file behind an address of the store."""
        name, commit, file = urllib.parse.unquote(path).lstrip("/").split("//", 2)
        return self.hub.repositories[name].folders[commit] / file

    def _allowed(self, name: str, revision: str) -> tuple[Repository, str] | None:
        """The repository and the commit that ``revision`` is; None when that was refused."""
        repository = self.hub.repositories.get(name)
        given = self.headers.get("Authorization", "")
        if repository is None:
            self.refuse(401 if not given else 404, "RepoNotFound")
            return None
        if repository.token is not None and given != f"Bearer {repository.token}":
            self.refuse(403 if given else 401, "GatedRepo" if repository.gated else "RepoNotFound")
            return None
        commit = repository.commit if revision == "main" else revision
        if commit not in repository.folders:
            self.refuse(404, "RevisionNotFound")
            return None
        return repository, commit

    def _resolve(self, name: str, revision: str, file: str) -> None:
        allowed = self._allowed(name, revision)
        if allowed is None:
            return
        repository, commit = allowed
        folder = repository.folders[commit]
        if file not in listing(folder):
            self.refuse(404, "EntryNotFound", {"X-Repo-Commit": commit})
            return
        known = repository.file(folder / file)
        headers = {"X-Repo-Commit": commit}
        if not is_large(file, known):
            self.send_path(folder / file, {**headers, "ETag": f'"{known.blob}"'})
            return
        headers["X-Linked-Etag"] = f'"{known.sha256}"'
        headers["X-Linked-Size"] = str(known.size)
        where = "//".join(urllib.parse.quote(part) for part in (name, commit, file))
        headers["Location"] = f"{self.hub.store}/{where}"
        if repository.xet:
            headers["X-Xet-Hash"] = known.sha256
            headers["X-Xet-Refresh-Route"] = f"{self.hub.endpoint}/api/models/{name}/xet-read-token/{commit}"
        self.send(302, b"", headers)

    def _tell(self, name: str, kind: str, revision: str) -> None:
        allowed = self._allowed(name, revision)
        if allowed is None:
            return
        repository, commit = allowed
        folder = repository.folders[commit]
        headers = {"Content-Type": "application/json"}
        if kind == "xet-read-token":
            # The store it names is this server's, which does not speak Xet's protocol.
            access = {
                "X-Xet-Cas-Url": self.hub.store,
                "X-Xet-Access-Token": "none",
                "X-Xet-Token-Expiration": str(1 << 40),
            }
            told = {"casUrl": self.hub.store, "accessToken": "none", "exp": 1 << 40}
            self.send(200, json.dumps(told).encode(), {**headers, **access})
            return
        files = listing(folder)
        if kind == "revision":
            siblings: list[dict[str, object]] = [{"rfilename": file} for file in files]
            if "blobs=true" in self.path:
                siblings = [{"rfilename": file, "size": repository.file(folder / file).size} for file in files]
            self.send(200, json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode(), headers)
            return
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        start = int(query.get("cursor", ["0"])[0])
        entries: list[dict[str, object]] = []
        for file in files[start : start + PAGE]:
            known = repository.file(folder / file)
            entry: dict[str, object] = {"type": "file", "path": file, "size": known.size, "oid": known.blob}
            if is_large(file, known):
                entry["lfs"] = {"oid": known.sha256, "size": known.size, "pointerSize": 134}
            entries.append(entry)
        if start + PAGE < len(files):
            here = f"{self.hub.endpoint}/api/models/{name}/tree/{revision}?recursive=true&cursor={start + PAGE}"
            headers["Link"] = f'<{here}>; rel="next"'
        self.send(200, json.dumps(entries).encode(), headers)

    def send_path(self, path: Path, headers: dict[str, str], until: int | None = None) -> None:
        """The file, or the range of it that was asked for; cut off before byte ``until`` of the file, if given."""
        size = path.stat().st_size
        start, end, status = 0, size, 200
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match is not None and self.command != "HEAD":
            start = int(match[1])
            if start >= size:
                self.send(416, b"", {"Content-Range": f"bytes */{size}", **headers})
                return
            end = min(int(match[2] or size) + 1, size)
            headers = {"Content-Range": f"bytes {start}-{end - 1}/{size}", **headers}
            status = 206
        self._head(status, end - start, {"Accept-Ranges": "bytes", **headers})
        if self.command == "HEAD":
            return
        last = end if until is None else max(start, min(end, until))
        with path.open("rb") as opened:
            self._stream(opened.fileno(), start, last)
        if last < end:
            self.hang_up()

    def _stream(self, source: int, start: int, end: int) -> None:
        begun = time.monotonic()
        rate = self.hub.bytes_per_second if self.is_store else None
        # A slow one sends a little, ten times a second.
        block = min(_BLOCK, int(rate / 10) + 1) if rate else _BLOCK
        position = start
        while position < end:
            # socketserver may have given the socket a timeout, which makes sendfile(2) say EAGAIN.
            select.select([], [self.connection], [])
            sent = os.sendfile(self.connection.fileno(), source, position, min(block, end - position))
            position += sent
            self.request_seen.sent += sent
            if rate:
                ahead = (position - start) / rate - (time.monotonic() - begun)
                time.sleep(max(0.0, ahead))

    def hang_up(self) -> None:
        """End the connection in the middle of what it was sending."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def refuse(self, status: int, code: str = "", headers: dict[str, str] | None = None) -> None:
        """An error as the Hub words it."""
        told = {"X-Error-Code": code, "X-Error-Message": f"{code or status}"} if code else {}
        self.send(status, b'{"error":"refused"}', {"Content-Type": "application/json", **told, **(headers or {})})

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.request_seen.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """One answer with its length."""
        self._head(status, len(body), headers)
        if self.command != "HEAD":
            self.wfile.write(body)
            # The words of a refusal are nothing that was asked for.
            self.request_seen.sent += len(body) if status < 400 else 0


def is_large(name: str, file: File) -> bool:
    """Whether a file is in the large-file store."""
    return name.endswith(".safetensors") or file.size >= LARGE_BYTES


class Store(Handler):
    """The second host, where large files are."""

    is_store = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[Handler], hub: HubServer) -> None:
        self.hub = hub
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no error; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextlib.contextmanager
def serve(address: str = "127.0.0.1", port: int = 0) -> Iterator[HubServer]:
    """A Hub, and its store on the next port (on free ports by default), gone when the block ends."""
    hub = HubServer()
    ports = (port, port and port + 1)
    servers = [_Server((address, p), handler, hub) for p, handler in zip(ports, (Handler, Store))]
    hub.endpoint, hub.store = (f"http://{address}:{server.server_address[1]}" for server in servers)
    threads = []
    for server in servers:
        threads.append(threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True))
        threads[-1].start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads):
            server.shutdown()
            server.server_close()
            thread.join()


# --- what can go wrong -----------------------------------------------------------------------------------------------


@dataclass
class _Times:
    """Counts a fault down over the requests that it is for."""

    left: int
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        with self.lock:
            self.left -= 1
            return self.left >= 0


ALWAYS = 10**6


def status(code: int, times: int = ALWAYS, headers: dict[str, str] | None = None, file: str = "") -> Fault:
    """Refuses the first ``times`` requests (for ``file``, if given) with this status."""
    count = _Times(times)

    def fault(handler: Handler, path: str) -> bool:
        if not path.endswith(file) or not count.take():
            return False
        handler.refuse(code, "", headers)
        return True

    return fault


def page(file: str) -> Fault:
    """Answers with a login page instead of the file."""

    def fault(handler: Handler, path: str) -> bool:
        if path.endswith(file):
            handler.send(200, b"<!DOCTYPE html><html>Sign in</html>", {"Content-Type": "text/html"})
        return path.endswith(file)

    return fault


def ignoring_ranges(file: str) -> Fault:
    """Sends the whole file whatever was asked for."""

    def fault(handler: Handler, path: str) -> bool:
        if not (path.endswith(file) and handler.is_store):
            return False
        handler.send(200, handler.stored(path).read_bytes(), {})
        return True

    return fault


def dripping(file: str, seconds: float) -> Fault:
    """Sends a byte now and then, for longer than anyone waits."""

    def fault(handler: Handler, path: str) -> bool:
        if not path.endswith(file):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        for _ in range(1000):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(seconds)
        return True

    return fault


def cut_off(file: str) -> Fault:
    """Closes the connection in the middle of the body."""

    def fault(handler: Handler, path: str) -> bool:
        if not path.endswith(file):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"hidden')
        handler.wfile.flush()
        handler.hang_up()
        return True

    return fault


def cut_at(file: str, position: int, times: int = 1) -> Fault:
    """Sends a stored file up to this byte, then closes the connection, for the first ``times`` requests."""
    count = _Times(times)

    def fault(handler: Handler, path: str) -> bool:
        if not (path.endswith(file) and handler.is_store) or not count.take():
            return False
        handler.send_path(handler.stored(path), {}, until=position)
        return True

    return fault


def silent(file: str, times: int = ALWAYS, seconds: float = 60.0) -> Fault:
    """Announces a stored file and then sends nothing, until the other side has gone away."""
    count = _Times(times)

    def fault(handler: Handler, path: str) -> bool:
        if not (path.endswith(file) and handler.is_store) or not count.take():
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(handler.stored(path).stat().st_size))
        handler.end_headers()
        select.select([handler.connection], [], [], seconds)
        handler.hang_up()
        return True

    return fault


def altered(file: str, times: int = ALWAYS, keep: int | None = None) -> Fault:
    """Sends a stored file with its first byte changed, or only ``keep`` bytes of it as if that were the whole."""
    count = _Times(times)

    def fault(handler: Handler, path: str) -> bool:
        if not (path.endswith(file) and handler.is_store) or not count.take():
            return False
        data = handler.stored(path).read_bytes()
        handler.send(200, data[:keep] if keep is not None else bytes([data[0] ^ 1]) + data[1:], {})
        return True

    return fault


def tell_systemd(state: str) -> None:
    """Tell the service manager, if one has started this process: sd_notify(3)."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(state.encode(), address)


def main() -> None:
    """Serve each folder below FOLDER that holds a config.json, by its path, until the process is ended."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="of the Hub; its large files are on the next one")
    parser.add_argument("--rate", type=float, help="bytes per second of each connection to the large files")
    arguments = parser.parse_args()
    with serve(arguments.address, arguments.port) as hub:
        hub.bytes_per_second = arguments.rate
        for config in sorted(arguments.folder.rglob("config.json")):
            name = str(config.parent.relative_to(arguments.folder))
            print(f"{name}@{hub.add(name, config.parent).commit}", flush=True)
        print(hub.endpoint, flush=True)
        tell_systemd("READY=1")
        threading.Event().wait()


if __name__ == "__main__":
    main()
