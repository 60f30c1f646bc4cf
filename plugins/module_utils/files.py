# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small files of ours, whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file's text: whoever reads it meanwhile finds the old one or the new one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.new")
    partial.write_text(text, encoding="utf-8")
    if mode is not None:
        partial.chmod(mode)
    partial.replace(path)
