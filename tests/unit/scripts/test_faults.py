# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from scripts.faults import document
from tests.faults.matrix.catalogue import FAULTS, UNTESTED
from tests.faults.matrix.results import Row

ROWS = [Row(fault.id, fault.what, "a < b | c", fault.mended, ["Make it", "Start it"], 12.4, "7") for fault in FAULTS]


def test_each_fault_has_its_row() -> None:
    told = document(ROWS)
    for fault in FAULTS:
        by = f"The operator {fault.mended}. " if fault.mended else ""
        assert f"| {fault.what} | a \\< b \\| c | {by}Make it; Start it | 12 | none |" in told
    for untested in UNTESTED:
        assert f"| {untested.what} | {untested.why} |" in told
    assert "GPUSERVE_FAULT_SEED=7" in told


def test_a_fault_that_was_not_repaired_leaves_no_table() -> None:
    with pytest.raises(KeyError):
        document(ROWS[1:])


def test_names_are_used_once() -> None:
    names = [one.id for one in (*FAULTS, *UNTESTED)]
    assert len(names) == len(set(names))


def test_an_operator_is_told_one_thing_where_a_run_refuses() -> None:
    for fault in FAULTS:
        assert bool(fault.refused) == bool(fault.mend) == bool(fault.mended), fault.id
