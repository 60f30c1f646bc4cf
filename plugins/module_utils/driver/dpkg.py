# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg knows of the driver's packages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from . import versions

_FORMAT = "${Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n"


@dataclass(frozen=True)
class Package:
    """``version`` is Debian's. ``whole`` is false for one whose installation was interrupted."""

    name: str
    version: str
    held: bool
    whole: bool

    @property
    def driver(self) -> str:
        """The driver version that it carries."""
        return versions.upstream(self.version)


def _query(patterns: Sequence[str]) -> list[list[str]]:
    command = ["dpkg-query", "--show", f"--showformat={_FORMAT}", *patterns]
    # It ends with 1 when a pattern fits nothing, which is an answer too.
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line.split("\t") for line in told.splitlines()]


def installed(patterns: Sequence[str]) -> dict[str, Package]:
    """The installed packages that one of the shell patterns fits."""
    return {
        name: Package(name, version, want == "hold", status == "installed")
        for name, version, want, status in _query(patterns)
        if status not in ("not-installed", "config-files")
    }


def members() -> dict[str, Package]:
    """The installed packages of the driver's set."""
    return {
        name: package
        for name, package in installed(versions.PATTERNS).items()
        if versions.is_member(name, package.version)
    }


def pinning_leftovers() -> list[str]:
    """Pinning packages that were removed, and whose pin is still there: it is a configuration file."""
    return [row[0] for row in _query([f"{versions.PINNING}*"]) if row[3] == "config-files"]


def pinning_files() -> list[str]:
    """The files of pinning packages, installed or leftover."""
    names = [row[0] for row in _query([f"{versions.PINNING}*"]) if row[3] != "not-installed"]
    if not names:
        return []
    told = subprocess.run(["dpkg-query", "--listfiles", *names], capture_output=True, text=True, check=False).stdout
    return [line for line in told.splitlines() if line.startswith("/etc/apt/preferences.d/")]


def owned(path: str) -> bool:
    """Whether a file came with a package."""
    return subprocess.run(["dpkg-query", "--search", path], capture_output=True, check=False).returncode == 0
