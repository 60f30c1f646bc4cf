# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a start of the engine has come, out of what it writes.

The lines: sglang/srt/model_executor/model_runner.py and model_loader/weight_utils.py (0.5.9 to 0.5.23), the bars: tqdm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

IMPORTING = "importing"
STARTING = "starting the workers"
LOADING = "loading weights"
KV_CACHE = "allocating the KV cache"
CAPTURING = "capturing graphs"
WARMING_UP = "warming up"
READY = "ready"


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` shards or graphs; ``left_s`` is the engine's own guess. None where it tells nothing."""

    phase: str
    what: str = ""
    done: int | None = None
    total: int | None = None
    left_s: int | None = None

    @property
    def percent(self) -> int | None:
        """How much of the phase is done."""
        return None if self.done is None or not self.total else 100 * self.done // self.total

    def sentence(self) -> str:
        """For an operator who waits."""
        told = f"{self.phase}{f' of the {self.what}' if self.what else ''}"
        if self.percent is None:
            return told
        if self.phase == LOADING and self.done == self.total:
            # Repacking for a kernel, which may have to be compiled first, can take longer than reading.
            return f"{told}: {self.total} of {self.total} shards are read and being prepared"
        unit = "shard" if self.phase == LOADING else "graph"
        told += f": {unit} {self.done} of {self.total} ({self.percent} %)"
        return f"{told}, about {duration(self.left_s)} left" if self.left_s else told


def duration(seconds: float) -> str:
    """A time as one says it."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"


# Without ranks there is no tag; of several ranks the first one speaks for all.
_TAG = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<ranks>(?: [A-Z]+\d+)*)\] "
_STEP = re.compile(
    _TAG + r"(?:(?P<arguments>server_args=)|(?P<joining>Init torch distributed begin)|(?P<loading>Load weight begin)|"
    r"(?P<pool>(?:KV Cache is allocated|Memory pool end)\b)|"
    r"Capture (?P<graphs>[\w -]*?) ?(?:cuda|CUDA) graph begin|"
    r"(?P<up>INFO:     (?:Started server process|Uvicorn running))|(?P<ready>The server is fired up and ready to roll))"
)
_OTHER_RANK = re.compile(r" (?:TP|DP|PP)[1-9]")
_SHARDS = re.compile(
    r"(?:shards|Fastsafetensor loader|Model Streamer): +\d+%.*?\| (?P<done>\d+)/(?P<total>\d+) "
    r"\[[\d:]+<(?P<left>[\d:]+|\?)[,\]]"
)
_GRAPHS = re.compile(r"Capturing [^|]*: +\d+%\|[^|]*\| (?P<done>\d+)/(?P<total>\d+) \[[\d:]+<(?P<left>[\d:]+|\?)[,\]]")
_BARS = {LOADING: _SHARDS, CAPTURING: _GRAPHS}


def progress(text: str) -> Progress:
    """What the last lines of a start tell.

    The journal shows a bar only when its line has ended; the unit sets TQDM_UNIT so that it does at each step.
    """
    now = Progress(IMPORTING)
    loads = 0
    for line in re.split(r"[\r\n]", text):
        step = _STEP.match(line)
        if step is not None:
            # With its warm-up left out the engine says that it is ready before it listens.
            if now.phase != READY and not _OTHER_RANK.search(step["ranks"]):
                now, loads = _after(step, now, loads)
            continue
        pattern = _BARS.get(now.phase)
        found = None if pattern is None else pattern.search(line)
        if found is not None:
            now = replace(now, done=int(found["done"]), total=int(found["total"]), left_s=_seconds(found["left"]))
    return now


def _after(step: re.Match[str], now: Progress, loads: int) -> tuple[Progress, int]:
    if step["loading"]:
        return Progress(LOADING, "drafter" if loads else "base model"), loads + 1
    if step["ready"]:
        return Progress(READY), loads
    if step["up"]:
        return Progress(WARMING_UP), loads
    if step["graphs"] is not None:
        return Progress(CAPTURING, step["graphs"]), loads
    if step["pool"]:
        return Progress(KV_CACHE), loads
    if step["arguments"] or (step["joining"] and not loads):
        return Progress(STARTING), loads
    return now, loads


def _seconds(clock: str) -> int | None:
    """``1:02:03`` or ``02:03`` in seconds; None for a time that is not known."""
    if "?" in clock:
        return None
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds
