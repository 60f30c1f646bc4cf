# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of gpu_health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import as_dicts, failing, failure_message, summary
from ..question import Question, Refused
from .expected import TYPES
from .health import Request, examine

_SUBJECT = "GPU health"


def _answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    health = examine(
        Request(
            expected_count=arguments["expected_count"],
            devices=tuple(arguments["devices"] or ()),
            driver=arguments["driver"],
            level=arguments["level"],
            venv=arguments["venv"] or "",
            idle=arguments["idle"],
            environment={name: str(value) for name, value in arguments["environment_variables"].items()},
            thresholds={name: value for name, value in arguments["thresholds"].items() if value is not None},
            xid_window=arguments["xid_window"],
            timeout=arguments["timeout"],
        )
    )
    ignored = [check for check in failing(health.checks) if check.id in arguments["ignore"]]
    stopping = [check for check in health.checks if check not in ignored]
    unknown = sorted(set(arguments["ignore"]) - {check.id for check in health.checks})
    result = {
        "changed": False,
        "checks": as_dicts(health.checks),
        "summary": summary(_SUBJECT, health.checks),
        "ignored": [check.id for check in ignored],
        "gpus": list(health.gpus),
        "warnings": [f"ignore: {name} is no check of this run" for name in unknown],
    }
    fail_on = arguments["fail_on"]
    if failing(stopping, fail_on):
        raise Refused(failure_message(_SUBJECT, stopping, fail_on), result)
    return result


QUESTION = Question(
    arguments={
        "expected_count": {"type": "int"},
        "devices": {"type": "list", "elements": "path"},
        "driver": {"type": "str", "choices": ["required", "absent"], "default": "required"},
        "level": {"type": "str", "choices": ["quick", "deep"], "default": "quick"},
        "venv": {"type": "path"},
        "idle": {"type": "bool", "default": False},
        "environment_variables": {"type": "dict", "default": {}},
        "thresholds": {
            "type": "dict",
            "default": {},
            "options": {name: {"type": kind} for name, kind in TYPES.items()},
        },
        "xid_window": {"type": "int", "default": 0},
        "ignore": {"type": "list", "elements": "str", "default": []},
        "timeout": {"type": "int", "default": 60},
        "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
    },
    answer=_answer,
)
