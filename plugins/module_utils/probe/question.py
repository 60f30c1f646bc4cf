# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sglang_probe does with its arguments, and the question whether a server still does what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from .. import checks
from ..engine import api
from ..question import Question, Refused
from ..service import deploy, store
from . import records, run, speed


def prove(arguments: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Ask a server, and keep the run if ``write``. Raises Refused."""
    arguments = {**arguments, **_started(arguments["instance"])} if arguments["instance"] else arguments
    url = arguments["url"]
    try:
        # A number that was given on Ansible's command line is a string.
        numbers = {name: int(value) for name, value in arguments["numbers"].items()}
    except (TypeError, ValueError):
        raise Refused(f"numbers must map names to whole numbers, found {arguments['numbers']}", {}) from None
    if arguments["timeout"] < 1:
        raise Refused(f"timeout must be at least 1 second, found {arguments['timeout']}", {})
    asked = run.Asked(
        level=arguments["level"],
        algorithm=arguments["algorithm"],
        numbers=numbers,
        accept_length_floor=arguments["accept_length_floor"],
        prompt=arguments["prompt"],
        golden_prompts=arguments["golden_prompts"],
        golden_floor=arguments["golden_floor"],
        require_speedup=arguments["require_speedup"],
    )
    folder = arguments["records"]
    place = None if folder is None else run.Place(Path(folder), arguments["release"], arguments["identity"])
    server = api.Server(url, arguments["api_key"], arguments["timeout"])
    try:
        found = run.prove(server, asked, place, write)
    except api.ApiError as error:
        raise Refused(f"{error}; fix: {run.next_step(error)}", {}) from error
    except records.RecordError as error:
        raise Refused(str(error), {}) from error
    result = {
        "changed": False,
        "release": arguments["release"],
        "in_effect": found.in_effect,
        "completion": found.completion,
        "accept_length": _rounded(found.accept_length, 2),
        "decode_rate": _rounded(found.decode_rate, 1),
        "cached_ratio": _rounded(found.cached_ratio, 2),
        "baseline": _baseline(found),
        "checks": checks.as_dicts(found.checks),
        "summary": checks.summary(url, found.checks),
        "seconds": round(found.seconds, 2),
    }
    if checks.failing(found.checks, arguments["fail_on"]):
        raise Refused(checks.failure_message(url, found.checks, arguments["fail_on"]), result)
    return result


def _started(instance: str) -> dict[str, Any]:
    """The arguments that the release which runs gives. Raises Refused."""
    runs = deploy.running(instance)[0]
    kept = store.Store(store.ROOT / instance)
    release = kept.record(runs) if runs else None
    if release is None:
        where = f"{deploy.unit_name(instance)}: expected an engine that was started from a release"
        found = "nothing runs" if runs is None else "one that runs, from none that is kept"
        raise Refused(f"{where}; found {found}; fix: run the main playbook", {})
    asked = asdict(deploy.Asked.of(release.args))
    return {
        **{name: asked[name] for name in ("url", "algorithm", "numbers")},
        "api_key": deploy.api_key(kept.secrets(release.release)[1]),
        "release": release.release,
        "identity": deploy.identity(release),
    }


def _rounded(figure: float | None, digits: int) -> float | None:
    return None if figure is None else round(figure, digits)


def _baseline(found: run.Findings) -> dict[str, Any] | None:
    baseline = found.compared.baseline
    if baseline is None:
        return None
    return {
        "path": baseline.path,
        "release": baseline.release,
        "recorded": baseline.recorded,
        "decode_rate": _rounded(speed.decode_rate(baseline.answers.values()), 1),
        "speedup": _rounded(found.speedup, 2),
    }


QUESTION = Question(
    arguments={
        "instance": {"type": "str"},
        "url": {"type": "str"},
        "api_key": {"type": "str", "no_log": True},
        "timeout": {"type": "int", "default": 120},
        "level": {"type": "str", "choices": list(run.LEVELS), "default": run.FULL},
        "algorithm": {"type": "str"},
        "numbers": {"type": "dict", "default": {}},
        "accept_length_floor": {"type": "float", "default": 1.3},
        "require_speedup": {"type": "float"},
        "prompt": {"type": "str", "default": "Write one sentence about the sea."},
        "golden_prompts": {"type": "list", "elements": "str", "default": []},
        "golden_floor": {"type": "float", "default": 0.5},
        "records": {"type": "path"},
        "release": {"type": "str"},
        "identity": {"type": "dict", "default": {}},
        "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
    },
    answer=partial(prove, write=False),
    rules={
        "required_one_of": [("instance", "url")],
        "mutually_exclusive": [
            ("instance", "url"),
            ("instance", "algorithm"),
            ("instance", "release"),
            ("instance", "api_key"),
        ],
    },
)
