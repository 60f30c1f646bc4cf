# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: each fault in the lab, then a rerun, then the proof as after a first deploy.

`make test-faults` runs it and writes docs/faults.md; scenario `reboot` has some of it in `make test`. One fault alone:
`GPUSERVE_LAB=faults pytest tests/faults -k shard-missing`.
"""

from __future__ import annotations

import pytest

from tests.faults.matrix.catalogue import FAULTS
from tests.faults.matrix.faults import Fault
from tests.faults.matrix.repair import face
from tests.faults.matrix.results import keep


@pytest.mark.parametrize("fault", [pytest.param(one, id=one.id) for one in FAULTS])
def test_repaired_by_a_rerun(fault: Fault, models: dict[str, str], request: pytest.FixtureRequest) -> None:
    if not fault.bare:
        request.getfixturevalue("serving")
    keep(face(fault, models))
