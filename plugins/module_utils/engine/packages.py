# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed in a site-packages folder, read from the names of its metadata folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from .requirements import canonical_name
from .versions import Version, parse_version

_FOLDER = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist|egg)-info")


class EngineMissingError(ValueError):
    """There is no readable SGLang where it was looked for; the text says what to do."""


@dataclass(frozen=True)
class Packages:
    """A site-packages folder: package names, normalised, with their versions."""

    folder: Path
    versions: Mapping[str, Version]

    def metadata(self, name: str) -> Mapping[str, list[str]]:
        """The headers of a package's METADATA, each with all its values.

        Raises EngineMissingError when the package has none.
        """
        for folder in self.folder.iterdir():
            match = _FOLDER.fullmatch(folder.name)
            if match and canonical_name(match["name"]) == name and (folder / "METADATA").is_file():
                message = HeaderParser().parsestr((folder / "METADATA").read_text(encoding="utf-8", errors="replace"))
                return {key: message.get_all(key, []) for key in message}
        raise EngineMissingError(f"{self.folder} has no metadata of {name}; install it anew (role sglang_install)")


def plugins_in(folder: Path) -> tuple[str, ...]:
    """The packages in a site-packages folder that plug into SGLang (entry points in the group ``sglang.srt.plugins``).

    From 0.5.12 on they are loaded by default and may add algorithms and flags (sglang/srt/plugins/__init__.py).
    """
    files = sorted(folder.glob("*.dist-info/entry_points.txt"))
    return tuple(
        file.parent.name.partition("-")[0]
        for file in files
        if "[sglang.srt.plugins]" in file.read_text(encoding="utf-8", errors="replace")
    )


def read_packages(folder: Path) -> Packages:
    """The packages of a site-packages folder, or of one with unpacked wheels.

    Raises EngineMissingError when the folder is not there.
    """
    if not folder.is_dir():
        raise EngineMissingError(f"there is no folder {folder}; install SGLang first (role sglang_install)")
    versions: dict[str, Version] = {}
    for entry in folder.iterdir():
        match = _FOLDER.fullmatch(entry.name)
        # pip leaves folders that begin with a tilde behind when it is killed.
        if match is None or match["name"].startswith("~"):
            continue
        try:
            versions[canonical_name(match["name"])] = parse_version(match["version"].replace("_", "+"))
        except ValueError:
            continue
    return Packages(folder, versions)


def site_packages_of(venv: Path) -> Path:
    """The site-packages folder of a virtual environment.

    Raises EngineMissingError when it has none.
    """
    found = sorted(venv.glob("lib/python3*/site-packages"))
    if not found:
        raise EngineMissingError(f"{venv} is no virtual environment; make it first (role sglang_install)")
    with_engine = [folder for folder in found if (folder / "sglang").is_dir()]
    return (with_engine or found)[-1]
