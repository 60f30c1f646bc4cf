# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the compiler that a machine holds is as it should be, so that nothing is left to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..python import state, venv
from . import proof, toolkit


@dataclass(frozen=True)
class Held:
    """``home`` is the CUDA_HOME, ``tools`` the folder that has ninja.

    ``wheels`` is the virtual environment of a toolkit that is brought where none is; None where it would be another.
    """

    home: Path
    tools: Path
    architectures: tuple[str, ...]
    compiler: str
    wheels: venv.Request | None


def is_settled(held: Held, version: str, found: toolkit.Toolkit | None, engine: Path | None) -> bool:
    """Whether what is held stands on the toolkit that was ``found``, in the ``engine``'s venv if that is given, or else
    on the wheels, and is proven.

    Raises:
        VenvError, OSError: it cannot be seen.
    """
    where = engine
    if found is None and held.wheels is not None:
        where = held.wheels.path
        if venv.problems(state.inspect(where), held.wheels):
            return False
        found = toolkit.in_venv(where)
    ninja = toolkit.ninja(where)
    if found is None or found.version != version or ninja is None:
        return False
    return proof.held(proof.Request(held.home, held.tools, found, ninja, held.architectures, held.compiler))
