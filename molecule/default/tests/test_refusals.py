# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: the main job names the variable, what was found and the fix, and changes nothing."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
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
    command = ["ansible-playbook", "playbooks/k26_eagle3.yml", "-i", "inventories/sandbox", "-e", json.dumps(variables)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout
    # The callback folds long lines.
    told = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert [word for word in words if word not in told] == [], told
    assert "fix:" in told
    recap = done.stdout.split("PLAY RECAP")[1]
    assert re.findall(r"changed=(\d+)", recap) != []
    assert set(re.findall(r"changed=(\d+)", recap)) == {"0"}, recap
