# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the matrix that were green, a file for each: scripts/faults.py makes the table of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

# `make test-faults` empties it.
FOLDER = Path(__file__).parents[3] / ".build" / "faults"


@dataclass(frozen=True)
class Row:
    """``detected`` in the words of the run, ``mended`` what an operator had to do first, ``repairs`` what the rerun
    changed in its ``seconds``, ``seed`` what chose the points of the runs that were killed. There is none of a fault
    after which the models were not as before."""

    id: str
    what: str
    detected: str
    mended: str
    repairs: Sequence[str]
    seconds: float
    seed: str


def keep(row: Row) -> None:
    """In the place of an earlier one of the same fault."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{row.id}.json").write_text(json.dumps(asdict(row), indent=1) + "\n", encoding="utf-8")


def read() -> list[Row]:
    """Those that are there."""
    return [Row(**json.loads(file.read_text(encoding="utf-8"))) for file in FOLDER.glob("*.json")]
