# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run by the engine's own Python: what SGLang makes of each config.json named on the command line, as one JSON object.

For a drafter the names and shapes of its parameters; for every config the context and the type that are derived.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

MODULES = {
    "LlamaForCausalLMEagle3": "llama_eagle3",
    "Eagle3DeepseekV2ForCausalLM": "kimi_k25_eagle3",
    "DFlashDraftModel": "dflash",
    "LlamaForCausalLMEagle": "llama_eagle",
}


def start(model: str) -> None:
    """As much of the engine as a model's constructor asks for: its arguments and a group of one process."""
    from sglang.srt.distributed import parallel_state
    from sglang.srt.server_args import prepare_server_args, set_global_server_args_for_scheduler

    arguments = prepare_server_args(["--model-path", model, "--device", "cpu"])
    arguments.resolve_once()
    set_global_server_args_for_scheduler(arguments)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    parallel_state.init_distributed_environment(1, 0, address, 0, "gloo")
    parallel_state.initialize_model_parallel(1)


def config_of(values: dict[str, Any]) -> Any:
    """The config as transformers reads it; classes of its own are not needed for a drafter."""
    from transformers import AutoConfig, PretrainedConfig

    known = values.get("model_type") in ("llama", "qwen3")
    config = AutoConfig.for_model(**values) if known else PretrainedConfig(**values)
    config.draft_vocab_size = values.get("draft_vocab_size")
    return config


def told(values: dict[str, Any]) -> dict[str, Any]:
    import torch
    from sglang.srt.configs.model_config import _get_and_verify_dtype
    from sglang.srt.utils.hf_transformers.common import get_context_length, get_hf_text_config

    text = get_hf_text_config(config_of(values))
    answer: dict[str, Any] = {
        "context": get_context_length(text),
        "dtype": str(_get_and_verify_dtype(text, "auto")).removeprefix("torch."),
    }
    architecture = values["architectures"][0]
    if architecture in MODULES:
        model = getattr(importlib.import_module(f"sglang.srt.models.{MODULES[architecture]}"), architecture)
        with torch.device("meta"):
            made = model(config_of(values))
        answer["parameters"] = {name: list(value.shape) for name, value in made.named_parameters()}
    return answer


def main() -> None:
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    start(sys.argv[1])
    answers = {path: told(json.loads(Path(path, "config.json").read_text())) for path in sys.argv[1:]}
    Path(os.environ["ANSWERS"]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
