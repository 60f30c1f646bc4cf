# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Venvs of the same kind beside the one that is wanted: which are older than need be, and which somebody still uses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .state import RECORD, read_record

# Where systemd reads units from (systemd.unit(5)).
UNIT_FOLDERS = tuple(
    map(
        Path, ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
    )
)
PROC = Path("/proc")


@dataclass(frozen=True)
class Sibling:
    """A venv of the same kind; ``used_by`` tells what holds on to it, None when nothing does."""

    path: Path
    used_by: str | None


def superfluous(current: Path, package: str, keep: int) -> list[Sibling]:
    """The venvs beside ``current`` that hold ``package`` beyond the ``keep`` that were finished last.

    A venv that was never finished, or that this collection did not make, is none of them.
    """
    current = Path(os.path.realpath(current))
    found = []
    for path in sorted(current.parent.iterdir()):
        record = read_record(path) if path.is_dir() and not path.is_symlink() and path != current else None
        if record is not None and package in record.packages:
            found.append(path)
    found.sort(key=lambda path: (path / RECORD).stat().st_mtime, reverse=True)
    return [Sibling(path, _used_by(path)) for path in found[keep:]]


def remove(path: Path) -> None:
    """Remove a venv; its record goes last, so that the next run finds what a killed one left."""
    for item in sorted(path.iterdir(), key=lambda item: item.name == RECORD):
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()
    path.rmdir()


def _used_by(path: Path) -> str | None:
    """The unit or the process that uses a venv."""
    names = [f"{name}/".encode() for name in [path, *_links_to(path)]]
    for unit in _units():
        try:
            text = unit.read_bytes()
        except OSError:
            continue
        if any(name in text for name in names):
            return f"the unit {unit}"
    for process in PROC.glob("[0-9]*"):
        # Libraries stay mapped whatever the process calls itself.
        for told in ("cmdline", "maps"):
            try:
                text = (process / told).read_bytes()
            except OSError:
                continue
            if any(name in text for name in names):
                return f"the process {process.name}"
    return None


def _links_to(path: Path) -> Sequence[Path]:
    return [item for item in path.parent.iterdir() if item.is_symlink() and Path(os.path.realpath(item)) == path]


def _units() -> Iterator[Path]:
    for folder in UNIT_FOLDERS:
        yield from folder.glob("*.service")
        yield from folder.glob("*.service.d/*.conf")
