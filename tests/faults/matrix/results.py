# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the matrix that were green in one run, in a file from which scripts/faults.py makes the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parents[3] / ".build" / "faults" / "rows.json"


@dataclass(frozen=True)
class Row:
    """``detected`` in the words of the run, ``mended`` what an operator had to do first, ``repairs`` what the rerun
    changed in its ``seconds``. There is none of a fault after which the models were not as before."""

    id: str
    what: str
    detected: str
    mended: str
    repairs: Sequence[str]
    seconds: float


def begin(seed: str) -> None:
    """Forget what an earlier run wrote."""
    _write(seed, [])


def keep(row: Row) -> None:
    """Add a row to those of this run."""
    seed, rows = read()
    _write(seed, [*(one for one in rows if one.id != row.id), row])


def read() -> tuple[str, list[Row]]:
    """Seed and rows of the last run."""
    told = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"seed": "", "rows": []}
    return told["seed"], [Row(**row) for row in told["rows"]]


def _write(seed: str, rows: Sequence[Row]) -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    told = {"seed": seed, "rows": [asdict(row) for row in rows]}
    FILE.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
