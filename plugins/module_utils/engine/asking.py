# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an installed engine for its own verdict on an argument list, in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import child
from .flags import Spelling

_LOG_LINES = 5
# Where the engine and its libraries write while they are imported or resolve. The process gets a folder of its own for
# them, which is removed: a run as root must not leave files that the service's user cannot replace.
_WRITTEN = (
    "HF_MODULES_CACHE",
    "SGLANG_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE",
    "TVM_FFI_CACHE_DIR",
    "CUDA_CACHE_PATH",
)


@dataclass(frozen=True)
class Place:
    """Where in the engine an error came up; ``line`` 0 where that is not known."""

    file: str = ""
    line: int = 0
    code: str = ""
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else ""


@dataclass(frozen=True)
class Answer:
    """What came of asking.

    ``stage`` is ``start`` (the interpreter did not run), ``import``, ``parse``, ``resolve``, ``died`` (the process
    ended without an answer), ``timeout`` or ``done``. ``error`` is the name of the exception, ``message`` its text or
    the reason. ``explicit`` has the flag of each setting that was asked for, ``parsed`` what was asked, ``resolved``
    what came out, ``steps`` which step of the engine decided. ``spelled`` has, for each flag of the list, how the
    engine's parser reads it. ``elsewhere``: it was asked for CUDA where no GPU is.
    """

    stage: str
    error: str = ""
    message: str = ""
    place: Place = Place()
    explicit: Mapping[str, str] = field(default_factory=dict)
    spelled: Mapping[str, Spelling] = field(default_factory=dict)
    parsed: Mapping[str, object] = field(default_factory=dict)
    resolved: Mapping[str, object] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    elsewhere: bool = False


def ask(python: Path, args: Sequence[str], environment: Mapping[str, str], timeout: float) -> Answer:
    """Runs the engine's own parser and validation on ``args`` with the interpreter ``python``.

    No weights are loaded and no GPU is needed. Nothing is fetched: a model's config must be on this machine. The
    process gets ``environment`` on top of a bare one, as a service does, and at most ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="sglang-args-") as scratch:
        bare = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "TMPDIR") if name in os.environ}
        offline = {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        process_environment = {**bare, **offline, **environment, **{name: f"{scratch}/{name}" for name in _WRITTEN}}
        try:
            process = subprocess.Popen(
                [str(python), "-c", inspect.getsource(child)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=scratch,
                env=process_environment,
                start_new_session=True,
            )
        except OSError as error:
            return Answer("start", message=f"{python} does not run: {error.strerror}")
        question = json.dumps({"args": list(args)}).encode()
        try:
            told, noise = process.communicate(question, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            noise = process.communicate()[1]
            return Answer("timeout", message=f"no answer within {timeout:g} s; last lines: {_last_lines(noise)}")
    try:
        answer = json.loads(told)
    except ValueError:
        ended = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        return Answer("died", message=f"the process ended with {ended}; last lines: {_last_lines(noise)}")
    return Answer(
        stage=answer["stage"],
        error=answer.get("error", ""),
        message=answer.get("message", ""),
        place=Place(*(answer[part] for part in ("file", "line", "code", "function"))) if "file" in answer else Place(),
        explicit=answer["explicit"],
        spelled={flag: Spelling(*read) for flag, read in answer["spelled"].items()},
        parsed=answer["parsed"],
        resolved=answer.get("resolved", {}),
        steps=answer.get("steps", {}),
        warnings=answer["warnings"],
        elsewhere=answer["elsewhere"],
    )


def _last_lines(noise: bytes) -> str:
    lines = [line.strip() for line in noise.decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-_LOG_LINES:]) or "none"
