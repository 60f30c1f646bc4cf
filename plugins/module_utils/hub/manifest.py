# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest beside a model's files: where they came from, and every file with its size, time and SHA-256.

It is written last, after the files have reached the disk. A folder without one is unfinished, and one whose files
differ from it is damaged; both are seen by stat alone, in milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.files import write_whole

NAME = ".gpuserve-manifest.json"
# Beside it: partial files, the lock, and how a running transfer goes.
WORK = ".gpuserve"
# In there: from when until when a file of the model was wrong.
WRONG = "wrong.json"


@dataclass(frozen=True)
class Held:
    """A file as it was when it was proved: size in bytes, SHA-256, and the time of its last change."""

    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True)
class Manifest:
    """``origin`` is a repository's name or a local folder, ``commit`` None where none is known. ``allow`` and
    ``ignore`` are the patterns that chose the files."""

    origin: str
    commit: str | None
    entries: Mapping[str, Held]
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def files(self) -> dict[str, int]:
        """Path -> size in bytes."""
        return {name: held.size for name, held in self.entries.items()}

    @property
    def digests(self) -> dict[str, str]:
        """Path -> SHA-256."""
        return {name: held.sha256 for name, held in self.entries.items()}

    def write(self, folder: Path) -> None:
        """Write it whole or not at all, and for good."""
        files = {
            name: {"size": held.size, "sha256": held.sha256, "mtime_ns": held.mtime_ns}
            for name, held in sorted(self.entries.items())
        }
        told = {
            "origin": self.origin,
            "commit": self.commit,
            "allow": list(self.allow),
            "ignore": list(self.ignore),
            "files": files,
        }
        written = folder / f"{NAME}.new"
        with written.open("w", encoding="utf-8") as opened:
            opened.write(json.dumps(told, indent=1) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        written.replace(folder / NAME)
        sync(folder)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read(folder: Path) -> Manifest | None:
    """The manifest in ``folder``, or None when there is none that can be read."""
    try:
        return parse((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def wrong(folder: Path) -> list[tuple[float, float]]:
    """From when until when a file in ``folder`` had another content than its manifest said, as seconds since the epoch.

    Who loaded the model in between has that.
    """
    try:
        told = json.loads((folder / WORK / WRONG).read_text(encoding="utf-8"))
        return [(float(since), float(until)) for since, until in told]
    except (OSError, ValueError, TypeError):
        return []


def remember_wrong(folder: Path, since: float, until: float) -> None:
    """Add to what `wrong` tells. Raises OSError."""
    write_whole(folder / WORK / WRONG, json.dumps([*wrong(folder), (since, until)]) + "\n")


def parse(text: str) -> Manifest:
    """A manifest out of its text. Raises ValueError when it is none."""
    try:
        told = json.loads(text)
        entries = {
            str(name): Held(int(file["size"]), str(file["sha256"]), int(file["mtime_ns"]))
            for name, file in told["files"].items()
        }
        return Manifest(str(told["origin"]), told["commit"], entries, tuple(told["allow"]), tuple(told["ignore"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no manifest: {error}") from error


@dataclass(frozen=True)
class Look:
    """What stat tells of a manifest's files: those missing or of another size, and those touched since."""

    damaged: tuple[str, ...]
    touched: tuple[str, ...]


def look(folder: Path, entries: Mapping[str, Held]) -> Look:
    """Compare files with what is known of them, without reading any."""
    damaged, touched = [], []
    for name, held in sorted(entries.items()):
        try:
            found = (folder / name).stat()
        except OSError:
            damaged.append(name)
            continue
        if found.st_size != held.size:
            damaged.append(name)
        elif found.st_mtime_ns != held.mtime_ns:
            touched.append(name)
    return Look(tuple(damaged), tuple(touched))


def listing(folder: Path) -> dict[str, int]:
    """Every file below ``folder`` with its size; links are followed, hidden folders are no part of a model."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            found[str(name)] = path.stat().st_size
    return found
