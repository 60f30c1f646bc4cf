# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lab.hub import HubServer, serve
from tests.doubles import gpus

# The same examples in each run: a change is to blame for a failure, and not the dice.
settings.register_profile("gpuserve", derandomize=True)
settings.load_profile("gpuserve")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A Hub on loopback, with no models yet."""
    with serve() as served:
        yield served


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The doubles of libnvidia-ml and libcuda, built once."""
    return gpus.build(tmp_path_factory.mktemp("doubles"))


@pytest.fixture
def play(libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """A function that makes the doubles play a scenario."""
    uvm = tmp_path / "nvidia-uvm"
    uvm.touch()

    def start(lines: list[str]) -> None:
        scenario = gpus.write(tmp_path / "scenario", [f"value uvm * {uvm}", *lines])
        monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
        monkeypatch.setenv("GPU_DOUBLE_SCENARIO", str(scenario))

    return start
