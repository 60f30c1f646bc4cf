# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkpoint on a Hub, read in pieces by HTTP range requests."""

from __future__ import annotations

import http.client
import os
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import IO, TypeVar

from .errors import BudgetError, CheckpointError
from .reader import read_checkpoint
from .source import Cost, Digest, Directory, Piece, Source

T = TypeVar("T")
PUBLIC_HUB = "https://huggingface.co"
# Namespace and name, or the name alone. Source: huggingface_hub utils/_validators.py validate_repo_id.
REPOSITORY = re.compile(r"([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
# The first request for a whole file brings this much; a longer one is looked at before it is paid for.
FIRST_BYTES = 65_536
# One answer may not keep the run waiting longer than this, however much time is left.
ANSWER_SECONDS = 20.0
CHUNK_BYTES = 65_536
RETRIES = 2
RETRIED = (429, 500, 502, 503, 504)
LONGEST_WAIT = 5.0


@dataclass
class Limits:
    """What reading may cost in all, and when it has to be over (``time.monotonic`` seconds)."""

    max_bytes: int
    max_requests: int
    deadline: float


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a file to its store, without the token and never from https to http; or only within the Hub."""

    def __init__(self, cost: Cost, everywhere: bool) -> None:
        self.cost = cost
        self.everywhere = everywhere

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
            raise urllib.error.URLError(f"redirected from {old.scheme} to {new.scheme}, which is not followed")
        elsewhere = (old.scheme, old.netloc) != (new.scheme, new.netloc)
        if elsewhere and not self.everywhere:
            return None
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            self.cost.requests += 1
            following.method = req.get_method()
            if elsewhere:
                following.remove_header("Authorization")
        return following


@dataclass
class Hub(Source):
    """One repository at one revision; after the first answer, at the commit that the revision meant then."""

    label: str
    revision: str
    endpoint: str
    token: str | None = field(repr=False)
    cost: Cost
    limits: Limits
    variable: str
    commit: str = ""

    def __post_init__(self) -> None:
        self._following = urllib.request.build_opener(_Redirects(self.cost, everywhere=True))
        self._staying = urllib.request.build_opener(_Redirects(self.cost, everywhere=False))

    def describe(self) -> dict[str, str]:
        told = {"source": "hub", "repository": self.label, "revision": self.revision}
        return {**told, "commit": self.commit} if self.commit else told

    def whole(self, name: str, limit: int) -> bytes | None:
        first = self.piece(name, 0, min(limit, FIRST_BYTES))
        if first is None:
            return None
        if first.file_bytes > limit:
            raise CheckpointError(f"at most {limit} bytes in {name}", f"{first.file_bytes} bytes", "check it by hand")
        if len(first.data) == first.file_bytes:
            return first.data
        rest = self.piece(name, len(first.data), first.file_bytes - len(first.data))
        data = first.data + (rest.data if rest is not None else b"")
        if len(data) != first.file_bytes:
            raise self._error(f"all {first.file_bytes} bytes of {name}", f"{len(data)}", "try again")
        return data

    def piece(self, name: str, start: int, length: int) -> Piece | None:
        if length <= 0:
            return Piece(b"", 0)
        if self.cost.bytes_read + length > self.limits.max_bytes:
            found = f"{length} more would go beyond the {self.limits.max_bytes} bytes granted"
            raise BudgetError(f"{name} of {self.label}", found, "read it on a host that holds the model")

        def read() -> Piece:
            request = self._request(name, "GET")
            request.add_header("Range", f"bytes={start}-{start + length - 1}")
            with self._open(request, self._following) as response:
                self.commit = self.commit or response.headers.get("X-Repo-Commit", "")
                return self._body(response, start, length)

        try:
            return self._try(name, read)
        except urllib.error.HTTPError as error:
            with error:
                match = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
                if error.code == 416:
                    return Piece(b"", int(match[1]) if match else 0)
                self._refused(error, name)
                return None

    def digest(self, name: str) -> Digest | None:
        """The hash that the Hub tells of a file, without the file.

        Headers: X-Linked-Etag and X-Linked-Size of a file in large-file storage (its SHA-256), else the ETag (the git
        hash of its blob). Source: huggingface_hub file_download.py get_hf_file_metadata.
        """

        def read() -> Message:
            with self._open(self._request(name, "HEAD"), self._staying) as response:
                return response.headers

        try:
            headers = self._try(name, read)
        except urllib.error.HTTPError as error:
            with error:
                # A redirect to the store, which is not followed: its own headers tell.
                if not 300 <= error.code < 400:
                    self._refused(error, name)
                    return None
                headers = error.headers
        size = headers.get("X-Linked-Size") or headers.get("Content-Length") or ""
        tag = (headers.get("X-Linked-Etag") or headers.get("ETag") or "").strip('W/"').lower()
        known = re.fullmatch("[0-9a-f]+", tag) is not None
        return Digest(
            int(size) if size.isdigit() else 0,
            sha256=tag if known and len(tag) == 64 else None,
            git=tag if known and len(tag) == 40 else None,
        )

    def _left(self) -> float:
        return self.limits.deadline - time.monotonic()

    def _try(self, name: str, read: Callable[[], T]) -> T:
        """Calls ``read``, again where the Hub asks for patience. Raises HTTPError for every other refusal."""
        for attempt in range(RETRIES + 1):
            if self.cost.requests >= self.limits.max_requests:
                found = f"the {self.limits.max_requests} requests granted are used up"
                raise BudgetError(f"{name} of {self.label}", found, "read it on a host that holds the model")
            try:
                return read()
            except urllib.error.HTTPError as error:
                wait = _wait(error, attempt)
                if error.code not in RETRIED or attempt == RETRIES or wait > min(LONGEST_WAIT, self._left()):
                    raise
                error.close()
                time.sleep(wait)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._unreachable(name, error) from error
        raise AssertionError("the last attempt returns or raises")

    def _request(self, name: str, method: str) -> urllib.request.Request:
        revision = urllib.parse.quote(self.commit or self.revision, "")
        file = urllib.parse.quote(name)
        url = f"{self.endpoint.rstrip('/')}/{self.label}/resolve/{revision}/{file}"
        request = urllib.request.Request(url, method=method)
        request.add_header("Accept-Encoding", "identity")
        request.add_header("User-Agent", "gpuserve-sglang")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        return request

    def _open(self, request: urllib.request.Request, opener: urllib.request.OpenerDirector) -> http.client.HTTPResponse:
        self.cost.requests += 1
        if self._left() <= 0:
            raise TimeoutError("the time limit is over")
        response: http.client.HTTPResponse = opener.open(request, timeout=min(ANSWER_SECONDS, self._left()))
        return response

    def _body(self, response: http.client.HTTPResponse, start: int, length: int) -> Piece:
        if response.status == 206:
            match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", ""))
            if match is None or int(match[1]) != start:
                raise ValueError(f"a range was asked for, and {response.headers.get('Content-Range')!r} came")
            wanted = min(length, int(match[2]) - start + 1)
            return Piece(_all(self._read(response, wanted), wanted), int(match[3]))
        if start:
            raise ValueError("the server ignores range requests")
        data = self._read(response, length)
        declared = response.headers.get("Content-Length", "")
        if declared.isdigit():
            return Piece(_all(data, min(length, int(declared))), int(declared))
        if len(data) == length:
            raise ValueError("the server tells no file size and ignores range requests")
        return Piece(data, len(data))

    def _read(self, response: http.client.HTTPResponse, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            if self._left() <= 0:
                raise TimeoutError("the time limit is over")
            chunk = response.read1(min(CHUNK_BYTES, length - len(data)))
            if not chunk:
                break
            data += chunk
            self.cost.bytes_read += len(chunk)
        return bytes(data)

    def _refused(self, error: urllib.error.HTTPError, name: str) -> None:
        """What a status means: None for a file that is not there, else a CheckpointError. Headers: huggingface_hub
        utils/_http.py hf_raise_for_status (X-Error-Code)."""
        code = error.headers.get("X-Error-Code", "")
        if code == "RevisionNotFound":
            found = f"no revision {self.revision} of it"
            raise self._error(f"the repository {self.label}", found, f"correct {self.variable}_revision")
        if error.code == 404 and code != "RepoNotFound":
            return
        token = "with the token given" if self.token else "without a token"
        if code == "GatedRepo":
            fix = "accept the licence on the model's page, and give the token of that account"
            raise self._error(f"to read {self.label}", f"a gated repository, refused {token}", fix)
        if error.code in (401, 403, 404):
            found = f"HTTP {error.code} {token}: no such repository, or a private one"
            fix = f"correct {self.variable}, or give a token that may read it"
            raise self._error(f"to read {self.label}", found, fix)
        if error.code == 429:
            fix = "wait some minutes, or give a token"
            raise self._error(f"to read {self.label}", "HTTP 429: too many requests from this address", fix)
        raise self._error(f"to read {name} of {self.label}", f"HTTP {error.code}", "try again later, or set endpoint")

    def _unreachable(self, name: str, error: BaseException) -> CheckpointError:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, (socket.timeout, TimeoutError)):
            found = f"no complete answer from {self.endpoint} in time"
        elif isinstance(reason, OSError):
            found = f"no connection to {self.endpoint}: {reason.strerror or reason}"
        else:
            found = f"no usable answer from {self.endpoint}: {reason}"
        fix = f"let this host reach {self.endpoint}, or set {self.variable} to a local directory"
        return self._error(f"to read {name} of {self.label}", found, fix)

    @staticmethod
    def _error(expected: str, found: str, fix: str) -> CheckpointError:
        return CheckpointError(expected, found, fix)


def _all(data: bytes, wanted: int) -> bytes:
    if len(data) < wanted:
        raise ValueError(f"the connection ended after {len(data)} of {wanted} bytes")
    return data


def _wait(error: urllib.error.HTTPError, attempt: int) -> float:
    """Seconds until the next try: what the server asks for, else a little longer each time."""
    asked = error.headers.get("Retry-After", "")
    return float(asked) if asked.isdigit() else min(LONGEST_WAIT, 0.5 * 2**attempt)


def cached(repository: str, revision: str, environment: dict[str, str] | None = None) -> Directory | None:
    """The repository's snapshot in this host's Hub cache, when one is there and its weights are complete.

    Layout: huggingface_hub, guide "Understand caching": models--ORG--NAME with refs/REVISION and snapshots/COMMIT.
    """
    env = os.environ if environment is None else environment
    home = env.get("HF_HOME") or str(Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    root = Path(env.get("HF_HUB_CACHE") or str(Path(home) / "hub")).expanduser()
    folder = root / ("models--" + repository.replace("/", "--"))
    try:
        reference = folder / "refs" / revision
        commit = reference.read_text("utf-8").strip() if reference.is_file() else revision
        snapshot = folder / "snapshots" / commit
        if "/" in commit or ".." in commit or not (snapshot / "config.json").is_file():
            return None
    except (OSError, ValueError):
        return None
    facts = {"source": "cache", "repository": repository, "revision": revision, "commit": commit, "path": str(snapshot)}
    directory = Directory(repository, snapshot, facts)
    try:
        shards = read_checkpoint(directory, "cache").shards
        return directory if all((snapshot / shard).is_file() for shard in shards) else None
    except CheckpointError:
        return None


def open_source(
    value: str, revision: str, variable: str, endpoint: str | None, token: str | None, cost: Cost, limits: Limits
) -> Source:
    """The source that an operator's value names: a directory, a cached repository, or a repository on the Hub.

    Raises CheckpointError, naming ``variable``, for a directory that cannot be read or a value that names neither.
    """
    if value.startswith("/"):
        return Directory.open(value, variable)
    if not REPOSITORY.fullmatch(value):
        fix = f"set {variable} to one of them"
        raise CheckpointError("an absolute path, or a repository like organisation/name", repr(value)[:120], fix)
    return cached(value, revision) or Hub(value, revision, endpoint or PUBLIC_HUB, token, cost, limits, variable)
