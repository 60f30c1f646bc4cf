# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends a server without cutting a request.

On SIGINT uvicorn, which serves for SGLang, closes its sockets, waits for the requests that run and exits with 0. A
second SIGINT would cut them (uvicorn/server.py, handle_exit). On SIGTERM the engine has a handler of its own that goes
on taking requests until it sees none (sglang/srt/managers/tokenizer_manager.py, sigterm_watchdog, 0.5.20), and cuts the
last of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .. import unit

_PAUSE_S = 0.5


def drain(name: str, limit: float, sleep: Callable[[float], None] = time.sleep) -> tuple[bool, float]:
    """Ask the unit's server to end, and wait.

    Returns:
        Whether it did within ``limit`` seconds, and how many it took.

    Raises:
        UnitError: systemd could not be asked, or has no such unit.
    """
    begun = time.monotonic()
    pid = unit.state(name).main_pid
    unit.interrupt(name)
    while unit.state(name).main_pid == pid:
        if time.monotonic() - begun > limit:
            return False, time.monotonic() - begun
        sleep(_PAUSE_S)
    return True, time.monotonic() - begun
