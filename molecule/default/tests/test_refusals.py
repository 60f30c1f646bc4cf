# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: the main job names the variable, what was found and the fix, and changes nothing."""

from __future__ import annotations

import pytest

from tests.fixtures import plays

testinfra_hosts = ["ansible://ct200"]

# On the Hub alone.
MISFIT = {"dest": "/srv/models/tiny-eagle3-misfit", "repo_id": "lab/tiny-eagle3-misfit", "allow_moving": True}
BASE = {"dest": "/srv/models/tiny-llama", "repo_id": "lab/tiny-llama", "allow_moving": True}
# What there is of models, with the size and the time of each file.
HELD = "find /srv/models -printf '%p %s %T@\\n' | sort"

REFUSALS = {
    "a drafter whose hidden size does not fit": (
        {
            "sglang_server_speculative_draft_model_path": MISFIT["dest"],
            "hf_models_models": [BASE, MISFIT],
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
        {"hf_models_models": [{"dest": "/srv/models/tiny-llama", "source": "/srv/nowhere"}]},
        ["hf_models_models[0]", "/srv/nowhere"],
    ),
    "a repository that the Hub does not have": (
        {"hf_models_models": [{**BASE, "repo_id": "lab/nowhere"}]},
        ["hf_models_models[0]", "lab/nowhere", "check the spelling of the repository"],
    ),
    "a disk that has no room for what is missing": (
        {"hf_models_models": [BASE, MISFIT], "hf_models_reserve_bytes": 10**16},
        ["[model.space]", MISFIT["dest"], "10000 TB stay in reserve"],
    ),
    "an unknown speculative algorithm": (
        {"sglang_server_speculative_algorithm": "EAGEL3"},
        ["sglang_server_speculative_algorithm", "EAGEL3", "EAGLE3"],
    ),
    "a flag that the engine would take for another one's abbreviation": (
        {"sglang_server_extra_args": {"device": "cpu", "mem_frac": 0.5}},
        ["[args.abbreviated]", "sglang_server_extra_args.mem_frac", "--mem-fraction-static"],
    ),
    "a container that Proxmox does not have": (
        {"lxc_gpu_containers": [{"vmid": 999, "gpus": "all"}]},
        ["lxc_gpu_containers", "999", "200"],
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_before_anything_is_changed(host, case: str) -> None:
    variables, words = REFUSALS[case]
    held = host.check_output(HELD)
    status, output = plays.run(*plays.playbook("playbooks/k26_eagle3.yml", **variables))
    assert status != 0, output
    told = plays.unfolded(output)
    assert [word for word in words if word not in told] == [], told
    assert "fix:" in told
    counts = plays.changed(output)
    assert counts != {}
    assert set(counts.values()) == {0}, output
    assert host.check_output(HELD) == held
    assert MISFIT["dest"] not in held


# A host that should have a driver and eight GPUs, where the lab has neither.
UNSOUND = {"gpu_health_driver": "required", "gpu_health_expected_count": 8}


def test_host_that_is_not_sound_stops_the_run_before_a_container_is_touched() -> None:
    # Their rules come after the check, and would be written anew.
    narrower = [{"vmid": 200, "gpus": "all", "mode": "0660"}]
    status, output = plays.run(*plays.playbook("playbooks/k26_eagle3.yml", **UNSOUND, lxc_gpu_containers=narrower))
    assert status != 0, output
    told = plays.unfolded(output)
    assert "[node.nvidia7] expected open(/dev/nvidia7) succeeds; found the node does not exist; fix:" in told
    assert "[driver.loaded]" in told
    assert "PLAY [Serve tokens]" not in output
    assert plays.changed(output) == {"pve": 0, "ct200": 0}


def test_host_whose_failures_are_ignored_lets_the_run_go_on() -> None:
    ignored = ["driver.loaded", "node.nvidiactl", "node.nvidia-uvm", *(f"node.nvidia{index}" for index in range(8))]
    command = plays.playbook("playbooks/k26_eagle3.yml", **UNSOUND, gpu_health_ignore=ignored)
    status, output = plays.run(*command, "--tags", "gpu_health")
    assert status == 0, output
    told = plays.unfolded(output)
    assert told.count("gpu_health_ignore lets pass: [driver.loaded]") == 2, told
    assert set(plays.changed(output).values()) == {0}
