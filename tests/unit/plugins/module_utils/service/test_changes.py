# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import changes
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.store import Record

MODEL = "/srv/models/base"
RUNNING = Record(
    "r1",
    {"args": "a", "environment": "e", "keys": "k", "engine": "v", MODEL: "m"},
    ["--model-path", MODEL, "--port", "1", "--log-level", "info", "--trust-remote-code"],
    {"NCCL_P2P_LEVEL": "x"},
    "/opt/engine",
    [MODEL],
    0.0,
)


def parts(**other: str) -> dict[str, str | None]:
    return {**RUNNING.parts, **other}


def test_the_same_needs_nothing() -> None:
    assert changes.between(RUNNING, replace(RUNNING, release="r2", written=1.0)) == []


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (replace(RUNNING, args=[*RUNNING.args[:3], "2", *RUNNING.args[4:]]), "--port: 1 -> 2"),
        (replace(RUNNING, args=RUNNING.args[:-1]), "--trust-remote-code: given -> not given"),
        (replace(RUNNING, args=[*RUNNING.args, "--api-key", "hidden"]), "--api-key: not given -> (secret)"),
        (replace(RUNNING, environment={"NCCL_P2P_LEVEL": "y"}), "environment NCCL_P2P_LEVEL: another value"),
        (replace(RUNNING, environment={}), "environment NCCL_P2P_LEVEL: gone"),
        (replace(RUNNING, environment={**RUNNING.environment, "A": "z"}), "environment A: new"),
        (replace(RUNNING, venv="/opt/other"), "the engine in /opt/engine -> /opt/other"),
        (replace(RUNNING, parts=parts(engine="w")), "the engine in /opt/engine"),
        (replace(RUNNING, parts=parts(keys="l")), "the API keys"),
        (replace(RUNNING, parts=parts(**{MODEL: "n"})), f"the model in {MODEL}"),
    ],
)
def test_what_takes_a_restart(wanted: Record, told: str) -> None:
    assert changes.between(RUNNING, wanted) == [changes.Change(told, restarts=True)]


def test_what_only_the_log_shows_can_wait() -> None:
    wanted = replace(RUNNING, args=[*RUNNING.args, "--log-level", "warning"])
    assert changes.between(RUNNING, wanted) == [changes.Change("--log-level: info -> warning", restarts=False)]
