# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of sglang_release_info."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..checks import as_dicts
from ..question import Question
from . import deploy, nodes, store


def _answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    kept = store.Store(store.ROOT / arguments["instance"])
    runs = deploy.running(arguments["instance"])[0]
    told: dict[str, Any] = {
        "changed": False,
        "releases": [_shown(record, kept, runs) for record in kept.records()],
        "current": kept.current,
        "running": runs,
    }
    if arguments["args"] is not None:
        models = [Path(model) for model in arguments["models"]]
        venv = Path(arguments["venv"])
        asked = deploy.record(arguments["args"], arguments["environment"], arguments["keys"], venv, models)
        proof = kept.proof(asked.release)
        judged = nodes.check(nodes.look(deploy.Places().nodes))
        told |= {
            "checks": as_dicts([judged] if judged is not None else []),
            "release": asked.release,
            "parts": dict(asked.parts),
            "known_good": proof is not None and proof.passed and None not in asked.parts.values(),
        }
    if arguments["unit"] is not None:
        told["as_current"] = _as_current(arguments)
    return told


def _as_current(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    wanted = deploy.Wanted.of(arguments)
    # Who takes it is told what is wrong.
    with suppress(deploy.ReleaseError, OSError):
        outcome = deploy.hold(deploy.Places(), arguments["instance"], wanted, retry=False, only_look=True)
        return {**outcome.told(), "unit": deploy.unit_name(arguments["instance"])}
    return None


def _shown(record: store.Record, kept: store.Store, runs: str | None) -> dict[str, Any]:
    proof = kept.proof(record.release)
    return {
        "release": record.release,
        "written": record.written,
        "args": list(record.args),
        "asked": asdict(deploy.Asked.of(record.args)),
        "identity": deploy.identity(record),
        "venv": record.venv,
        "models": list(record.models),
        "current": record.release == kept.current,
        "running": record.release == runs,
        "proven": None if proof is None else proof.passed,
        "proven_at": None if proof is None else proof.at,
        "told": "" if proof is None else proof.told,
        "measured": {} if proof is None else dict(proof.measured),
    }


# An instance, and what a release of it is made of (deploy.Wanted).
RELEASE: dict[str, dict[str, Any]] = {
    "instance": {"type": "str", "required": True},
    "args": {"type": "list", "elements": "str"},
    "environment": {"type": "str", "default": "", "no_log": True},
    "keys": {"type": "str", "default": "", "no_log": True},
    "venv": {"type": "path"},
    "models": {"type": "list", "elements": "path", "default": []},
    "unit": {"type": "str"},
}

QUESTION = Question(
    arguments=RELEASE,
    answer=_answer,
    rules={"required_together": [("args", "venv")], "required_by": {"unit": ["args"]}},
)
