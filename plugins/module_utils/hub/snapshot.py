# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's files in a folder: planned (what is there, what is missing, from where), then brought."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest, repository

_LAST_LINES = 15
# Runs under the engine's Python, which has huggingface_hub. The request comes by stdin: no token in a process list.
_DOWNLOAD = """
import json, sys
from huggingface_hub import snapshot_download
request = json.load(sys.stdin)
snapshot_download(**request)
"""


class SnapshotError(Exception):
    """The files could not be brought; the text says what to do."""


@dataclass(frozen=True)
class Request:
    """Which model belongs where: from a repository at a revision, or from a local folder."""

    dest: Path
    repo_id: str | None = None
    revision: str | None = None
    source: Path | None = None
    endpoint: str | None = None
    token: str | None = None
    timeout: float = 30.0

    @property
    def origin(self) -> str:
        """Where the files come from, as the manifest names it."""
        return str(self.source) if self.source is not None else str(self.repo_id)


@dataclass(frozen=True)
class Plan:
    """What is to do. ``location`` is where the model can be read now: a folder, or ``repository@commit``.

    ``in_place`` tells that ``dest`` holds the model, whole and under its manifest.
    """

    files: Mapping[str, int]
    commit: str | None
    missing: tuple[str, ...]
    location: str
    in_place: bool

    @property
    def missing_bytes(self) -> int:
        """What has to be brought, in bytes."""
        return sum(self.files[name] for name in self.missing)


def plan(request: Request) -> Plan:
    """Find out what is there and what is not, and change nothing.

    A folder whose manifest answers the request is believed without asking the Hub: after a reboot a model must not
    depend on a network. A branch is asked for only while there is no manifest; after that its commit stays.

    Raises:
        SnapshotError: the source is not a model's folder.
        repository.HubError: the Hub did not answer the question.
    """
    known = manifest.read(request.dest)
    if known is not None and (known.origin != request.origin or not _same_revision(known.commit, request.revision)):
        known = None
    if known is not None and not manifest.damaged(request.dest, known.files) and not _source_moved_on(request, known):
        return Plan(known.files, known.commit, (), str(request.dest), in_place=True)
    if request.source is not None:
        if not (request.source / "config.json").is_file():
            what = "has no config.json" if request.source.is_dir() else "does not exist"
            raise SnapshotError(f"the source {request.source} {what}; fix: name a folder that holds a model")
        files, commit, location = manifest.listing(request.source), None, str(request.source)
    else:
        endpoint = repository.endpoint_or_default(request.endpoint)
        revision = request.revision or "main"
        found = repository.resolve(str(request.repo_id), revision, endpoint, request.token, request.timeout)
        files, commit, location = found.files, found.commit, f"{found.repo_id}@{found.commit}"
    # Without a manifest that answers the request nothing proves that a file of the right size is the right file.
    missing = sorted(files) if known is None else manifest.damaged(request.dest, files)
    return Plan(files, commit, tuple(missing), location, in_place=False)


def _source_moved_on(request: Request, known: manifest.Manifest) -> bool:
    """Whether the source folder is there and holds other files than were copied."""
    if request.source is None or not request.source.is_dir():
        return False
    return manifest.listing(request.source) != known.files


def _same_revision(commit: str | None, revision: str | None) -> bool:
    return revision is None or not repository.is_commit(revision) or revision == commit


def bring(request: Request, planned: Plan, python: str | None) -> None:
    """Bring what is missing and write the manifest.

    Raises:
        SnapshotError: not enough space, a failed copy or download, or files that are not what was announced.
    """
    request.dest.mkdir(parents=True, exist_ok=True)
    (request.dest / manifest.NAME).unlink(missing_ok=True)
    free = shutil.disk_usage(request.dest).free
    if planned.missing_bytes > free:
        raise SnapshotError(
            f"{request.dest} has {free} bytes free, {planned.missing_bytes} are still missing; "
            "free some space or choose another folder"
        )
    if request.source is not None:
        for name in planned.missing:
            target = request.dest / name
            target.parent.mkdir(parents=True, exist_ok=True)
            # Copied beside it first: a killed copy must not leave a short file under the real name.
            partial = target.with_name(f"{target.name}.partial")
            shutil.copyfile(request.source / name, partial)
            partial.replace(target)
    else:
        _download(request, str(planned.commit), python)
    damaged = manifest.damaged(request.dest, planned.files)
    if damaged:
        names = ", ".join(damaged[:5])
        raise SnapshotError(f"{request.dest} is not whole: {names} missing or of the wrong size; run again")
    manifest.Manifest(request.origin, planned.commit, planned.files).write(request.dest)


def _download(request: Request, commit: str, python: str | None) -> None:
    if python is None or not os.access(python, os.X_OK):
        raise SnapshotError(
            f"a download needs a Python with huggingface_hub, and {python} is not there; install the engine first"
        )
    told = {
        "repo_id": request.repo_id,
        "revision": commit,
        "local_dir": str(request.dest),
        "endpoint": repository.endpoint_or_default(request.endpoint),
        "token": request.token,
    }
    done = subprocess.run(
        [python, "-I", "-c", _DOWNLOAD], input=json.dumps(told), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise SnapshotError(f"downloading {request.repo_id}@{commit} ended with {done.returncode}:\n{lines}")
