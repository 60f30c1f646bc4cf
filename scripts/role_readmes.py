#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the table of variables into each role's README, out of its argument specification."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).parents[1] / "roles"
BEGIN, END = "<!-- variables: written by scripts/role_readmes.py -->", "<!-- end of variables -->"


def table(role: Path) -> str:
    """The variables of a role as a Markdown table."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options: dict[str, dict[str, Any]] = specs["argument_specs"]["main"]["options"]
    rows = ["| variable | type | default | what it is |", "|---|---|---|---|"]
    for name, option in options.items():
        told = option["description"]
        text = " ".join(told) if isinstance(told, list) else told
        text = re.sub(r"\b[COVE]\(([^)]*)\)", r"`\1`", text).replace("|", "\\|")
        default = "**required**" if option.get("required") else f"`{json.dumps(option.get('default'))}`"
        rows.append(f"| `{name}` | {option['type']} | {default} | {text} |")
    return "\n".join(rows)


def with_table(role: Path, readme: str) -> str:
    """The README with its table as it must be; the table goes to the end when there is none."""
    block = f"{BEGIN}\n{table(role)}\n{END}"
    if BEGIN not in readme:
        return f"{readme.rstrip()}\n\n## Variables\n\n{block}\n"
    head, rest = readme.split(BEGIN)
    return head + block + rest.split(END)[1]


if __name__ == "__main__":
    for folder in sorted(path for path in ROLES.iterdir() if path.is_dir()):
        path = folder / "README.md"
        path.write_text(with_table(folder, path.read_text(encoding="utf-8")), encoding="utf-8")
