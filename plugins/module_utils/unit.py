# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, its journal, and its processes."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 20
_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "NRestarts",
    "InvocationID",
    "ExecMainStartTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "ControlGroup",
    "MainPID",
    "NeedDaemonReload",
    "UnitFileState",
)
_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
# systemd says a handful of lines for each run.
_SPOKEN_LINES = 500
# State LISTEN of a socket (include/net/tcp_states.h of the kernel).
_LISTENING = "0A"


@dataclass(frozen=True)
class UnitState:
    """``active`` is ActiveState; ``restarts`` counts how often systemd started it again by itself.

    ``run`` names its last run in the journal, ``began`` and ``exited`` are when its main process did, in seconds of the
    monotonic clock (None where systemd does not tell), ``control_group`` is empty and ``main_pid`` 0 when nothing runs.
    ``stale``: systemd has not read the unit's file since it was changed. ``enabled``: it is started at each boot.
    """

    active: str
    sub: str
    result: str
    restarts: int
    run: str = ""
    began: float | None = None
    exited: float | None = None
    control_group: str = ""
    main_pid: int = 0
    stale: bool = False
    enabled: bool = False

    @property
    def ended(self) -> bool:
        """Its process ended: for good, or until systemd starts it again."""
        return self.active in ("failed", "inactive") or self.sub == "auto-restart"

    @property
    def lasted(self) -> float | None:
        """How long its main process has run, or ran, in seconds."""
        if self.began is None:
            return None
        ended = self.exited is not None and self.exited >= self.began
        return max(0.0, (self.exited if ended and self.exited else time.monotonic()) - self.began)


class UnitError(Exception):
    """systemd could not be asked, or has no such unit."""


def _ask(command: Sequence[str]) -> bytes:
    try:
        return subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnitError(f"{' '.join(command)}: {error}") from error


def state(unit: str) -> UnitState:
    """How the unit stands.

    Raises:
        UnitError: there is no systemd that answers, or it has no such unit.
    """
    told = _ask(["systemctl", "show", unit, f"--property={','.join(_PROPERTIES)}"]).decode("utf-8", "replace")
    values = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    if "ActiveState" not in values:
        raise UnitError(f"systemd tells nothing of the unit {unit}; see what systemctl status {unit} says")
    if values.get("LoadState") == "not-found" and values["ActiveState"] in ("inactive", "failed"):
        # Else it would read as a unit that ended without an error. One that runs without its file is told as it is.
        raise UnitError(f"there is no unit {unit}; install it first (role sglang_server)")
    restarts = values.get("NRestarts", "")
    return UnitState(
        active=values["ActiveState"],
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        restarts=int(restarts) if restarts.isdigit() else 0,
        run=values.get("InvocationID", ""),
        began=_seconds(values.get("ExecMainStartTimestampMonotonic", "")),
        exited=_seconds(values.get("ExecMainExitTimestampMonotonic", "")),
        control_group=values.get("ControlGroup", ""),
        main_pid=int(values.get("MainPID") or 0),
        stale=values.get("NeedDaemonReload") == "yes",
        enabled=values.get("UnitFileState") == "enabled",
    )


def _seconds(microseconds: str) -> float | None:
    return int(microseconds) / 1e6 if microseconds.isdigit() and int(microseconds) else None


def journal(unit: str, run: str, lines: int) -> bytes:
    """The last lines that one run of the unit wrote, with what systemd said of it; of any run when ``run`` is empty.

    Raises:
        UnitError: there is no journal that could be asked.
    """
    # As much as the journal takes in one line is more than journalctl shows without --all.
    command = ["journalctl", f"--lines={lines}", "--output=cat", "--all", "--no-pager", "--quiet"]
    if run:
        return _ask([*command, f"_SYSTEMD_INVOCATION_ID={run}", "+", f"INVOCATION_ID={run}"])
    return _ask([*command, f"--unit={unit}"])


def flush_journal() -> None:
    """Wait until the journal has taken in what was written so far: the last words of a process come last."""
    # Whoever may not ask for that reads what is there.
    with suppress(UnitError):
        _ask(["journalctl", "--sync"])


def runs(unit: str) -> list[str]:
    """The runs of a unit that systemd spoke of lately, the oldest first.

    Raises:
        UnitError: there is no journal that could be asked.
    """
    shown = ["--output=json", "--output-fields=INVOCATION_ID", "--quiet"]
    said = _ask(["journalctl", f"--lines={_SPOKEN_LINES}", *shown, "_PID=1", f"UNIT={unit}"])
    found: dict[str, None] = {}
    for line in said.splitlines():
        with suppress(ValueError):
            run = json.loads(line).get("INVOCATION_ID")
            if isinstance(run, str):
                found[run] = None
    return list(found)


def processes(control_group: str) -> list[int]:
    """The processes in a control group; none when it cannot be read."""
    try:
        told = (_CGROUPS / control_group.lstrip("/") / "cgroup.procs").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in told.split()]


def command(pid: int) -> str:
    """The name of a process, empty when it is gone."""
    try:
        return (_PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def groups(pid: int) -> set[int]:
    """The ids of the groups that a process has; none when it is gone."""
    try:
        told = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    fields = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
    return {int(gid) for name in ("Gid", "Groups") for gid in fields.get(name, "").split()}


def environment(pid: int) -> dict[str, str]:
    """What a process was started with; empty when it is gone or somebody else's."""
    try:
        told = (_PROC / str(pid) / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in told.split("\0") if "=" in entry)


def reload_units() -> None:
    """Let systemd read the units' files again.

    Raises:
        UnitError: there is no systemd that answers.
    """
    _ask(["systemctl", "daemon-reload"])


def forget_failures(unit: str) -> None:
    """Let systemd count a unit's starts anew: those of deploys and rollbacks are no sign of a broken configuration.

    Raises:
        UnitError: there is no systemd that answers.
    """
    _ask(["systemctl", "reset-failed", unit])


def stop(unit: str) -> None:
    """End a unit that waits for its next start.

    Raises:
        UnitError: there is no systemd that answers.
    """
    _ask(["systemctl", "stop", unit])


def interrupt(unit: str) -> None:
    """Send SIGINT to the main process of a unit.

    Raises:
        UnitError: there is no systemd that answers.
    """
    # --kill-who became --kill-whom in systemd 252, which takes both.
    _ask(["systemctl", "kill", "--kill-who=main", "--signal=SIGINT", unit])


def listeners(port: int) -> list[int]:
    """The processes that listen on a TCP port, as far as they can be seen."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    found = []
    for folder in _PROC.iterdir():
        if sockets and re.fullmatch(r"\d+", folder.name) and sockets & set(_open_files(folder)):
            found.append(int(folder.name))
    return found


def _open_files(process: Path) -> list[str]:
    files = []
    try:
        for file in (process / "fd").iterdir():
            # A file may be closed at any time.
            try:
                files.append(str(file.readlink()))
            except OSError:
                continue
    except OSError:
        return files
    return files
