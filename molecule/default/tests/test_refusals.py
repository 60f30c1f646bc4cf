# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: the main job names the variable, what was found and the fix, and changes nothing."""

from __future__ import annotations

import pytest

from tests.fixtures import plays

MISFIT = "/srv/models/tiny-eagle3-misfit"
BASE = {"dest": "/srv/models/tiny-llama", "source": "/srv/lab/models/tiny-llama"}

REFUSALS = {
    "a drafter whose hidden size does not fit": (
        {
            "sglang_server_speculative_draft_model_path": MISFIT,
            "hf_models_models": [BASE, {"dest": MISFIT, "source": "/srv/lab/models/tiny-eagle3-misfit"}],
        },
        ["sglang_server_speculative_draft_model_path", "96", "64"],
    ),
    "draft tokens without their two companions": (
        {
            "sglang_server_speculative_num_steps": None,
            "sglang_server_speculative_eagle_topk": None,
            "sglang_server_speculative_num_draft_tokens": 3,
        },
        [
            "sglang_server_speculative_num_draft_tokens",
            "sglang_server_speculative_num_steps",
            "sglang_server_speculative_eagle_topk",
        ],
    ),
    "a model path that does not exist": (
        {"sglang_server_model_path": "/srv/models/nowhere"},
        ["sglang_server_model_path", "/srv/models/nowhere"],
    ),
    "a source that does not exist": (
        {"hf_models_models": [{"dest": "/srv/models/tiny-llama", "source": "/srv/lab/models/nowhere"}]},
        ["hf_models_models[0]", "/srv/lab/models/nowhere"],
    ),
    "an unknown speculative algorithm": (
        {"sglang_server_speculative_algorithm": "EAGEL3"},
        ["sglang_server_speculative_algorithm", "EAGEL3", "EAGLE3"],
    ),
    "a container that Proxmox does not have": (
        {"lxc_gpu_containers": [{"vmid": 999, "gpus": "all"}]},
        ["lxc_gpu_containers", "999", "200"],
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_before_anything_is_changed(case: str) -> None:
    variables, words = REFUSALS[case]
    status, output = plays.run(*plays.playbook("playbooks/k26_eagle3.yml", **variables))
    assert status != 0, output
    told = plays.unfolded(output)
    assert [word for word in words if word not in told] == [], told
    assert "fix:" in told
    counts = plays.changed(output)
    assert counts != {}
    assert set(counts.values()) == {0}, output
