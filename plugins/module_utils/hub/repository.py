# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model repository on the Hub holds at a revision, asked over HTTP with nothing but the standard library.

The download itself is huggingface_hub's. The question which commit a branch is now must be answered before there is an
engine, and so before there is a huggingface_hub.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

# huggingface_hub/constants.py (2.4.0): ENDPOINT.
DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ANSWER_LIMIT_BYTES = 64 << 20
# The Hub's pages hold up to 1000 entries; no model has this many.
_PAGES_LIMIT = 1000
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')


class HubError(SnapshotError):
    """The Hub did not give what was asked for."""


@dataclass(frozen=True)
class Entry:
    """A file of a model: its path there, its size in bytes, and what is known of its content.

    The Hub names a large file's SHA-256, and of a small one git's hash of its blob. A plain folder names neither;
    ``stamp`` then tells one state of a file from another.
    """

    path: str
    size: int
    sha256: str | None = None
    blob: str | None = None
    stamp: int = 0

    @property
    def is_named(self) -> bool:
        """Whether the content is known before the file is there."""
        return self.sha256 is not None or self.blob is not None


@dataclass(frozen=True)
class Revision:
    """One commit of a repository, with every file of it."""

    repo_id: str
    commit: str
    entries: tuple[Entry, ...]


def is_commit(revision: str) -> bool:
    """Whether ``revision`` names a commit, which cannot move, and no branch or tag, which can."""
    return _COMMIT.fullmatch(revision) is not None


def endpoint_or_default(endpoint: str | None) -> str:
    """The Hub to ask: the given one, else HF_ENDPOINT, else the public one."""
    return (endpoint or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def chosen(entries: Iterable[Entry], allow: Sequence[str], ignore: Sequence[str]) -> tuple[Entry, ...]:
    """The entries that patterns choose.

    Source: huggingface_hub/utils/_paths.py (2.4.0) filter_repo_objects: a pattern that ends in a slash means what is
    below that folder; an entry is in when one of ``allow`` matches (or there is none) and none of ``ignore`` does.
    """
    allowed, ignored = ([p + "*" if p.endswith("/") else p for p in patterns] for patterns in (allow, ignore))
    return tuple(
        entry
        for entry in entries
        if (not allowed or any(fnmatch.fnmatch(entry.path, pattern) for pattern in allowed))
        and not any(fnmatch.fnmatch(entry.path, pattern) for pattern in ignored)
    )


def resolve(repo_id: str, revision: str, endpoint: str, token: str | None, timeout: float) -> Revision:
    """Ask which commit ``revision`` is and which files it has.

    Raises:
        HubError: no such repository or revision, no access, no answer, or an answer that is no repository's.
    """
    where = f"{repo_id} at revision {revision} on {endpoint}"
    api = f"{endpoint}/api/models/{urllib.parse.quote(repo_id)}"
    commit = revision
    if not is_commit(revision):
        told = _ask(f"{api}/revision/{urllib.parse.quote(revision, safe='')}", token, timeout, where)[0]
        commit = str(told.get("sha")) if isinstance(told, dict) else ""
        if not is_commit(commit):
            raise _no_hub(where)
    return Revision(repo_id, commit, tuple(_tree(f"{api}/tree/{commit}", token, timeout, where)))


def _tree(address: str, token: str | None, timeout: float, where: str) -> Iterator[Entry]:
    """Every file, page by page."""
    query = "recursive=true"
    pages = 0
    while pages < _PAGES_LIMIT:
        pages += 1
        told, link = _ask(f"{address}?{query}", token, timeout, where)
        if not isinstance(told, list):
            raise _no_hub(where)
        for item in told:
            if entry := _entry(item, where):
                yield entry
        following = _NEXT.search(link)
        if following is None:
            return
        # A mirror passes on the address of the Hub that it mirrors: only the place in the list is taken from it.
        query = urllib.parse.urlsplit(following[1]).query
    raise HubError(f"{where}: the list of files has no end", "check that the endpoint is a Hub")


def _entry(item: Any, where: str) -> Entry | None:
    try:
        if item["type"] != "file":
            return None
        large = item.get("lfs")
        path, size = str(item["path"]), int((large or item)["size"])
        entry = Entry(path, size, str(large["oid"])) if large else Entry(path, size, blob=str(item["oid"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_hub(where) from error
    if not is_safe(path):
        raise HubError(f"{where}: a file is named {path!r}, a path that no model may have", "use another endpoint")
    return entry


def is_safe(path: str) -> bool:
    """Whether a path stays below the folder that it is put in, and away from what this collection keeps there."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts and "\0" not in path and not _is_ours(parts[0])


def _is_ours(part: str) -> bool:
    return part.startswith(".gpuserve")


def _ask(url: str, token: str | None, timeout: float, where: str) -> tuple[Any, str]:
    """The answer, and its Link header."""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    if token:
        # Unredirected: a mirror that sends us elsewhere does not get the token passed on.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener().open(request, timeout=timeout) as answer:
            return json.loads(answer.read(_ANSWER_LIMIT_BYTES)), answer.headers.get("Link", "")
    except urllib.error.HTTPError as error:
        with error:
            code = error.headers.get("X-Error-Code", "")
            what, fix = refusal(error.code, code, bool(token))
            raise HubError(f"{where}: {what}", fix) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise HubError(f"{where}: no answer ({reason})", "check the network or set the endpoint of a mirror") from error
    except ValueError as error:
        raise _no_hub(where) from error


def _no_hub(where: str) -> HubError:
    return HubError(f"{where}: the answer is not a repository's", "check that the endpoint is a Hub")


def refusal(status: int, code: str, with_token: bool) -> tuple[str, str]:
    """What an HTTP status means, and what to do.

    ``code`` is the answer's X-Error-Code. Source: huggingface_hub/utils/_http.py (2.4.0) hf_raise_for_status.
    """
    if code == "GatedRepo":
        what = (
            "accept the model's terms on its page with the account of this token"
            if with_token
            else "accept the model's terms on its page and give the token of that account"
        )
        return f"the repository is gated (HTTP {status})", what
    if code == "RevisionNotFound":
        return f"the repository has no such revision (HTTP {status})", "correct the revision"
    if code == "EntryNotFound":
        fix = "give another revision, or ask the operator of the endpoint"
        return f"a file of the list is gone (HTTP {status})", fix
    if status in (401, 403):
        what = (
            "check the spelling of the repository, and that the token is valid and may read it"
            if with_token
            else "check the spelling of the repository, or give a token that may read it"
        )
        return f"access refused (HTTP {status})", what
    if status == 404:
        return f"not found (HTTP {status})", "check the spelling of the repository and of the revision"
    if status == 429:
        return f"too many requests (HTTP {status})", "wait some minutes, or give a token"
    return f"the Hub answered HTTP {status}", "try again later or set the endpoint of a mirror"
