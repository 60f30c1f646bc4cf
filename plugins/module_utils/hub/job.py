# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transfer that goes on when the connection that began it is gone, and tells in a file how it goes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Lock
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.space import amount
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Progress, Report

STATUS = "status.json"
_ROOM_BYTES = 4096


class Status:
    """The file that tells how a job goes. Its room is taken at the start: a full disk must not silence it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATUS

    def report(self, progress: Progress) -> None:
        """How far it is."""
        self._write({"progress": asdict(progress)})

    def end(self, result: dict[str, Any]) -> None:
        """What came of it."""
        written = self.path.with_suffix(".new")
        try:
            written.write_text(json.dumps({"pid": os.getpid(), "result": result}), encoding="utf-8")
            written.replace(self.path)
        except OSError:
            message = str(result.get("msg", "the transfer ended, and its result could not be written"))
            self._write({"result": {"failed": True, "msg": message[: _ROOM_BYTES // 2]}})

    def _write(self, told: dict[str, Any]) -> None:
        text = json.dumps({"pid": os.getpid(), **told}).encode().ljust(_ROOM_BYTES)
        # Not anew and renamed: that would need room. Who reads half of it reads again.
        with contextlib.suppress(OSError), self.path.open("r+b" if self.path.exists() else "wb") as opened:
            opened.write(text)
            opened.truncate()


def start(status: Status, work: Callable[[Report], dict[str, Any]], lock: Lock) -> None:
    """Let ``work`` go on in a process of its own, in no session and with no terminal.

    It is a copy of this process, so that it needs none of the files that Ansible removes when a module ends.
    """
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        os.waitpid(child, 0)
        # Until it has said who it is.
        os.read(reading, 1)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.close(reading)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.chdir("/")
    status.report(Progress("begin", 0, 0, 0, 0))
    lock.claim()
    os.write(writing, b".")
    os.close(writing)
    try:
        status.end(work(status.report))
    except BaseException as error:
        # Nobody is left to show a traceback to: the one who asks for the status sees this.
        status.end({"failed": True, "msg": f"the transfer ended with {type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def sentence(progress: Progress) -> str:
    """How it goes, in a line for a person."""
    if progress.phase == "begin" or not progress.total:
        return "begins"
    doing = {"check": "checked", "bring": "brought"}[progress.phase]
    share = 100 * progress.done / progress.total
    text = f"{doing} {amount(progress.done)} of {amount(progress.total)} ({share:.0f} %), "
    text += f"{progress.files_done} of {progress.files} files"
    if progress.rate:
        text += f", {amount(progress.rate)}/s"
    if progress.left is not None and progress.done < progress.total:
        text += f", {duration(progress.left)} left"
    return f"{text}; {progress.note}" if progress.note else text


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
