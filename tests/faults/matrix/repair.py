# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault from its beginning to the proof that it is repaired."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.faults.matrix import host, kills
from tests.faults.matrix.faults import Fault
from tests.faults.matrix.results import FOLDER, Row


def face(fault: Fault, had: dict[str, str]) -> Row:
    """Bring it about, have it repaired, and prove that it is."""
    try:
        return _face(fault, had)
    finally:
        if fault.tidy is not None:
            fault.tidy()


def _face(fault: Fault, had: dict[str, str]) -> Row:
    runs: list[host.Run] = []

    def ran(job: host.Run | None) -> host.Run | None:
        if job is not None:
            FOLDER.mkdir(parents=True, exist_ok=True)
            (FOLDER / f"{fault.id}-{len(runs)}.txt").write_text(job.output, encoding="utf-8")
            runs.append(job)
        return job

    ran(fault.inject())
    job = host.run(**fault.variables)
    ran(job)
    if fault.refused:
        assert job.status != 0, job.ending
        assert re.search(fault.refused, job.said), job.ending
        assert "Traceback" not in job.output
        assert fault.mend is not None
        fault.mend()
        job = host.run(**fault.variables)
        ran(job)
    assert job.status == 0, job.ending
    host.prove(job, had, **fault.variables)
    return Row(fault.id, fault.what, _detected(fault, runs), fault.mended, job.repairs, job.seconds, kills.SEED)


def _detected(fault: Fault, runs: Sequence[host.Run]) -> str:
    """What of it was seen, in the words of the runs."""
    if not fault.detected:
        return f"the run before ended in: {runs[0].last_task or 'no task yet'}"
    found = re.search(fault.detected, " ".join(one.said for one in runs))
    assert found, f"{fault.detected} is in none of {FOLDER}/{fault.id}-*.txt"
    return found[found.lastindex or 0]
