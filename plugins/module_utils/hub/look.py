# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One model as the modules are asked for it, and as they tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..checks import as_dicts
from . import fetch, remote_code, repository, snapshot, space
from .trouble import SnapshotError

ERRORS = (SnapshotError, OSError)


def request_of(params: Mapping[str, Any]) -> snapshot.Request:
    """The parameters of hf_snapshot as a request, without the other host that may have the files.

    Raises:
        SnapshotError: the revision can move and may not, or the file with the token cannot be read.
    """
    revision, wanted = params["revision"], params["state"] == "present"
    if wanted and params["repo_id"] and not repository.is_commit(revision or "") and not params["allow_moving"]:
        raise SnapshotError(
            f"expected a commit of 40 hexadecimal digits as revision; found {revision!r}, which can move",
            "give the commit, or set allow_moving: true once to have it resolved and shown",
        )
    token = params["token"] or None
    if params["token_file"]:
        try:
            token = Path(params["token_file"]).read_text(encoding="utf-8").strip() or None
        except OSError as error:
            raise SnapshotError(f"token_file {params['token_file']}: {error.strerror}", "correct it") from error
    return snapshot.Request(
        dest=Path(params["dest"]),
        repo_id=params["repo_id"],
        revision=revision,
        source=Path(params["source"]) if params["source"] else None,
        endpoint=params["endpoint"],
        token=token,
        allow=tuple(params["allow_patterns"]),
        ignore=tuple(params["ignore_patterns"]),
        verify=params["verify"],
        prune=params["prune"],
        python=params["python"],
        xet=params["xet"],
        max_workers=params["max_workers"],
        timeout=params["timeout"],
        stall_timeout=params["stall_timeout"],
        reserve_bytes=params["reserve_bytes"],
    )


def seed_of(params: Mapping[str, Any]) -> fetch.Seed | None:
    """The other host that has the files, where one is named. Raises SnapshotError."""
    if not params["seed"]:
        return None
    address, colon, folder = params["seed"].partition(":")
    if not (address and colon and folder.startswith("/")) or address.startswith("-"):
        raise SnapshotError(f"seed {params['seed']!r} is not of the form user@host:/folder", "correct it")
    return fetch.Seed(address, folder.rstrip("/"), params["seed_key"], params["timeout"])


def plan(request: snapshot.Request) -> snapshot.Plan:
    """What would have to be done, changing nothing. Raises SnapshotError and OSError."""
    planned = snapshot.plan(request)
    # Under a manifest only the hashes tell whether anything would change; without one the answer is known.
    return snapshot.prove(request, planned) if planned.answered and planned.unproven else planned


def told(request: snapshot.Request, planned: snapshot.Plan, name: str) -> dict[str, Any]:
    """A plan as the modules return it, to be carried out or carried out. ``name`` is the operator's for the model."""
    moves = request.repo_id is not None and not remote_code.pinned_by(request) and planned.commit is not None
    return {
        "changed": planned.changes,
        "model": str(request.dest),
        "commit": planned.commit,
        "location": planned.location,
        "paste": remote_code.pin(planned, name) if moves else "",
        "files": len(planned.entries),
        "missing": [entry.path for entry in planned.missing],
        "missing_bytes": planned.missing_bytes,
        "unproven": [entry.path for entry in planned.unproven],
        "removed": list(planned.others) if planned.prune else [],
        "others": [] if planned.prune else list(planned.others),
    }


def judged(request: snapshot.Request, name: str) -> dict[str, Any]:
    """What is told before a run: with it whether there is room, and whose code comes. Raises SnapshotError, OSError."""
    planned = plan(request)
    room = space.judge(request.dest, planned.missing_bytes, len(planned.missing), request.reserve_bytes)
    code = remote_code.judge(request, planned, name)
    return {
        **told(request, planned, name),
        "in_place": planned.in_place,
        "checks": as_dicts([room]),
        "code": as_dicts([code])[0],
    }


def judged_absence(request: snapshot.Request) -> dict[str, Any]:
    """The same of a model that is to be absent."""
    removal = snapshot.plan_removal(request.dest)
    in_place = not (removal.there or (request.prune and removal.others))
    return {"model": str(request.dest), "in_place": in_place, "checks": []}
