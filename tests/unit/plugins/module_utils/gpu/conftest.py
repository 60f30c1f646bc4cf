# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import health

from tests.doubles import gpus

Examine = Callable[..., dict[str, Check]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What a host with a loaded driver shows in its files; no GPU is on its bus yet."""
    files = {
        "proc/driver/nvidia/version": (
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {gpus.DRIVER}  Release Build  (nixbld@)  \n"
        ),
        "proc/meminfo": "MemTotal: 1056000000 kB\nMemAvailable: 1000000000 kB\n",
        "dev/kmsg": "6,0,100,-;booted\n",
    }
    folder = tmp_path / "root"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "dev/shm").mkdir()
    return folder


@pytest.fixture
def examine(play: Callable[[list[str]], None], root: Path) -> Examine:
    """A function that plays a scenario and returns the checks by id."""

    def run(lines: list[str], **request: object) -> dict[str, Check]:
        play(lines)
        asked = {"devices": ("/dev/null",), "timeout": 20.0, "root": root, **request}
        return {check.id: check for check in health.examine(health.Request(**asked)).checks}

    return run
