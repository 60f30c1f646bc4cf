# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules, applied to one pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..checkpoint.errors import CheckpointError, ConfigError, NotReadError
from ..checks import FAIL, SKIPPED, Check
from . import dflash, identity, layers, serving, sizes, tokens, vocabulary
from .layouts import llama_eagle
from .pair import Pair

T = TypeVar("T")
Rule = Callable[[Pair], list[Check]]
# A rule, and the check that stands for it when it cannot be applied.
Rules = Sequence[tuple[str, Rule]]


def _eagle3_tensors(pair: Pair) -> list[Check]:
    return sizes.coverage(pair, sizes.eagle3_layout(pair))


def _eagle_tensors(pair: Pair) -> list[Check]:
    return sizes.coverage(pair, llama_eagle(pair.drafter.config))


EAGLE3: Rules = (
    ("drafter.differs", identity.not_the_base),
    ("base.captures", identity.captures),
    ("drafter.hidden_size", sizes.hidden_size),
    ("drafter.layers", identity.layers),
    ("drafter.fc", sizes.first_projection),
    ("drafter.tensors", _eagle3_tensors),
    ("drafter.vocab_size", vocabulary.vocab_size),
    ("drafter.lm_head", vocabulary.head),
    ("drafter.d2t", vocabulary.table),
    ("drafter.aux_layer_ids", layers.aux_layer_ids),
    ("drafter.features", identity.features),
    ("drafter.dtype", serving.dtype),
)
EAGLE: Rules = (
    ("drafter.hidden_size", sizes.hidden_size),
    ("drafter.vocab_size", vocabulary.vocab_size),
    ("drafter.dtype", serving.dtype),
)
DFLASH: Rules = (
    ("drafter.differs", identity.not_the_base),
    ("base.captures", identity.captures),
    ("drafter.hidden_size", dflash.widths),
    ("drafter.target_layer_ids", dflash.target_layers),
    ("drafter.block_size", dflash.block),
    ("drafter.tensors", dflash.tensors),
    ("drafter.dtype", serving.dtype),
)
STANDALONE: Rules = (
    ("drafter.differs", identity.not_the_base),
    ("drafter.vocab_size", tokens.sizes),
)
# For every algorithm: what serving them together asks of both.
COMMON: Rules = (
    ("drafter.context", serving.context),
    ("drafter.quantization", serving.quantization),
    ("drafter.attention_backend", serving.attention_backend),
    ("drafter.tensor_parallel", sizes.split),
    ("drafter.special_tokens", tokens.special_ids),
    ("drafter.tokenizer", tokens.vocabulary_files),
    ("pair.trust_remote_code", identity.remote_code),
    ("drafter.made_for", identity.made_for),
)


def rules(pair: Pair) -> Rules:
    """The rules of the pair's algorithm; none when it has none here."""
    method, name = pair.request.method, pair.drafter.config.architecture
    if method == "EAGLE":
        if name not in identity.DRAFTERS:
            return (("drafter.mtp_layer", identity.built_in_head), *COMMON)
        plain: Rules = (("drafter.tensors", _eagle_tensors),) if name == "LlamaForCausalLMEagle" else ()
        return (*EAGLE, *plain, *COMMON)
    own = {"EAGLE3": EAGLE3, "DFLASH": DFLASH, "STANDALONE": STANDALONE}.get(method)
    return (*own, *COMMON) if own is not None else ()


def judge(pair: Pair) -> list[Check]:
    """The checks of one pair: the kind of drafter first, and what depends on it only where it is right."""
    fit = "a drafter that fits the base"
    checks = apply((("drafter.architecture", identity.architecture),), pair)
    if any(check.status == FAIL for check in checks):
        return [*checks, Check("drafter.fit", SKIPPED, fit, "not compared: it is not of a kind that is loaded")]
    found = rules(pair)
    if not found:
        return [*checks, Check("drafter.fit", SKIPPED, fit, f"no rules for {pair.request.method} are known here")]
    return checks + apply(found, pair)


def apply(found: Sequence[tuple[str, Callable[[T], list[Check]]]], subject: T) -> list[Check]:
    """The rules' checks of one subject. What cannot be read is one failed check; each rule that it stopped is
    skipped."""
    checks: list[Check] = []
    seen: set[str] = set()
    for id, rule in found:
        try:
            checks += rule(subject)
        except NotReadError as error:
            checks.append(Check(id, SKIPPED, error.expected, f"not compared: {error.found}"))
        except CheckpointError as error:
            if str(error) not in seen:
                seen.add(str(error))
                kind = "config" if isinstance(error, ConfigError) else "files"
                checks.append(Check(f"pair.{kind}", FAIL, error.expected, error.found, error.fix))
            checks.append(Check(id, SKIPPED, "a readable checkpoint", f"not compared: {error.found}"))
    return checks
