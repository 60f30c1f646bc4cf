# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.plugins.module_utils.engine import published


@pytest.fixture(scope="session")
def wheel() -> Callable[[str, str], Path]:
    """Unpacks a published wheel; where no package index can be reached the test is skipped, in CI it fails."""

    def get(requirement: str, digest: str) -> Path:
        try:
            return published.unpacked(requirement, digest)
        except RuntimeError as error:
            why = f"{requirement} cannot be had from the package index: {error}"
            if os.environ.get("CI") == "true":
                pytest.fail(why)
            pytest.skip(why)

    return get


@pytest.fixture(scope="session")
def release(wheel: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """The folder of an unpacked release of SGLang."""
    return lambda version: wheel(f"sglang=={version}", published.digests()[version])
