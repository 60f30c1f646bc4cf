# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real engine makes of configs, against what the rules say it makes.

Parameters of each class of drafter, the derived context and the type. It needs a venv with SGLang 0.5.20 built for a
CPU, like test_served_pairs.py::

    GPUSERVE_ENGINE_VENV=/opt/sglang/venv pytest tests/engine/test_engine_source.py
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.config import Config
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter import dflash, layouts, sizes
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.pair import Request
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.serving import resolved_dtype
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.packages import site_packages_of
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import read_engine

from tests.fixtures import checkpoints as small

VENV = os.environ.get("GPUSERVE_ENGINE_VENV", "")
STANDINS = os.environ.get("GPUSERVE_ENGINE_STANDINS", str(Path(__file__).parents[2] / "lab" / "engine" / "standins"))
ROPE = {"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu"}
YARN = {
    "type": "yarn",
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 1024,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
MLA = {**ROPE, "rope_scaling": YARN}
CONFIGS: Mapping[str, dict[str, Any]] = {
    "base": small.llama_config(),
    "llama": small.llama_drafter_config(**ROPE),
    "llama with all there is": small.llama_drafter_config(
        **ROPE, attention_bias=True, bias=True, fc_norm=True, norm_before_fc=True, num_hidden_layers=2
    ),
    "llama, tied": small.llama_drafter_config(**ROPE, tie_word_embeddings=True),
    "llama, own width": small.llama_drafter_config(**ROPE, hidden_size=32, target_hidden_size=64),
    "llama, counted states": small.llama_drafter_config(**ROPE, num_aux_hidden_states=5),
    "llama, without ids": small.llama_drafter_config(**ROPE, eagle_config=None),
    "mla": small.mla_drafter_config(**MLA),
    "mla with norms": small.mla_drafter_config(**MLA, fc_norm=True, bias=True),
    "mla, own width": small.mla_drafter_config(**MLA, hidden_size=32, target_hidden_size=64),
    "mla, ids at the top": small.mla_drafter_config(
        **MLA, eagle_config=None, eagle_aux_hidden_state_layer_ids=[1, 2, 3, 4]
    ),
    "dflash": small.dflash_config(**ROPE),
    "dflash with biases": small.dflash_config(**ROPE, attention_bias=True),
    "eagle": small.eagle_config(**ROPE),
    "no type": {key: value for key, value in small.llama_config().items() if key != "torch_dtype"},
    "float32": small.llama_config(torch_dtype="float32"),
    "float16": small.llama_config(torch_dtype="float16"),
    "linear rope": small.llama_config(rope_scaling={"rope_type": "linear", "factor": 2.0}),
    "llama3 rope": small.llama_config(
        rope_scaling={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 1024,
        }
    ),
    "yarn": small.llama_config(
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    ),
    "yarn without its origin": small.llama_config(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    assert VENV, "set GPUSERVE_ENGINE_VENV to a venv with SGLang for a CPU"
    root = tmp_path_factory.mktemp("configs")
    for name, config in CONFIGS.items():
        (root / name).mkdir()
        (root / name / "config.json").write_text(json.dumps(config))
    env = {**os.environ, "PYTHONPATH": STANDINS, "ANSWERS": str(root / "answers.json"), "HF_HUB_OFFLINE": "1"}
    script = str(Path(__file__).with_name("ask_engine.py"))
    command = [f"{VENV}/bin/python", script, *(str(root / name) for name in CONFIGS)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((root / "answers.json").read_text())
    return {Path(path).name: answer for path, answer in told.items()}


@pytest.fixture(scope="module")
def request_of_engine() -> Request:
    return Request(read_engine(site_packages_of(Path(VENV))).version, "EAGLE3")


def layout(config: Config, request: Request) -> layouts.Layout:
    if config.architecture == "DFlashDraftModel":
        return layouts.dflash(config, len(dflash.layer_ids(config) or ()))
    if config.architecture == "LlamaForCausalLMEagle":
        return layouts.llama_eagle(config)
    make = layouts.mla_eagle3 if config.architecture == "Eagle3DeepseekV2ForCausalLM" else layouts.llama_eagle3
    return make(config, request, sizes.states(config, request), sizes.target_width(config))


DRAFTERS = [name for name, config in CONFIGS.items() if config["architectures"] != ["LlamaForCausalLM"]]


@pytest.mark.parametrize("name", DRAFTERS)
def test_parameters(name: str, answers: dict[str, dict[str, Any]], request_of_engine: Request) -> None:
    ours = {}
    for parameter, held in layout(Config(CONFIGS[name], name), request_of_engine).parameters.items():
        shapes = list(held.pieces.values())
        ours[parameter] = [sum(shape[0] for shape in shapes), *shapes[0][1:]]
    theirs = answers[name]["parameters"]
    if name == "eagle":
        # Made, never loaded, and replaced by the base's.
        theirs.pop("lm_head.weight")
    assert ours == theirs


@pytest.mark.parametrize("name", CONFIGS)
def test_context_and_type(name: str, answers: dict[str, dict[str, Any]], request_of_engine: Request) -> None:
    config = Config(CONFIGS[name], name)
    ours = {"context": config.text_part.context(), "dtype": resolved_dtype(config, request_of_engine)}
    assert ours == {key: answers[name][key] for key in ours}
