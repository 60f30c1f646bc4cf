# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs sglang_ready again and again, and shows how far the start is after each look."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()

# A host that is out of reach is tried again after so many seconds.
PAUSE = 5.0
# How long a host may be out of reach.
PATIENCE = 600.0


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's own documentation."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        named = arguments.get("unit") or arguments.get("url")
        where = f"{(task_vars or {}).get('inventory_hostname', 'host')}: {named}"
        begun = reached = time.monotonic()
        while True:
            # Looks at the host take time, and so does the way there.
            arguments["waited"] = time.monotonic() - begun
            try:
                looked = self._execute_module(
                    module_name="gpuserve.sglang.sglang_ready", module_args=arguments, task_vars=task_vars
                )
            except AnsibleConnectionFailure as error:
                if time.monotonic() - reached > PATIENCE:
                    raise
                display.warning(f"{where}: out of reach, the start goes on there: {error}")
                time.sleep(PAUSE)
                continue
            reached = time.monotonic()
            if looked.get("failed") or looked.get("ready", True):
                result.update(looked)
                return result
            told = looked.get("invocation", {}).get("module_args", {})
            if not (told.get("quiet") or self._task.no_log):
                display.display(f"{where}: {looked['status']}")
            arguments.update({name: looked["seen"][name] for name in ("run", "restarts")})
