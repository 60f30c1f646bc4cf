# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of cuda_toolkit_info."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..checks import as_dicts, failing, failure_message, summary
from ..gpu import host
from ..python import state, venv
from ..question import Question, Refused
from . import settled, toolkit


def _held(arguments: Mapping[str, Any], version: str) -> settled.Held:
    held = arguments["held"]
    house = Path(held["wheelhouse"]) if held["wheelhouse"] else None
    wheels = venv.Request(
        Path(held["venv"]), held["python"], requirements=tuple(held["requirements"]), wheelhouse=house
    )
    return settled.Held(
        Path(held["home"]),
        Path(held["tools"]),
        tuple(arguments["architectures"]),
        arguments["compiler"],
        wheels if arguments["source"] == "wheels" and held["version"] == version else None,
    )


def _answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("version", "fallback_version"):
        if arguments[name] and not re.fullmatch(r"\d+(\.\d+)*", arguments[name]):
            raise Refused(
                f"cuda_toolkit: expected a version of CUDA like 13.0 as cuda_toolkit_{name}; found {arguments[name]}; "
                f"fix: give one that NVIDIA released",
                {"checks": []},
            )
    engine = Path(arguments["engine_venv"]) if arguments["engine_venv"] else None
    driver = host.running(Path(arguments["running_file"])).version
    torch, maximum = toolkit.torch_cuda(engine), toolkit.driver_maximum(driver)
    version, reason = toolkit.choose(arguments["version"], torch, maximum, arguments["fallback_version"])
    checks = toolkit.judge(version, torch, maximum, driver, arguments["architectures"])
    installed = toolkit.inspect(Path(arguments["installed_prefix"] + version))
    places = {"engine": toolkit.in_venv(engine), "installed": installed}
    found = {name: one for name, one in places.items() if one is not None and one.version == version}
    origin = next(iter(found), "none")
    if origin == "none" and arguments["source"] == "wheels":
        checks.append(toolkit.judge_wheels(version))
    compiler = shutil.which(arguments["compiler"]) is not None
    done = False
    if arguments["held"] and compiler:
        held = _held(arguments, version)
        # What cannot be seen is not settled: who brings it says what is wrong.
        with suppress(state.VenvError, OSError):
            done = settled.is_settled(held, version, found.get(origin), engine if origin == "engine" else None)
    result = {
        "version": version,
        "reason": reason,
        "origin": origin,
        "root": str(found[origin].root) if found else "",
        "compiler_found": compiler,
        "settled": done,
        "checks": as_dicts(checks),
    }
    subject = f"cuda_toolkit: {version} ({reason})"
    if failing(checks):
        raise Refused(failure_message(subject, checks), result)
    return {"msg": summary(subject, checks), **result}


QUESTION = Question(
    arguments={
        "version": {"default": ""},
        "fallback_version": {"required": True},
        "engine_venv": {"type": "path"},
        "installed_prefix": {"type": "path", "default": "/usr/local/cuda-"},
        "source": {"choices": ["wheels", "packages"], "default": "wheels"},
        "architectures": {"type": "list", "elements": "str", "required": True},
        "compiler": {"default": "g++"},
        "running_file": {"type": "path", "default": "/proc/driver/nvidia/version"},
        "held": {
            "type": "dict",
            "options": {
                "home": {"type": "path", "required": True},
                "tools": {"type": "path", "required": True},
                "venv": {"type": "path", "required": True},
                "version": {"required": True},
                "python": {"required": True},
                "requirements": {"type": "list", "elements": "str", "required": True},
                "wheelhouse": {"type": "path"},
            },
        },
    },
    answer=_answer,
)
