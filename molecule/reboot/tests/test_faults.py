# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some faults of the matrix that are quick, and that no scenario has: tests/faults has them all."""

from __future__ import annotations

import pytest

from tests.faults.matrix import host
from tests.faults.matrix.catalogue import FAULTS
from tests.faults.matrix.repair import face


@pytest.fixture(scope="module")
def models() -> dict[str, str]:
    """What the models are to be, by hash."""
    return host.models()


@pytest.mark.parametrize("fault", [pytest.param(one, id=one.id) for one in FAULTS if one.quick])
def test_repaired_by_a_rerun(fault, models):
    face(fault, models)
