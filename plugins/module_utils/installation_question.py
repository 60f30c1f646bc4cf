# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sglang_venv does with its arguments, and the question what it would do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from . import checks, debian, installation
from .python import state, venv
from .question import Question, Refused


def _diff(result: installation.Result, path: str) -> dict[str, str]:
    after = result.outcome.after
    if after is None:
        return {"prepared": "".join(f"{path}: {problem}\n" for problem in result.outcome.problems)}
    texts = [
        "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
        for packages in (result.outcome.before, after)
    ]
    return {"before_header": path, "after_header": path, "before": texts[0], "after": texts[1]}


def converge(arguments: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Bring the venv to what is asked for, in check mode only tell what would be done. Raises Refused."""
    request = venv.Request(
        path=Path(arguments["path"]),
        python=arguments["python"],
        creator=arguments["creator"],
        requirements=tuple(arguments["requirements"]),
        requirements_no_deps=tuple(arguments["requirements_no_deps"]),
        constraints=tuple(arguments["constraints"]),
        lock=arguments["lock"],
        wheelhouse=Path(arguments["wheelhouse"]) if arguments["wheelhouse"] else None,
        index_url=arguments["index_url"],
        extra_index_urls=tuple(arguments["extra_index_urls"]),
        exclusive=arguments["exclusive"],
    )
    where = {"venv": str(request.path), "python": str(state.interpreter(request.path))}
    wanted = installation.Wanted(
        request, arguments["ignore"], arguments["keep"], arguments["system_packages"], arguments["names"]
    )
    try:
        result = installation.converge(wanted, check_mode)
    except installation.NotAcceptable as refused:
        judged = refused.checks
        told: dict[str, Any] = {"checks": checks.as_dicts(judged), "summary": checks.summary(str(request.path), judged)}
        lines = [told["summary"], *(check.sentence() for check in refused.stopping)]
        ignore = arguments["names"].get("ignore", "ignore")
        lines.append(f"To go on all the same, name the check in {ignore}.")
        raise Refused("\n".join(lines), {**where, **told}) from refused
    except (state.VenvError, debian.DebianError, OSError) as error:
        raise Refused(f"the venv {request.path} could not be brought to the wanted state: {error}", where) from error
    outcome = result.outcome
    return {
        "changed": result.changed,
        **where,
        "python_version": outcome.python_version,
        "packages": None if outcome.after is None else len(outcome.after),
        "problems": outcome.problems,
        "repairs": outcome.repairs,
        "system_packages_missing": list(result.system_packages_missing),
        "removed": [str(path) for path in result.removed],
        "kept": [{"path": str(sibling.path), "used_by": sibling.used_by} for sibling in result.kept],
        "checks": checks.as_dicts(result.checks),
        "summary": checks.summary(str(request.path), result.checks),
        "diff": _diff(result, str(request.path)),
    }


QUESTION = Question(
    arguments={
        "path": {"type": "path", "required": True},
        "python": {"type": "str", "default": "python3"},
        "creator": {"type": "str", "choices": ["auto", *venv.CREATORS], "default": "auto"},
        "requirements": {"type": "list", "elements": "str", "default": []},
        "requirements_no_deps": {"type": "list", "elements": "str", "default": []},
        "constraints": {"type": "list", "elements": "str", "default": []},
        "lock": {"type": "str"},
        "wheelhouse": {"type": "path"},
        "index_url": {"type": "str"},
        "extra_index_urls": {"type": "list", "elements": "str", "default": []},
        "exclusive": {"type": "bool", "default": False},
        "ignore": {"type": "list", "elements": "str", "default": []},
        "keep": {"type": "int"},
        "system_packages": {"type": "list", "elements": "str", "default": []},
        "names": {"type": "dict", "default": {}},
    },
    answer=partial(converge, check_mode=True),
    rules={"mutually_exclusive": [("wheelhouse", "index_url")]},
)
