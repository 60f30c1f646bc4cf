# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.command_line import argv


def _argv(flags: object) -> list[str]:
    if not isinstance(flags, Mapping):
        raise AnsibleFilterError(f"gpuserve.sglang.argv takes a dictionary of flags, not {type(flags).__name__}")
    try:
        return argv(flags)
    except ValueError as error:
        raise AnsibleFilterError(f"gpuserve.sglang.argv: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"argv": _argv}
