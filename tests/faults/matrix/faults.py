# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of the matrix, in the order of its table, and what can go wrong and cannot be tested in the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.faults.matrix.host import Run

# Nothing served: the server that starts was asked, or none was there.
NO_ANSWER = r"no answer \([^)]*\)|Hold the service running and enabled(?=\] \*+ changed:)"


def set_right(task: str) -> str:
    """A pattern: the task that knows how it should be found that it is not."""
    return rf"({task})\] \*+ changed:"


@dataclass(frozen=True)
class Fault:
    """``inject`` brings it about, and returns the run of the main job that met it where there was one.

    ``detected`` is found in what this run or the next one says; where none is given, the run that was killed tells by
    its last task how far it had come. Where the next run shall refuse, ``refused`` is found in its words, ``mend`` is
    the one thing that it told the operator to do (``mended`` in words), and the run after that repairs. ``tidy`` puts
    the lab back in order after the proof. A ``bare`` one needs no deploy before it. Scenario `reboot` has the
    ``quick`` ones.
    """

    id: str
    what: str
    inject: Callable[[], Run | None]
    detected: str = ""
    refused: str = ""
    mend: Callable[[], object] | None = None
    mended: str = ""
    variables: Mapping[str, object] = field(default_factory=dict)
    tidy: Callable[[], object] | None = None
    bare: bool = False
    quick: bool = False


@dataclass(frozen=True)
class Untested:
    """What the lab cannot do, and what is tested in its stead."""

    id: str
    what: str
    why: str
