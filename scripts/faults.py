#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/faults.md out of one run of the fault matrix, if each of its faults was repaired."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / ".build" / "collections")]

from tests.faults.matrix import results  # noqa: E402
from tests.faults.matrix.catalogue import FAULTS, UNTESTED  # noqa: E402

DOCUMENT = ROOT / "docs" / "faults.md"
_HEAD = """\
# What one rerun repairs

<!-- Written by scripts/faults.py out of a run of the matrix: change tests/faults/matrix instead. -->

    make test-faults

Each fault is brought about on the sandbox, then the main playbook runs again, then comes the proof as after a first
deploy: accept length above 1.3 on the card, a completion over HTTP, each granted node opened in the container, the
sha256 of every file of the models as it was (data lost: none), and one more run that changes nothing. Where the run
refuses, the operator does the one thing that it names, and runs it again. The seconds are those of the run that
repairs, on 2 cores that two labs share.

| fault | detected by | repaired by | seconds | data lost |
|---|---|---|---|---|
"""
_UNTESTED = """
What cannot be brought about on the sandbox:

| fault | why |
|---|---|
"""


def document(rows: Sequence[results.Row]) -> str:
    """The whole of it. Raises KeyError for a fault that was not repaired."""
    by_id = {row.id: row for row in rows}
    told = [_row(by_id[fault.id]) for fault in FAULTS]
    seeds = sorted({row.seed for row in rows})
    untested = [f"| {_shown(one.what)} | {_shown(one.why)} |" for one in UNTESTED]
    lines = [*told, f"\nThe controller was killed at the points of `GPUSERVE_FAULT_SEED={' '.join(seeds)}`."]
    return _HEAD + "\n".join(lines) + "\n" + _UNTESTED + "\n".join(untested) + "\n"


def _row(row: results.Row) -> str:
    by = [f"The operator {row.mended}."] if row.mended else []
    by.append("; ".join(row.repairs) or "nothing was left to repair")
    cells = [row.what, row.detected, " ".join(by), f"{row.seconds:.0f}", "none"]
    return f"| {' | '.join(map(_shown, cells))} |"


def _shown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def main() -> int:
    rows = results.read()
    if missing := [fault.id for fault in FAULTS if fault.id not in {row.id for row in rows}]:
        print(f"{DOCUMENT.name} stays as it is: in the last run {', '.join(missing)} had no green row", file=sys.stderr)
        return 1
    DOCUMENT.write_text(document(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
