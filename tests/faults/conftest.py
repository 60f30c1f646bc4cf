# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab of the fault matrix: one for each of pytest's workers, where there are several."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from lab.instance import Lab
from tests.faults.matrix import host, kills
from tests.fixtures import plays

# gw0, gw1, ...
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
os.environ["GPUSERVE_LAB"] = Lab.default() + WORKER.removeprefix("gw")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"Runs were killed at the points of GPUSERVE_FAULT_SEED={kills.SEED}.")


@pytest.fixture(scope="session")
def models() -> Iterator[dict[str, str]]:
    """What the models are to be in a lab that is there, by hash. One that was up is left up: for work on the matrix."""
    was_up = Lab(Lab.default()).record_file.exists()
    try:
        make("sandbox-up")
        if not was_up:
            kills.keep_bare()
        yield host.models()
    finally:
        if not was_up:
            make("sandbox-down")


@pytest.fixture(scope="session")
def serving(models: dict[str, str]) -> None:
    """The lab serves: for faults that are no part of a first deploy."""
    job = host.run()
    assert job.status == 0, job.ending


def make(target: str) -> None:
    subprocess.run(["make", target], cwd=plays.ROOT, check=True)
