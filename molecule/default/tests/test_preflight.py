# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of everything that can be known: from the models' folders, or from the Hub where they are not here yet."""

from __future__ import annotations

import re

from tests.fixtures import plays

WANTED = {
    "sglang_server_model_path": "/srv/models/base",
    "sglang_server_speculative_draft_model_path": "/srv/models/drafter",
    "hf_models_models": [
        {"dest": "/srv/models/base", "repo_id": "lab/tiny-llama", "allow_moving": True},
        {"dest": "/srv/models/drafter", "repo_id": "lab/tiny-eagle3", "allow_moving": True},
    ],
}


def table(**variables: object) -> dict[str, list[str]]:
    """What became of each check, by its id; a check that is made of base and drafter has several."""
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", **variables))
    assert status == 0, output
    assert set(plays.changed(output).values()) == {0}, output
    told: dict[str, list[str]] = {}
    for became, check in re.findall(r"^ +- '?(pass|warn|skipped) +([\w.]+) ", output, re.MULTILINE):
        told.setdefault(check, []).append(became)
    return told


def test_models_on_the_hub_are_judged_as_those_in_their_folders() -> None:
    here, there = table(), table(**WANTED)
    assert here["drafter.hidden_size"] == ["pass"]
    assert here["base.readable"] == ["pass", "pass"]
    assert there == here
