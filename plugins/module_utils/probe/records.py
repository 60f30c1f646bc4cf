# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs leave on the host: a file for each release, and the baseline of a model, an engine and a hardware.

A release's file is ``{"release", "identity", "runs": {"quick": ..., "full": ...}}`` with the last run of each level, so
that a run that changed nothing does not take away what the deploy found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.files import write_whole

# Prompts, answers and figures: no secret is in them.
_MODE = 0o644
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class RecordError(Exception):
    """A file of ours cannot be read or written."""


@dataclass(frozen=True)
class Answer:
    """An answer to one prompt. ``timed_tokens`` were decoded in ``timed_seconds``."""

    text: str
    timed_tokens: int
    timed_seconds: float


@dataclass(frozen=True)
class Baseline:
    """A run without speculation. ``recorded`` is its time in UTC, ``in_effect`` the engine's arguments then."""

    path: str
    release: str
    recorded: str
    in_effect: Mapping[str, Any]
    answers: Mapping[str, Answer]


def name_of(release: str | None, now: str) -> str:
    """What the file of a run is called: its release, or else its time.

    Raises:
        RecordError: the release is no name for a file.
    """
    name = release or now
    if not _NAME.fullmatch(name) or name.startswith("baseline-"):
        raise RecordError(f"release {name!r} is no name for a file: use letters, digits, '.', '_' and '-'")
    return name


def baseline_path(folder: Path, identity: Mapping[str, Any]) -> Path:
    """Where the baseline of a model, an engine and a hardware is kept."""
    told = json.dumps(identity, sort_keys=True, default=str)
    return folder / f"baseline-{hashlib.sha256(told.encode()).hexdigest()[:16]}.json"


def read_baseline(path: Path) -> Baseline | None:
    """The baseline, None where none was recorded.

    Raises:
        RecordError: the file is not one of ours.
    """
    told = _read(path)
    if told is None:
        return None
    try:
        answers = {
            prompt: Answer(str(one["text"]), int(one["timed_tokens"]), float(one["timed_seconds"]))
            for prompt, one in told["answers"].items()
        }
        return Baseline(str(path), str(told["release"]), str(told["recorded"]), dict(told["in_effect"]), answers)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RecordError(f"{path} is no baseline: {error!r}") from error


def keep_baseline(
    path: Path,
    identity: Mapping[str, Any],
    release: str,
    recorded: str,
    in_effect: Mapping[str, Any],
    answers: Mapping[str, Answer],
) -> None:
    """Replace the baseline. Raises RecordError."""
    told = {
        "identity": identity,
        "release": release,
        "recorded": recorded,
        "in_effect": in_effect,
        "answers": {prompt: asdict(answer) for prompt, answer in answers.items()},
    }
    _write(path, told)


def keep_run(folder: Path, name: str, identity: Mapping[str, Any], level: str, run: Mapping[str, Any]) -> Path:
    """Put the run into the file of its release. Raises RecordError."""
    path = folder / f"{name}.json"
    try:
        before = _read(path)
    except RecordError:
        # Nothing in it can be read, so nothing is lost.
        before = None
    runs = before.get("runs") if before else None
    runs = {**(runs if isinstance(runs, dict) else {}), level: run}
    _write(path, {"release": name, "identity": identity, "runs": runs})
    return path


def _read(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(told, dict):
        raise RecordError(f"{path} is none of this module's files")
    return told


def _write(path: Path, told: Mapping[str, Any]) -> None:
    try:
        write_whole(path, json.dumps(told, indent=1, sort_keys=True, default=str) + "\n", _MODE)
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error}") from error
