# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the base's layers an EAGLE-3 drafter is really fed with.

Ids in a drafter's config count layer outputs, or layer inputs, and nothing in the file says which. The engine adds one
on most bases (it captures the input of layer ``id + 1``), and on DeepSeek-family bases decides by the first id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .pair import Request

# Bases whose capture is DeepseekV2ForCausalLM's, inherited or delegated to. SGLang 0.5.23 srt/models/deepseek_v2.py,
# kimi_k25.py, mistral_large_3.py, glm4_moe_lite.py (its own copy of the rule).
DEEPSEEK_FAMILY = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
    }
)
# Bases that can also capture what comes out of their last layer, and the first version in which they do.
# SGLang srt/models/gemma3_causal.py and gemma4_causal.py 0.5.12, gpt_oss.py 0.5.17.
LAST_OUTPUT_SINCE = {
    "Gemma3ForCausalLM": "0.5.12",
    "Gemma3ForConditionalGeneration": "0.5.12",
    "Gemma4ForCausalLM": "0.5.12",
    "GptOssForCausalLM": "0.5.17",
}


@dataclass(frozen=True)
class Capture:
    """``asked``: the layers before which the base's state is to be taken; ``taken``: those that exist, once each."""

    asked: tuple[int, ...]
    taken: tuple[int, ...]
    shifted: bool


def captured(ids: Sequence[int] | None, base: str, layers: int, request: Request) -> Capture:
    """What the base ``base`` with ``layers`` layers captures for the ids of a drafter's config (None when it has none).

    Sources: set_eagle3_layers_to_capture in SGLang srt/models/llama.py (0.4.6 to 0.5.23), deepseek_v2.py (from 0.5.13
    it adds one only when the first id is 1), gpt_oss.py (from 0.5.17 it adds none when the ids reach the number of
    layers).
    """
    asked: tuple[int, ...]
    if ids is None:
        asked, shifted = (2, layers // 2, layers - 3), False
    else:
        as_given = (base in DEEPSEEK_FAMILY and request.since("0.5.13") and (not ids or ids[0] != 1)) or (
            base == "GptOssForCausalLM" and request.since("0.5.17") and bool(ids) and max(ids) == layers
        )
        shifted = not as_given
        asked = tuple(ids) if as_given else tuple(layer + 1 for layer in ids)
    last = LAST_OUTPUT_SINCE.get(base)
    limit = layers + 1 if last is not None and request.since(last) else layers
    return Capture(asked, tuple(sorted({layer for layer in asked if 0 <= layer < limit})), shifted)
