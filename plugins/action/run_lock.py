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
from typing import Any, TypeGuard

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gpuserve.sglang.plugins.module_utils.run_lock import Holder, Lock, holder, text


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


def _others(held: Holder | None, mine: Holder) -> TypeGuard[Holder]:
    """Whether another run holds it."""
    return held is not None and held.run != mine.run


def _refused(result: dict[str, Any], other: Holder) -> dict[str, Any]:
    return {**result, "failed": True, "msg": other.sentence(), "held_by": other.as_dict()}


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's own documentation."""

    _supports_check_mode = True
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self.validate_argument_spec(
            {
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "file": {"type": "path", "default": "/run/gpuserve-sglang.lock"},
                "break_it": {"type": "bool", "default": False},
            }
        )[1]
        lock, mine = Lock(given["file"]), _this_run()
        result["changed"] = False
        if given["state"] == "absent":
            if not self._task.check_mode:
                self._ask(lock, lock.give_back(mine))
            return {**result, "held_by": None}
        written = self._ask(lock, lock.look() if self._task.check_mode else lock.take(mine))
        held = holder(written)
        if _others(held, mine) and not _gone(held, mine) and not given["break_it"]:
            return _refused(result, held)
        if self._task.check_mode:
            return {**result, "held_by": mine.as_dict()}
        if held is None or _others(held, mine):
            held = holder(self._ask(lock, lock.take_over(mine, None if given["break_it"] else written)))
        if _others(held, mine):
            return _refused(result, held)
        if held is None:
            raise AnsibleActionFail(f"{lock.file}: expected the name of this run in it; found none; run again")
        return {**result, "held_by": mine.as_dict()}

    def _ask(self, lock: Lock, line: str) -> str:
        """The lock's text. Raises AnsibleActionFail."""
        # As data: a connection gives a command of no data a terminal, which mixes errors into what is said.
        done = self._low_level_execute_command("sh -s", in_data=line.encode())
        written = text(done["stdout"])
        if done["rc"] or written is None:
            said = done["stderr"].strip() or done["stdout"].strip() or "the shell said nothing"
            raise AnsibleActionFail(f"{lock.file}: {said}; run as root")
        return written
