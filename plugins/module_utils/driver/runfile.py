# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's .run file, as far as a container needs it: the libraries alone, after its checksum was proven."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..checks import FAIL, PASS, Check
from ..hub import digest
from . import dpkg, kernel

UNINSTALLER = "/usr/bin/nvidia-uninstall"
_HEAD_BYTES = 64 * 1024
_LAST_CHARACTERS = 1500


class RunfileError(Exception):
    """The installer or its uninstaller failed; the text is the end of what it said."""


@dataclass(frozen=True)
class Runfile:
    """``path`` is on the host that it shall run on, ``checksum`` is ``sha256:`` and 64 digits."""

    path: Path
    checksum: str
    arguments: tuple[str, ...]


def uninstaller(root: Path) -> str:
    """The uninstaller of an installation from a .run file; empty when there is none."""
    path = root / UNINSTALLER.lstrip("/")
    return UNINSTALLER if path.exists() and not dpkg.owned(UNINSTALLER) else ""


def label(head: bytes) -> str:
    """The version that the archive's header names; empty when it names none."""
    found = re.search(rb"Linux-x86_64[ -](\d{3}\.\d+(?:\.\d+)?)", head)
    return found[1].decode() if found else ""


def judge(runfile: Runfile, version: str) -> list[Check]:
    """Whether the file is there, is the one that was meant, and brings ``version``."""
    name, expected = "runfile.checksum", f"{runfile.path} with {runfile.checksum or 'a checksum'}"
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", runfile.checksum):
        fix = "set nvidia_driver_runfile_checksum to sha256: and the file's 64 digits, from a source that you trust"
        return [Check(name, FAIL, expected, "no such checksum was given", fix)]
    try:
        with runfile.path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        actual = f"sha256:{digest.of(runfile.path).sha256}"
    except OSError as error:
        fix = "bring the file to this host (a bind mount, a copy) and name its path in nvidia_driver_runfile"
        return [Check(name, FAIL, expected, str(error.strerror), fix)]
    if actual != runfile.checksum:
        fix = "fetch the file again, or correct nvidia_driver_runfile_checksum if you know that it is the right file"
        return [Check(name, FAIL, expected, actual, fix)]
    checks = [Check(name, PASS, expected, "so it is")]
    found = label(head)
    name, expected = "runfile.version", f"an installer of {version}, the version of the host's kernel module that runs"
    if found == version:
        return [*checks, Check(name, PASS, expected, found)]
    fix = f"name the .run file of {version} in nvidia_driver_runfile"
    return [*checks, Check(name, FAIL, expected, found or "a file that names no version", fix)]


def installed(root: Path) -> dict[str, str]:
    """Versions of the driver's libraries that came with no package, by path."""
    return {path: version for path, version in kernel.libraries(root).items() if not dpkg.owned(path)}


def install(runfile: Runfile) -> None:
    """Run the installer.

    Raises:
        RunfileError: it failed.
    """
    _run(["sh", str(runfile.path), *runfile.arguments])


def uninstall() -> None:
    """Undo an installation.

    Raises:
        RunfileError: it failed.
    """
    _run([UNINSTALLER, "--silent"])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        told = (done.stdout + done.stderr).strip()[-_LAST_CHARACTERS:]
        raise RunfileError(f"{' '.join(command)} ended with {done.returncode}: {told}")
