# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import getpass
import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gpuserve.sglang.plugins.module_utils.run_lock import Holder


def _boot() -> str:
    # A controller without /proc has the time for it: a process that is gone is then seen by its number alone.
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _this_run() -> Holder:
    """The ansible-playbook process, of which this one is a worker."""
    return Holder(
        f"{getpass.getuser()}@{socket.gethostname()}", f"{uuid.getnode():x}", _boot(), os.getppid(), time.time()
    )


def _gone(other: Holder, mine: Holder) -> bool:
    """Whether another run is known to have ended."""
    if other.machine != mine.machine:
        return False
    if other.boot != mine.boot:
        return True
    try:
        os.kill(other.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    with suppress(OSError):
        told = Path(f"/proc/{other.pid}/stat").read_text(encoding="utf-8", errors="replace")
        # It has ended, and its parent has not asked for it yet. The name before the state may hold anything.
        return told.rpartition(")")[2].split()[0] == "Z"
    return False


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's own documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        mine = _this_run()
        arguments = {**self._task.args, "holder": mine.as_dict()}
        told = self._ask(arguments, task_vars)
        other = Holder.read(told.get("held_by"))
        if told.get("failed") and other is not None and _gone(other, mine):
            told = self._ask({**arguments, "instead_of": other.run}, task_vars)
        result.update(told)
        return result

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return dict(
            self._execute_module(module_name="gpuserve.sglang.run_lock", module_args=arguments, task_vars=task_vars)
        )
