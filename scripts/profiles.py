#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/profiles.md out of the profiles."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import yaml
from ansible.utils.vars import merge_hash

ROOT = Path(__file__).parents[1]
PROFILES = ROOT / "playbooks" / "vars" / "profiles"
DOCUMENT = ROOT / "docs" / "profiles.md"
_WIDTH = 118
_HEAD = """\
# Profiles

<!-- Written by scripts/profiles.py out of playbooks/vars/profiles: change that instead. -->

A profile says how a model is served, as variables of the roles, with what that rests on and where it ends. What
belongs to the site stays in the inventory: addresses, versions, folders of the engine, the environment.

    ansible-playbook playbooks/k26_eagle3.yml -i inventories/ct200

Each profile has a playbook of its name, which is `playbooks/serve.yml` with that profile. `serve.yml`,
`preflight.yml`, `status.yml` and `rollback.yml` take the one that the inventory names (`serve_profile: k26_eagle3`,
for a group or for a host), or `-e serve_profile=...`; without one, the inventory gives the variables itself. One run
of `ansible-playbook` takes one profile a host.

What the inventory sets wins, variable by variable, and the run says which those are. It can build on the profile's
own value:

    sglang_server_extra_args: >-
      {{ profile.variables.sglang_server_extra_args | combine({'max_running_requests': 16}) }}

To pin the models, write `hf_models_models` into the inventory as it stands below, with `revision:` in place of
`allow_moving:`. The run shows the commits. Where the engine runs code of a model (`trust_remote_code`), the preflight
warns until that is done (`model.remote_code`); a later run keeps to the commit that the first one brought.

With speculation the engine takes 48 requests at once unless `max_running_requests` says otherwise. Nothing below was
measured by this project on the models themselves: each sentence says whose it is. Measure yours: the card of each
deploy has the accept length and the speed, against the model without speculation if that was deployed before.
"""


def profiles() -> dict[str, dict[str, Any]]:
    """Every profile by its name, as it is written."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(PROFILES.glob("*.yml")):
        found |= yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def variables(name: str) -> dict[str, Any]:
    """What a profile sets, with what its base sets: as playbooks/tasks/profile.yml puts them together."""
    profile = profiles()[name]
    base = profiles()[profile["base"]]["variables"] if "base" in profile else {}
    return dict(merge_hash(base, profile["variables"], recursive=True, list_merge="append"))


def _bullets(sentences: list[str]) -> str:
    return "\n".join(
        textwrap.fill(text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        for text in sentences
    )


def entry(name: str, profile: dict[str, Any]) -> str:
    """One profile as Markdown."""
    told = yaml.safe_dump(variables(name), sort_keys=False, width=_WIDTH)
    base = f"All that is said of `{profile['base']}` goes for it too.\n\n" if "base" in profile else ""
    return (
        f"## {name}\n\n{profile['title']}. {base}".rstrip()
        + f"\n\n### What it rests on\n\n{_bullets(profile['evidence'])}"
        + f"\n\n### Where it ends\n\n{_bullets(profile['limits'])}"
        + f"\n\n### What it sets\n\n```yaml\n{told}```\n"
    )


def document() -> str:
    """The whole of it."""
    return "\n".join([_HEAD, *(entry(name, profile) for name, profile in profiles().items())])


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
