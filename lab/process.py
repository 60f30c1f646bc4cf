# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running other programs, and the one error of this package."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

FILES = Path(__file__).resolve().parent / "files"


class LabError(Exception):
    """Something the operator can act on: what is wrong, where, and what to do next."""


def run(
    command: Sequence[str], *, stdin: str | None = None, check: bool = True, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `command` and return its output; with `check`, a failure becomes a LabError that quotes the last lines."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=env)
    except FileNotFoundError as error:
        raise LabError(f"{command[0]} is not installed; `python3 -m lab up` installs what the lab needs") from error
    if check and done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise LabError(f"`{shlex.join(command)}` failed with status {done.returncode}:\n{said}")
    return done
