# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.command_line import systemd_exec


def _systemd_exec(words: object) -> str:
    if isinstance(words, str) or not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise AnsibleFilterError("gpuserve.sglang.systemd_exec takes a list of words, each of them text")
    try:
        return systemd_exec(words)
    except ValueError as error:
        raise AnsibleFilterError(f"gpuserve.sglang.systemd_exec: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"systemd_exec": _systemd_exec}
