# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the release that runs and the one that is asked for, and what of it needs a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..engine.command_line import CommandLine
from ..engine.flags import SECRET
from .store import Record

# They decide what the server writes to its log and nothing else (sglang/srt/server_args.py, group "Logging", 0.4.6 to
# 0.5.23): no reason to load a model again, the next start takes them.
_LOG_ONLY = frozenset(
    {
        *("--log-level", "--log-level-http", "--log-requests", "--log-requests-level", "--log-requests-format"),
        *("--log-requests-target", "--show-time-cost", "--decode-log-interval", "--prefill-log-interval"),
        *("--uvicorn-access-log-exclude-prefixes", "--crash-dump-folder", "--enable-request-time-stats-logging"),
    }
)


@dataclass(frozen=True)
class Change:
    """``restarts``: it takes effect only by a start of the engine, and the operator wants its effect."""

    told: str
    restarts: bool


def between(running: Record, wanted: Record) -> list[Change]:
    """The changes, in words that hold no secret."""
    return [
        *_arguments(running.args, wanted.args),
        *_environment(running.environment, wanted.environment),
        *_installed(running, wanted),
    ]


def _arguments(running: Sequence[str], wanted: Sequence[str]) -> list[Change]:
    before, after = CommandLine.read(running, {}).values, CommandLine.read(wanted, {}).values
    return [
        Change(f"{flag}: {_value(flag, before)} -> {_value(flag, after)}", flag not in _LOG_ONLY)
        for flag in sorted({*before, *after})
        if before.get(flag) != after.get(flag)
    ]


def _value(flag: str, values: Mapping[str, tuple[str, ...]]) -> str:
    if flag not in values:
        return "not given"
    if flag in SECRET:
        return "(secret)"
    return " ".join(values[flag]) or "given"


def _environment(running: Mapping[str, str], wanted: Mapping[str, str]) -> list[Change]:
    changes = []
    for name in sorted({*running, *wanted}):
        if running.get(name) != wanted.get(name):
            what = "new" if name not in running else "gone" if name not in wanted else "another value"
            changes.append(Change(f"environment {name}: {what}", True))
    return changes


def _installed(running: Record, wanted: Record) -> list[Change]:
    changes = []
    if running.parts.get("keys") != wanted.parts.get("keys"):
        changes.append(Change("the API keys", True))
    if (running.venv, running.parts.get("engine")) != (wanted.venv, wanted.parts.get("engine")):
        where = wanted.venv if running.venv == wanted.venv else f"{running.venv} -> {wanted.venv}"
        changes.append(Change(f"the engine in {where}", True))
    for model in wanted.models:
        # A model in another folder shows as a change of its flag.
        if model in running.models and running.parts.get(model) != wanted.parts.get(model):
            changes.append(Change(f"the model in {model}", True))
    return changes
