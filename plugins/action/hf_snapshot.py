# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs hf_snapshot and, while a transfer goes on, shows how it goes.

The transfer is a process of its own on the host. A lost connection is waited for; when this process ends, the next run
joins the transfer.
"""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import job
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Progress

display = Display()

SHOWN_EVERY = 10.0
# A short transfer is not waited for long, a long one not asked for often. Seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
# How long a host may be out of reach.
PATIENCE = 600.0


@dataclass(frozen=True)
class Look:
    """What the status file tells, and whether its process is there."""

    told: dict[str, Any]
    alive: bool


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's own documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if not self._task.check_mode:
            arguments["background"] = True
        name = "gpuserve.sglang.hf_snapshot"
        begun = self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)
        running = begun.pop("job", None)
        result.update(begun)
        if running is not None:
            where = f"{(task_vars or {}).get('inventory_hostname', 'host')}: {arguments.get('name', 'hf_snapshot')}"
            result.update(self._watch(where, running, quiet=is_quiet(begun)))
        return result

    def _watch(self, where: str, running: dict[str, Any], quiet: bool) -> dict[str, Any]:
        """Wait for a transfer, and show how it goes; its result."""
        if running["joined"]:
            display.display(f"{where}: joins the transfer that an earlier run began")
        pause, shown, reached = FIRST_PAUSE, 0.0, time.monotonic()
        pid, gone = 0, False
        while True:
            try:
                look = self._look(running["status"], pid)
            except AnsibleConnectionFailure as error:
                if time.monotonic() - reached > PATIENCE:
                    raise
                display.warning(f"{where}: out of reach, the transfer goes on there: {error}")
                time.sleep(LONGEST_PAUSE)
                continue
            reached = time.monotonic()
            if look is not None and "result" in look.told:
                ended: dict[str, Any] = look.told["result"]
                return ended
            # Its last word may have come since.
            gone, was_gone = look is None or (pid != 0 and not look.alive), gone
            if gone and was_gone:
                return {
                    "failed": True,
                    "msg": f"{where}: the transfer's process ended without a word (killed, out of memory, or the host "
                    "was restarted); run again: it goes on where it ended",
                }
            if look is not None:
                pid = int(look.told["pid"])
                if not quiet and reached - shown >= SHOWN_EVERY:
                    shown = reached
                    display.display(f"{where}: {job.sentence(Progress(**look.told['progress']))}")
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)

    def _look(self, status: str, pid: int) -> Look | None:
        """One look; None when there is no status that can be read."""
        command = (
            f"cat {shlex.quote(status)} && echo && if kill -0 {pid} 2>/dev/null; then echo alive; else echo gone; fi"
        )
        said = self._low_level_execute_command(command)["stdout"].rstrip().rpartition("\n")
        try:
            return Look(json.loads(said[0]), said[2].strip() == "alive")
        except ValueError:
            return None


def is_quiet(begun: dict[str, Any]) -> bool:
    """Whether nothing shall be shown, as the module has understood it."""
    arguments = begun.get("invocation", {}).get("module_args", {})
    return bool(arguments.get("quiet", False))
