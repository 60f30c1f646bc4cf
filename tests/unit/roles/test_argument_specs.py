# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's defaults and its argument specification say the same thing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from scripts.role_readmes import with_table

ROLES = sorted(path for path in (Path(__file__).parents[3] / "roles").iterdir() if path.is_dir())


def read(path: Path) -> dict[str, object]:
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_defaults_equal_the_specification(role: Path) -> None:
    options = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = read(role / "defaults" / "main.yml")
    specified = {name: option.get("default") for name, option in options.items() if not option.get("required")}
    assert specified == defaults


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_variables_carry_the_role_s_name(role: Path) -> None:
    options = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert [name for name in options if not name.startswith(f"{role.name}_")] == []


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_the_readme_s_table_is_the_specification(role: Path) -> None:
    readme = (role / "README.md").read_text(encoding="utf-8")
    assert readme == with_table(role, readme), "run scripts/role_readmes.py"
