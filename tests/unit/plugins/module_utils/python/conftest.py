# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fixtures import venvs


@pytest.fixture(scope="session")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv with a pip and nothing else, to be copied."""
    return venvs.make(tmp_path_factory.mktemp("venv") / "empty")


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for whatever else this machine is writing; nobody cuts the power of a test."""
    monkeypatch.setattr(os, "sync", lambda: None)
