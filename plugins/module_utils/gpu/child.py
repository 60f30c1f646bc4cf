# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a probe in a process of its own, under a time limit.

A driver library may hang, crash or print. So each probe is a self-contained script of this collection (``probes/``)
that an interpreter reads from its standard input and that answers with one JSON object a line. What it said before it
hung is kept.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

DONE = "done"
# Killed at its time limit.
TIMEOUT = "timeout"
# Ended by a signal that we did not send.
CRASHED = "crashed"
# Ended by itself with a status other than 0, or never started.
FAILED = "failed"
# Asked to die and still there: it waits inside the kernel, where no signal reaches it.
STUCK = "stuck"

# How long a killed child may take to go, in seconds.
GRACE = 2.0


@dataclass(frozen=True)
class Report:
    """What a probe said and how it ended. ``seconds`` is the wall time it was given or took."""

    records: tuple[dict[str, Any], ...]
    end: str
    detail: str
    seconds: float

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind, in their order."""
        return [record for record in self.records if record.get("kind") == kind]

    def trouble(self) -> str:
        """How it ended as a clause for a sentence; empty when it ended well."""
        return {
            DONE: "",
            TIMEOUT: f"no answer within {self.seconds:.0f} s",
            CRASHED: f"the process died of {self.detail}",
            FAILED: self.detail,
            STUCK: f"no answer within {self.seconds:.0f} s, and {self.detail}, stuck in the kernel, cannot be killed",
        }[self.end]


def run_probe(
    probe: ModuleType,
    arguments: Sequence[str] = (),
    *,
    interpreter: str,
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> Report:
    """Run ``probe`` under ``interpreter`` and wait for at most ``timeout`` seconds (and GRACE for it to die)."""
    started = time.monotonic()
    # The operator's selection of devices would hide what the machine has.
    env = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    env.update(environment or {})
    try:
        # cwd: with a script from standard input the interpreter looks for modules in its working directory first.
        child = subprocess.Popen(
            [interpreter, "-", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return Report((), FAILED, f"{interpreter} does not start: {error.strerror}", 0.0)
    try:
        out, err = child.communicate(inspect.getsource(probe).encode(), timeout)
    except subprocess.TimeoutExpired:
        out, end = _kill(child)
        return Report(_records(out), end, f"process {child.pid}", timeout)
    seconds = time.monotonic() - started
    if child.returncode == 0:
        return Report(_records(out), DONE, "", seconds)
    if child.returncode < 0:
        return Report(_records(out), CRASHED, signal.Signals(-child.returncode).name, seconds)
    last = err.decode(errors="replace").strip().splitlines()[-1:]
    return Report(_records(out), FAILED, f"exit status {child.returncode}: {' '.join(last)}", seconds)


def _kill(child: subprocess.Popen[bytes]) -> tuple[bytes, str]:
    os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=GRACE)[0], TIMEOUT
    except subprocess.TimeoutExpired as late:
        return late.output or b"", STUCK


def _records(out: bytes) -> tuple[dict[str, Any], ...]:
    records = []
    for line in out.decode(errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # A library's own words, or a line that was being written when the child was killed.
        if isinstance(record, dict):
            records.append(record)
    return tuple(records)
