# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names in requirements, locks and the file names of wheels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:@\s*(\S+)|[<>=!~;(].*|$)")
_HASH = re.compile(r"--hash=(\w+:[0-9a-f]+)")
_PIN = re.compile(r"===?\s*([^\s;,\\*]+)")


def normal(name: str) -> str:
    """A distribution's name in its normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(text: str) -> str:
    """The normal name of a requirement.

    Raises ValueError for one that names no package, as a bare URL, a path or an option of pip does.
    """
    found = _REQUIREMENT.match(text)
    if found is None:
        raise ValueError(
            f"the requirement {text!r} names no package; write it as NAME==VERSION or, for a wheel or a git build, as "
            "NAME @ URL"
        )
    return normal(found[1])


def requirement_url(text: str) -> str | None:
    """The URL of a ``NAME @ URL`` requirement, without its fragment."""
    found = _REQUIREMENT.match(text)
    return None if found is None or found[2] is None else found[2].partition("#")[0]


@dataclass(frozen=True)
class Locked:
    """One package of a lock: its version (None for one by URL) and the hashes that its file may have."""

    name: str
    version: str | None
    hashes: frozenset[str]


def lock_lines(text: str) -> list[str]:
    """The lines of a lock without comments, continued lines joined."""
    joined = re.sub(r"\\\s*\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [re.sub(r"\s+", " ", line) for line in lines if line]


def locked(text: str) -> Mapping[str, Locked]:
    """The packages that a lock (a requirements file with hashes) names.

    Raises ValueError for a line that names no package.
    """
    found = {}
    for line in lock_lines(text):
        if line.startswith("-"):
            continue
        name = requirement_name(line)
        pin = _PIN.search(line.partition(";")[0])
        found[name] = Locked(name, None if pin is None else pin[1], frozenset(_HASH.findall(line)))
    return found


def wheel_identity(name: str) -> tuple[str, str]:
    """``(distribution, version)`` of a wheel's file name, the distribution in its normal form (PEP 427).

    Raises ValueError when it is no wheel's file name.
    """
    parts = name[: -len(".whl")].split("-")
    if not name.endswith(".whl") or len(parts) not in (5, 6):
        raise ValueError(f"{name} is not a wheel's file name")
    return normal(parts[0]), parts[1]
