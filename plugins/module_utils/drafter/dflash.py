# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DFLASH: a block of tokens at once, from the states of some layers of the base."""

from __future__ import annotations

from ..checkpoint.config import Config
from ..checks import Check
from .capture import LAST_OUTPUT_SINCE
from .layouts import dflash
from .pair import Pair, skipped, verdict
from .sizes import coverage

# What the engine takes when neither the flag nor the config says. SGLang 0.5.20 srt/models/dflash.py.
DEFAULT_BLOCK = 16
FIRST_LAYER, LAST_LAYERS = 1, 3


def setting(config: Config, key: str, minimum: int = 1) -> int | None:
    """A number under dflash_config, else at the top level. Raises ConfigError.

    SGLang srt/speculative/dflash_utils.py parse_dflash_draft_config.
    """
    nested = config.mapping("dflash_config")
    if nested is not None and nested.has(key):
        return nested.integer(key, minimum)
    return config.integer(key, minimum)


def layer_ids(config: Config) -> tuple[int, ...] | None:
    """The base's layers that the drafter was trained on, or None. Raises ConfigError."""
    nested = config.mapping("dflash_config")
    if nested is not None and nested.has("target_layer_ids"):
        return nested.integers("target_layer_ids")
    return config.integers("target_layer_ids")


def chosen(layers: int, count: int) -> tuple[int, ...] | None:
    """The layers that the engine chooses by itself, None when the base has too few.

    SGLang srt/speculative/dflash_utils.py build_target_layer_ids.
    """
    if count == 1:
        return (layers // 2,)
    end = layers - LAST_LAYERS
    if end < FIRST_LAYER:
        return None
    return tuple(round(FIRST_LAYER + number * (end - FIRST_LAYER) / (count - 1)) for number in range(count))


def widths(pair: Pair) -> list[Check]:
    """Base and drafter are of one width: embedding, states and head are the base's."""
    request = pair.request
    base, own = pair.base.config.text_part.need("hidden_size"), pair.drafter.config.need("hidden_size")
    vocab, drafted = pair.base.config.text_part.need("vocab_size"), pair.drafter.config.integer("vocab_size")
    fix = f"set {request.variable('drafter')} to a drafter made for this base, or correct {request.variable('base')}"
    source = request.where("srt/models/dflash.py project_target_hidden")
    checks = [
        verdict(
            "drafter.hidden_size",
            base == own,
            f"a drafter for hidden size {base}, that of the base {pair.base.source.label}",
            f"hidden_size {own} in {pair.drafter.config.where} ({pair.drafter.source.label})",
            fix,
            source,
        )
    ]
    if drafted is not None:
        expected = f"vocab_size {vocab}, that of the base"
        found = f"vocab_size {drafted}"
        checks.append(verdict("drafter.vocab_size", drafted == vocab, expected, found, fix, source, otherwise="warn"))
    return checks


def target_layers(pair: Pair) -> list[Check]:
    """Each layer that the drafter reads exists, is captured, and was meant for a base of this depth."""
    request, config = pair.request, pair.drafter.config
    id, source = "drafter.target_layer_ids", request.where("srt/speculative/dflash_utils.py resolve_target_layer_ids")
    layers, own = pair.base.config.text_part.layers, config.layers
    base = pair.base.config.architecture or ""
    drafter = request.variable("drafter")
    trained = setting(config, "num_target_layers")
    checks = []
    if trained is not None:
        expected = f"a drafter made for a base of {layers} layers"
        fix = f"set {drafter} to a drafter made for this base"
        found = f"num_target_layers {trained}"
        checks.append(
            verdict("drafter.target_layers", trained == layers, expected, found, fix, source, otherwise="warn")
        )
    declared = layer_ids(config)
    ids = declared if declared is not None else chosen(layers, own)
    expected = f"layers of the base's {layers} whose output can be taken"
    fix = f"set dflash_config.target_layer_ids in the config.json of {drafter} to the layers it was trained on"
    if not ids:
        found = "an empty list" if declared is not None else f"none, and {layers} layers are too few to choose from"
        return [*checks, Check(id, "fail", expected, found, fix, source)]
    last = LAST_OUTPUT_SINCE.get(base)
    limit = layers if last is not None and request.since(last) else layers - 1
    outside = [layer for layer in ids if not 0 <= layer < limit]
    found = f"target_layer_ids {list(ids)}"
    if declared is None:
        found = f"the engine's own choice {list(ids)}"
    # Up to 0.5.17 the drafter's class checks the ids against its own depth when the base's is not in its config.
    if not outside and declared is not None and trained is None and not request.since("0.5.18") and max(ids) >= own:
        found += f" without num_target_layers, which SGLang {request.engine} then takes to be {own}"
        fix = f"add num_target_layers {layers} to dflash_config, or install SGLang 0.5.18 or later"
        return [*checks, Check(id, "fail", expected, found, fix, source)]
    found = f"{found}, {outside} of them outside" if outside else found
    return [*checks, verdict(id, not outside and len(set(ids)) == len(ids), expected, found, fix, source)]


def block(pair: Pair) -> list[Check]:
    """The block's size and the token that stands for an unknown one are set, and the base has that token."""
    request, config = pair.request, pair.drafter.config
    source = request.where("srt/speculative/dflash_utils.py parse_dflash_draft_config")
    size = setting(config, "block_size")
    checks = [
        verdict(
            "drafter.block_size",
            size is not None,
            "block_size in the drafter's config",
            f"block_size {size}" if size is not None else f"none: the engine takes {DEFAULT_BLOCK}",
            f"set {request.variable('num_draft_tokens')} to the block size that the drafter was trained with",
            source,
            otherwise="warn",
        )
    ]
    vocab = pair.base.config.text_part.need("vocab_size")
    mask = setting(config, "mask_token_id", minimum=0)
    id, expected = "drafter.mask_token", f"a mask token within the base's {vocab} ids"
    if mask is None:
        reason = "mask_token_id is not set: the engine looks for the token in the base's tokenizer, or adds it"
        return [*checks, skipped(id, expected, reason, source)]
    fix = f"set {request.variable('drafter')} to a drafter made for this base"
    return [*checks, verdict(id, mask < vocab, expected, f"mask_token_id {mask}", fix, source)]


def tensors(pair: Pair) -> list[Check]:
    """The weights belong to the config."""
    config = pair.drafter.config
    declared = layer_ids(config)
    own = config.layers
    nested = config.mapping("dflash_config")
    if nested is not None and nested.values.get("projector_type") is not None:
        reason = f"projector_type {nested.values['projector_type']!r} adds parameters that are not known here"
        return [skipped("drafter.tensors", "a tensor for each parameter", reason)]
    return coverage(pair, dflash(config, len(declared) if declared is not None else own))
