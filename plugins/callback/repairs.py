# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: repairs
type: aggregate
short_description: End a run with the list of what it changed
version_added: 0.1.0
description:
  - After the recap it lists by host the tasks that changed something, or would in check mode, so that a run after a
    reboot ends with what it repaired.
author:
  - gpuserve contributors (@gpuserve)
requirements:
  - Name it in C(callbacks_enabled) of ansible.cfg.
"""

from typing import Any

from ansible import constants, context
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gpuserve.sglang.repairs"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[str, list[str]] = {}

    def v2_runner_on_ok(self, result: Any) -> None:
        if result.is_changed():
            name = result.task_name.rpartition(" : ")[2]
            # ansible-core 2.17 and 2.18 have no other name for it.
            host = getattr(result, "host", None) or result._host
            told = self._changed.setdefault(host.get_name(), [])
            if name not in told:
                told.append(name)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        # Who reads JSON is told by it.
        if not stats.processed or "json" in constants.DEFAULT_STDOUT_CALLBACK:
            return
        verb = "would change" if context.CLIARGS.get("check") else "changed"
        self._display.banner("REPAIRS")
        for host in sorted(stats.processed):
            told = self._changed.get(host, [])
            self._display.display(f"{host}: {verb} {len(told) or 'nothing'}{':' if told else ''}")
            for name in told:
                self._display.display(f"  - {name}")
