# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.flags import setting


def _setting(name: object) -> str:
    if not isinstance(name, str):
        raise AnsibleFilterError(f"gpuserve.sglang.setting takes a flag's name, not {type(name).__name__}")
    return setting(name)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"setting": _setting}
