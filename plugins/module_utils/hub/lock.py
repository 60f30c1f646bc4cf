# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time in a folder, and who that is."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

NAME = "lock"


@dataclass(frozen=True)
class Owner:
    """Who works in a folder: process, host, since when (seconds since 1970), and what it brings."""

    pid: int
    host: str
    since: float
    what: str

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        return f"process {self.pid} on {self.host}, which brings {self.what} since {since}"


class Busy(Exception):
    """Another run holds the lock; ``owner`` is None when it has not said who it is."""

    def __init__(self, owner: Owner | None) -> None:
        super().__init__(str(owner))
        self.owner = owner


class Lock:
    """A lock on a folder of ours. The system lets it go with the last process that has it open, however that ends.

    flock(2) holds on NFS too, between hosts: since Linux 2.6.12 it is a lock on the whole file there.
    """

    def __init__(self, folder: Path, what: str) -> None:
        """Take it. Raises Busy, or OSError when the file system gives no locks."""
        path = folder / NAME
        while True:
            self._file: IO[str] = path.open("a+", encoding="utf-8")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = read(folder)
                self._file.close()
                raise Busy(owner) from error
            # The one who had it may have removed the folder with it.
            try:
                if os.path.samestat(os.fstat(self._file.fileno()), path.stat()):
                    break
            except FileNotFoundError:
                folder.mkdir(parents=True, exist_ok=True)
            self._file.close()
        self._what = what
        self.claim()

    def claim(self) -> None:
        """Write down that this process has it."""
        owner = Owner(os.getpid(), socket.gethostname(), time.time(), self._what)
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(asdict(owner)))
        self._file.flush()

    def fileno(self) -> int:
        """The open file that holds it."""
        return self._file.fileno()

    def release(self) -> None:
        """Let it go."""
        self._file.close()


def read(folder: Path) -> Owner | None:
    """Who has, or last had, the lock."""
    try:
        return Owner(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
