# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the distribution's packages are missing, told in milliseconds: an apt task costs a third of a second."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence


class DebianError(Exception):
    """dpkg could not be asked."""


def missing(names: Sequence[str]) -> list[str]:
    """Those of ``names`` (``name`` or ``name=version``) that are not installed, or not in that version.

    Raises:
        DebianError: there is no dpkg.
    """
    if not names:
        return []
    packages = [name.partition("=")[0] for name in names]
    form = "--showformat=${Package} ${db:Status-Status} ${Version}\\n"
    try:
        # It ends with 1 when it does not know one of the names, and still tells of the others.
        told = subprocess.run(["dpkg-query", "--show", form, *packages], capture_output=True, text=True, check=False)
    except OSError as error:
        raise DebianError(
            f"dpkg-query cannot be run: {error.strerror}; this needs Debian or a relative of it"
        ) from error
    installed = {}
    for line in told.stdout.splitlines():
        package, status, version = line.split(" ", 2)
        if status == "installed":
            installed[package] = version
    return [name for name in names if not _is_there(name, installed)]


def _is_there(name: str, installed: Mapping[str, str]) -> bool:
    package, dummy, version = name.partition("=")
    return package in installed and version in ("", installed[package])
