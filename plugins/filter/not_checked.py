# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import from_dicts, not_checked


def _not_checked(checks: object) -> list[str]:
    try:
        return not_checked(from_dicts(checks))
    except ValueError as error:
        raise AnsibleFilterError(f"gpuserve.sglang.not_checked: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"not_checked": _not_checked}
