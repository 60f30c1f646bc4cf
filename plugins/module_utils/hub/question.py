# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of hf_snapshot_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..question import Question, Refused
from . import look

# What only a transfer needs.
_UNUSED = {"verify": "size", "python": None, "xet": False, "max_workers": 1, "stall_timeout": 60}


def _answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = []
    wrong = []
    for number, model in enumerate(arguments["models"]):
        name = f"{arguments['name']}[{number}]"
        try:
            request = look.request_of({**_UNUSED, **arguments, **model})
            absent = model["state"] == "absent"
            told = look.judged_absence(request) if absent else look.judged(request, name)
            found.append({**told, "model": model["dest"]})
        except look.ERRORS as error:
            wrong.append(f"{name}: {error}")
    if wrong:
        raise Refused("\n".join(wrong), {"models": found})
    return {"changed": False, "models": found}


# What hf_snapshot, too, takes of a model, and of the Hub and the disk.
MODEL = {
    "dest": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "repo_id": {"type": "str"},
    "revision": {"type": "str"},
    "allow_moving": {"type": "bool", "default": False},
    "source": {"type": "path"},
    "allow_patterns": {"type": "list", "elements": "str", "default": []},
    "ignore_patterns": {"type": "list", "elements": "str", "default": []},
    "prune": {"type": "bool", "default": False},
}
MODEL_RULES = {"required_if": [("state", "present", ("repo_id", "source"), True)]}
HUB = {
    "endpoint": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "token_file": {"type": "path", "no_log": False},
    "timeout": {"type": "int", "default": 30},
    "reserve_bytes": {"type": "int", "default": 1 << 30},
}
HUB_RULES = {"mutually_exclusive": [("token", "token_file")]}

QUESTION = Question(
    arguments={
        "models": {"type": "list", "elements": "dict", "required": True, "options": MODEL, **MODEL_RULES},
        **HUB,
        "name": {"type": "str", "default": "models"},
    },
    answer=_answer,
    rules=HUB_RULES,
)
