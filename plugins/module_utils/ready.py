# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for a start of the engine: as long as needed, not longer, and with a word on how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from . import startup, unit
from .diagnosis import sources
from .diagnosis.matcher import Diagnosis, diagnose
from .engine.api import Server
from .startup import Progress, duration

# /health generates a token, which takes about a second on a small machine. A look must not take much longer than asked.
HEALTH_LIMIT_S = 4.0
_PAUSE_S = 0.5
# What a start writes is far less.
_START_LINES = 4000
# What asyncio says for uvicorn. The engine then closes its HTTP server, and its process stays (0.5.20).
_NO_PORT = "error while attempting to bind on address"
_COMPILERS = frozenset({"nvcc", "cicc", "ptxas", "cudafe++", "cc1plus", "ninja"})


@dataclass(frozen=True)
class Seen:
    """What earlier looks saw of the unit: its run, how often systemd had started it again, and how long they took."""

    run: str = ""
    restarts: int | None = None
    waited: float = 0.0


@dataclass(frozen=True)
class Look:
    """``since_start`` counts from the start of the unit's process, or from the first look where there is no unit."""

    ready: bool
    since_start: float
    progress: Progress | None
    compiling: bool
    seen: Seen

    def sentence(self) -> str:
        """For an operator who waits."""
        told = "waiting for an answer" if self.progress is None else self.progress.sentence()
        if self.compiling:
            told += ", a kernel is being compiled (once for this version and GPU)"
        return f"{told}; {self.since_start:.0f} s since its start"


class NotReady(Exception):
    """The server did not come up; the text tells why. ``diagnosis`` is None where there is no journal."""

    def __init__(self, text: str, diagnosis: Diagnosis | None = None) -> None:
        super().__init__(text)
        self.diagnosis = diagnosis


def look(
    server: Server,
    unit_name: str | None,
    seen: Seen,
    limit: float,
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Look:
    """Look until the server is ready, but not longer than ``limit`` seconds.

    Raises:
        NotReady: the unit ended or was started again by systemd, something else answers in its place, or all looks
            together took ``timeout`` seconds.
        UnitError: systemd could not be asked, or has no such unit.
    """
    begun = time.monotonic()
    while True:
        healthy = server.healthy(HEALTH_LIMIT_S)
        spent = time.monotonic() - begun
        now = replace(seen, waited=seen.waited + spent)
        state = None
        if unit_name is not None:
            state = unit.state(unit_name)
            if state.ended or state.restarts > (state.restarts if seen.restarts is None else seen.restarts):
                raise _ended(server, unit_name, state, seen, healthy)
            if healthy:
                _must_be_its_own(server, unit_name, state)
            seen = replace(seen, run=state.run, restarts=state.restarts)
            now = replace(now, run=state.run, restarts=state.restarts)
        since_start = now.waited if state is None or state.lasted is None else state.lasted
        if healthy:
            return Look(True, since_start, Progress(startup.READY), False, now)
        late = now.waited >= timeout
        if late or spent >= limit:
            stands = Look(False, since_start, *_stands(server, unit_name, state), now)
            if late:
                raise _too_late(server, unit_name, stands, timeout)
            return stands
        sleep(_PAUSE_S)


def _stands(server: Server, unit_name: str | None, state: unit.UnitState | None) -> tuple[Progress | None, bool]:
    """How far the start is, and whether a compiler runs. Raises NotReady when it cannot come to its end."""
    if unit_name is None or state is None:
        return None, False
    told = unit.journal(unit_name, state.run, _START_LINES).decode("utf-8", "replace")
    if _NO_PORT in told:
        diagnosis = diagnose(sources.of_run(unit_name, state.run))
        raise NotReady(
            f"{unit_name} runs on without its port: {server.url} is taken by another process.\n{diagnosis.story()}",
            diagnosis,
        )
    commands = {unit.command(pid) for pid in unit.processes(state.control_group)}
    return startup.progress(told), bool(commands & _COMPILERS)


def _must_be_its_own(server: Server, unit_name: str, state: unit.UnitState) -> None:
    """An answer proves the unit ready only if one of its processes gave it."""
    port = urlsplit(server.url).port
    own = set(unit.processes(state.control_group))
    others = [] if port is None or not own else unit.listeners(port)
    # Where the processes of others cannot be seen there is nothing to say.
    if others and not own & set(others):
        named = ", ".join(f"{pid} ({unit.command(pid)})" for pid in others)
        raise NotReady(
            f"{server.url} answers, but that is the process {named} and none of {unit_name}, which will find its "
            f"port taken "
            f"once it has loaded: end that process, or give {unit_name} another port."
        )


def _ended(server: Server, unit_name: str, state: unit.UnitState, seen: Seen, healthy: bool) -> NotReady:
    # After a restart by systemd the journal of the new run does not tell why the old one ended.
    diagnosis = diagnose(sources.of_run(unit_name, seen.run or state.run))
    again = not state.ended
    lasted = "" if state.lasted is None or again else f" after {duration(state.lasted)}"
    says = "it is started again" if again or state.sub == "auto-restart" else f"{state.active}, {state.result}"
    # A unit that ends while its address answers was most likely refused that address.
    other = f" Something else answers at {server.url}: end it first." if healthy and not again else ""
    return NotReady(
        f"{unit_name} ended{lasted} instead of serving (systemd says: {says}).{other}\n{diagnosis.story()}", diagnosis
    )


def _too_late(server: Server, unit_name: str | None, stands: Look, timeout: float) -> NotReady:
    text = f"{server.url} did not answer within {duration(timeout)}"
    if unit_name is None:
        return NotReady(f"{text}; look at the log of its process.")
    diagnosis = diagnose(sources.of_run(unit_name, stands.seen.run))
    return NotReady(f"{text}: {stands.sentence()}.\n{diagnosis.story()}", diagnosis)
