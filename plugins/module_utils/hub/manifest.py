# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest beside a model's files: where they came from, and every file with its size.

It is written last. A folder without one is unfinished, and one whose files differ from it is damaged; both are seen by
stat alone, in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAME = ".gpuserve-manifest.json"


@dataclass(frozen=True)
class Manifest:
    """``origin`` is a repository's name or a local folder, ``commit`` None for a folder, ``files`` path -> bytes."""

    origin: str
    commit: str | None
    files: Mapping[str, int]

    def write(self, folder: Path) -> None:
        """Write it whole or not at all."""
        written = folder / f"{NAME}.new"
        told = {"origin": self.origin, "commit": self.commit, "files": dict(sorted(self.files.items()))}
        written.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        written.replace(folder / NAME)


def read(folder: Path) -> Manifest | None:
    """The manifest in ``folder``, or None when there is none that can be read."""
    try:
        told = json.loads((folder / NAME).read_text(encoding="utf-8"))
        files = {str(name): int(size) for name, size in told["files"].items()}
        return Manifest(str(told["origin"]), told["commit"], files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def damaged(folder: Path, files: Mapping[str, int]) -> list[str]:
    """Which of ``files`` are missing in ``folder`` or have another size."""
    found = []
    for name, size in sorted(files.items()):
        try:
            actual = (folder / name).stat().st_size
        except OSError:
            found.append(name)
            continue
        if actual != size:
            found.append(name)
    return found


def listing(folder: Path) -> dict[str, int]:
    """Every file below ``folder`` with its size; links are followed, hidden folders are no part of a model."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            found[str(name)] = path.stat().st_size
    return found
