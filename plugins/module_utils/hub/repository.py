# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model repository on the Hub holds at a revision, asked over HTTP with nothing but the standard library.

The download itself is huggingface_hub's. The question which commit a branch is now must be answered before there is an
engine, and so before there is a huggingface_hub.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

# huggingface_hub/constants.py (2.4.0): ENDPOINT.
DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ANSWER_LIMIT_BYTES = 64 << 20


class HubError(Exception):
    """The Hub did not give what was asked for; the text says what to do."""


@dataclass(frozen=True)
class Revision:
    """One commit of a repository. ``files`` maps paths to sizes in bytes."""

    repo_id: str
    commit: str
    files: dict[str, int]


def is_commit(revision: str) -> bool:
    """Whether ``revision`` names a commit, which cannot move, and no branch or tag, which can."""
    return _COMMIT.fullmatch(revision) is not None


def endpoint_or_default(endpoint: str | None) -> str:
    """The Hub to ask: the given one, else HF_ENDPOINT, else the public one."""
    return (endpoint or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def resolve(repo_id: str, revision: str, endpoint: str, token: str | None, timeout: float) -> Revision:
    """Ask which commit ``revision`` is and which files it has.

    Raises:
        HubError: no such repository or revision, no access, no answer, or an answer that is no repository's.
    """
    quoted = urllib.parse.quote(revision, safe="")
    url = f"{endpoint}/api/models/{urllib.parse.quote(repo_id)}/revision/{quoted}?blobs=true"
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    if token:
        # Unredirected: a mirror that sends us elsewhere does not get the token passed on.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    where = f"{repo_id} at revision {revision} on {endpoint}"
    try:
        with urllib.request.build_opener().open(request, timeout=timeout) as answer:
            body = answer.read(_ANSWER_LIMIT_BYTES)
    except urllib.error.HTTPError as error:
        raise HubError(_refusal(error.code, where, bool(token))) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise HubError(f"{where}: no answer ({reason}); check the network or set the endpoint of a mirror") from error
    try:
        told = json.loads(body)
        files = {item["rfilename"]: int(item["size"]) for item in told["siblings"]}
        commit = str(told["sha"])
    except (ValueError, KeyError, TypeError) as error:
        raise HubError(f"{where}: the answer is not a repository's; check that the endpoint is a Hub") from error
    if not is_commit(commit):
        raise HubError(f"{where}: the answer names {commit!r} as its commit; check that the endpoint is a Hub")
    return Revision(repo_id, commit, files)


def _refusal(code: int, where: str, with_token: bool) -> str:
    if code in (401, 403):
        what = (
            "accept the model's terms and check the token's rights" if with_token else "give a token that may read it"
        )
        return f"{where}: access refused (HTTP {code}); {what}"
    if code == 404:
        return f"{where}: not found (HTTP 404); check the spelling of the repository and of the revision"
    return f"{where}: the Hub answered HTTP {code}; try again later or set the endpoint of a mirror"
