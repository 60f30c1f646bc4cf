# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of everything that can be known: from the models' folders, or from the Hub where they are not here yet."""

from __future__ import annotations

import re

from tests.fixtures import plays

testinfra_hosts = ["ansible://ct200"]

WANTED = {
    "sglang_server_model_path": "/srv/models/base",
    "sglang_server_speculative_draft_model_path": "/srv/models/drafter",
    "hf_models_models": [
        {"dest": "/srv/models/base", "repo_id": "lab/tiny-llama", "allow_moving": True},
        {"dest": "/srv/models/drafter", "repo_id": "lab/tiny-eagle3", "allow_moving": True},
    ],
}


def table(**variables: object) -> dict[str, list[str]]:
    """What became of each check, by its id; two modules may have one of the same id."""
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", **variables))
    assert status == 0, output
    assert set(plays.changed(output).values()) == {0}, output
    told: dict[str, list[str]] = {}
    for became, check in re.findall(r"^ +- '?(pass|warn|skipped) +([\w.]+) ", output, re.MULTILINE):
        told.setdefault(check, []).append(became)
    return told


def test_models_in_their_folders_are_judged():
    told = table()
    assert told["drafter.hidden_size"] == ["pass"]
    # By the drafter's judge and by the sum of the memory.
    assert told["base.readable"] == ["pass", "pass"]


def test_models_that_are_on_the_hub_alone_are_judged_from_there(host):
    told = table(**WANTED)
    assert told["drafter.hidden_size"] == ["pass"]
    assert told["base.readable"] == ["pass", "pass"]
    # How many weights there are is known when they are here.
    assert told["drafter.weights"] == ["skipped"]
    for model in WANTED["hf_models_models"]:
        assert not host.file(model["dest"]).exists
