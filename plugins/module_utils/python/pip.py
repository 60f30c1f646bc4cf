# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs pip and tells its failures so that an operator knows what to do next."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

_LAST_LINES = 15
# What pip prints (23.0 to 26.1), and what to do about it. The first that is found counts: a pip without a network also
# says that no distribution matches.
_SIGNS = (
    (
        r"DO NOT MATCH THE HASHES",
        "a wheel is not the one whose hash the lock names; fetch it again, or renew the lock if the change is wanted",
    ),
    (
        r"Hashes are required in --require-hashes mode",
        "the lock has entries without a hash; write one with hashes (the lock.txt of a wheelhouse has them)",
    ),
    (r"No space left on device|\[Errno 28\]", "the disk is full; free some space and run again, which finishes it"),
    (
        r"Failed to establish a new connection|Temporary failure in name resolution|Network is unreachable|"
        r"Connection refused|ConnectTimeoutError|Read timed out|Failed to resolve",
        "the package index is not reached; mend the network, name another index, or install from a wheelhouse",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "there is no {what} for this Python and machine where pip looked; check its version, its name and the source",
    ),
    (r"ResolutionImpossible", "the requirements contradict each other; loosen one of those named above"),
    (r"No module named pip\b", "this Python has no pip; install the distribution's python3-pip"),
)


class PipError(Exception):
    """A command ended with an error; the text has its last lines and what to do."""


@dataclass(frozen=True)
class Source:
    """Where packages come from: a folder of wheels and nothing else, or indexes. None: pip's own setting."""

    wheelhouse: str | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """The options of pip that say so."""
        if self.wheelhouse is not None:
            return ["--no-index", "--find-links", self.wheelhouse]
        arguments = [] if self.index_url is None else ["--index-url", self.index_url]
        for url in self.extra_index_urls:
            arguments += ["--extra-index-url", url]
        return arguments


def run(command: Sequence[str], what: str, offline: bool = False, inherited: Sequence[int] = ()) -> str:
    """Run a command to its end and return its stdout.

    ``offline`` keeps it from every setting of the machine that could point pip to an index. ``inherited`` are file
    descriptors that it holds as long as it lives, whatever becomes of this process.

    Raises:
        PipError: it could not be run or ended with an error.
    """
    environment = {name: value for name, value in os.environ.items() if not offline or not name.startswith("PIP_")}
    environment.pop("PYTHONPATH", None)
    if offline:
        environment["PIP_CONFIG_FILE"] = os.devnull
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, env=environment, pass_fds=inherited
        )
    except OSError as error:
        raise PipError(f"{what}: {command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise PipError(_failure(what, done.returncode, done.stdout + done.stderr))
    return done.stdout


def _failure(what: str, status: int, output: str) -> str:
    lines = [line for line in output.strip().splitlines() if not line.startswith("WARNING: Retrying")]
    told = "\n".join(lines[-_LAST_LINES:])
    if status < 0:
        return f"{what} was killed by signal {-status}; run again, which finishes it. Its last lines:\n{told}"
    for sign, fix in _SIGNS:
        found = re.search(sign, output)
        if found is not None:
            return f"{what} ended with {status}:\n{told}\nfix: {fix.format(**found.groupdict())}"
    return f"{what} ended with {status}:\n{told}"
