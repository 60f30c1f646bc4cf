# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the drafter's widths fit the base's? The config and the weights are both asked; the weights decide."""

from __future__ import annotations

from ..checkpoint.config import Config
from ..checks import Check
from .pair import Pair, Request, verdict

LLAMA = "LlamaForCausalLMEagle3"
MLA = "Eagle3DeepseekV2ForCausalLM"
# States of the base that are put side by side when the config does not say how many.
DEFAULT_STATES = 3


def target_width(config: Config) -> int:
    """Width of the base that the drafter was made for. Raises ConfigError when neither key is a size."""
    return config.integer("target_hidden_size") or config.need("hidden_size")


def layer_ids(config: Config) -> tuple[int, ...] | None:
    """The ids that the base is told to capture: only those nested in eagle_config are read. Raises ConfigError."""
    nested = config.mapping("eagle_config")
    return nested.integers("eagle_aux_hidden_state_layer_ids") if nested is not None else None


def states(config: Config, request: Request) -> int:
    """How many states of the base the drafter's first projection takes side by side.

    SGLang srt/models/llama_eagle3.py: a literal 3 up to 0.5.11, then num_aux_hidden_states, then the number of ids,
    then 3; kimi_k25_eagle3.py (0.5.12): the number of ids, nested or at the top, then 3.
    """
    if config.architecture == MLA:
        ids = layer_ids(config)
        if ids is None:
            ids = config.integers("eagle_aux_hidden_state_layer_ids")
        return DEFAULT_STATES if ids is None else len(ids)
    if not request.since("0.5.12"):
        return DEFAULT_STATES
    return config.integer("num_aux_hidden_states") or len(layer_ids(config) or ()) or DEFAULT_STATES


def hidden_size(pair: Pair) -> list[Check]:
    """The drafter takes states as wide as the base makes them."""
    request, config = pair.request, pair.drafter.config
    base = pair.base.config.text_part.need("hidden_size")
    own, target = config.need("hidden_size"), target_width(config)
    key = "target_hidden_size" if config.integer("target_hidden_size") else "hidden_size"
    checks = [
        verdict(
            "drafter.hidden_size",
            target == base,
            f"a drafter for hidden size {base}, that of the base {pair.base.source.label}",
            f"{key} {target} in {config.where} ({pair.drafter.source.label})",
            f"set {request.variable('drafter')} to a drafter made for this base, or correct {request.variable('base')}",
            request.where("srt/models/llama_eagle3.py"),
        )
    ]
    fc = pair.drafter.tensors.get("fc.weight")
    count = states(config, request)
    expected = [own, count * target]
    checks.append(
        verdict(
            "drafter.fc",
            fc is not None and list(fc.shape) == expected,
            f"fc.weight {expected}: hidden size {own} from {count} states of width {target}",
            f"fc.weight {list(fc.shape)}" if fc is not None else "no fc.weight",
            f"set {request.variable('drafter')} to a drafter whose config.json belongs to its weights",
            request.where("srt/models/llama_eagle3.py"),
        )
    )
    return checks
