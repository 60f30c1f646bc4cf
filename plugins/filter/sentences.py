# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, STATUSES, from_dicts


def _sentences(checks: object, status: str = FAIL, ignore: Sequence[str] = ()) -> list[str]:
    if status not in STATUSES:
        raise AnsibleFilterError(f"gpuserve.sglang.sentences: {status!r} is none of {', '.join(STATUSES)}")
    try:
        read = from_dicts(checks)
    except ValueError as error:
        raise AnsibleFilterError(f"gpuserve.sglang.sentences: {error}") from error
    return [check.sentence() for check in read if check.status == status and check.id not in ignore]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"sentences": _sentences}
