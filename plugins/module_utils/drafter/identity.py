# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is this drafter of a kind that the algorithm loads?"""

from __future__ import annotations

from ..checks import Check
from ..engine.algorithms import known_algorithms, takes_any_case
from .pair import Pair, Request, skipped, verdict

# Which classes the engine can load as a drafter, for which algorithm, and since when.
# SGLang EntryClass of srt/models/llama_eagle3.py, kimi_k25_eagle3.py, llama_eagle.py, qwen2_eagle.py,
# mistral_large_3_eagle.py, mistral_eagle.py (0.5.11), dflash.py; read in each release from 0.4.6.post5 to 0.5.23.
DRAFTERS: dict[str, tuple[str, str]] = {
    "LlamaForCausalLMEagle3": ("EAGLE3", "0.4.6"),
    "Eagle3DeepseekV2ForCausalLM": ("EAGLE3", "0.5.12"),
    "LlamaForCausalLMEagle": ("EAGLE", "0.4.6"),
    "Qwen2ForCausalLMEagle": ("EAGLE", "0.4.6"),
    "MistralLarge3ForCausalLMEagle": ("EAGLE", "0.5.6"),
    "MistralForCausalLMEagle": ("EAGLE", "0.5.11"),
    "DFlashDraftModel": ("DFLASH", "0.5.11"),
}
# Algorithms whose drafter must be one of the classes above; STANDALONE and the built-in heads of EAGLE take a base.
OWN_CLASS = ("EAGLE3", "DFLASH")


def algorithm(request: Request) -> list[Check]:
    """The engine of this version knows the algorithm, spelt as it is."""
    known = known_algorithms(request.engine)
    name = request.algorithm
    spelt = name if takes_any_case(request.engine) is False else name.upper()
    return [
        verdict(
            "drafter.algorithm",
            spelt in known,
            f"one of {', '.join(known)}, which SGLang {request.engine} knows",
            f"{request.variable('algorithm')} {name!r}",
            f"set {request.variable('algorithm')} to one of {', '.join(known)}",
            request.where("srt/speculative/spec_info.py"),
        )
    ]


def architecture(pair: Pair) -> list[Check]:
    """The drafter's class is one that this engine loads for this algorithm."""
    request, config = pair.request, pair.drafter.config
    name = config.architecture
    source = request.where("srt/models/registry.py")
    method = request.method
    if config.has("speculators_config") or config.has("speculators_model_type"):
        fits = [known for known, (family, dummy) in DRAFTERS.items() if family == method]
        return [
            Check(
                "drafter.architecture",
                "fail",
                f"a checkpoint in the engine's own layout, architectures {' or '.join(fits) or method}",
                f"a speculators checkpoint ({name or 'no architectures'})",
                f"set {request.variable('drafter')} to this drafter converted for SGLang (the values of"
                " transformer_layer_config at the top level, and tensors named as SGLang names them)",
                source,
            )
        ]
    known = DRAFTERS.get(name or "")
    if known is None:
        if method in OWN_CLASS:
            fits = [drafter for drafter, (family, dummy) in DRAFTERS.items() if family == method]
            fix = f"set {request.variable('drafter')} to a drafter made for {method}"
            expected = f"{' or '.join(fits)} as architectures of the drafter, for {method}"
            return [Check("drafter.architecture", "fail", expected, name or "none", fix, source)]
        return [skipped("drafter.architecture", f"a drafter for {method}", f"{name} is not known here", source)]
    family, since = known
    if family != method:
        found = f"{request.algorithm} with {name}, a drafter for {family}"
        fix = f"set {request.variable('algorithm')} to {family}"
        # EAGLE accepts an EAGLE-3 drafter without a word: it serves, and nothing is accepted.
        expected = f"the algorithm that {name} is made for, {family}"
        return [Check("drafter.architecture", "fail", expected, found, fix, source)]
    return [
        verdict(
            "drafter.architecture",
            request.since(since),
            f"SGLang {since} or later for {name}",
            f"SGLang {request.engine}",
            f"install SGLang {since} or later, or take a drafter of another class",
            source,
        )
    ]
