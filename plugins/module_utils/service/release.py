# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release: everything that an engine is started from, under one hash.

What is installed is read from the records that lie beside it, so that a run of one step alone knows the same release as
a run of all steps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state


@dataclass(frozen=True)
class Release:
    """``parts`` holds a hash for each part, None for one that is not there or was not made by this collection."""

    parts: Mapping[str, str | None]

    @property
    def hash(self) -> str:
        """The hash of all parts together."""
        return _hash(dict(self.parts))


def _hash(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def read(args: Sequence[str], environment_hash: str, keys_hash: str, engine: Path, models: Sequence[Path]) -> Release:
    """The release that a start with these arguments would be."""
    record = state.read_record(engine)
    parts: dict[str, str | None] = {
        "args": _hash(list(args)),
        "environment": environment_hash,
        "keys": keys_hash,
        # Not the request's key: a comment in a lock is no reason to load a model again.
        "engine": _hash([record.python, dict(record.packages), dict(record.hashes), dict(record.origins)])
        if record is not None and record.finished
        else None,
    }
    for model in models:
        known = manifest.read(model)
        parts[str(model)] = (
            None if known is None else _hash([known.origin, known.commit, dict(known.files), dict(known.digests)])
        )
    return Release(parts)
