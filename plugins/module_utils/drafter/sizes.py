# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the drafter's widths fit the base's, and do its weights belong to its config? The weights decide."""

from __future__ import annotations

from collections.abc import Mapping

from ..checkpoint.config import MAX_LAYERS, Config
from ..checkpoint.safetensors import Tensor
from ..checks import Check
from .layouts import Layout, Shape, is_table, llama_eagle3, mla_eagle3
from .pair import LLAMA, MLA, Pair, Request, skipped, verdict

# States of the base that are put side by side when the config does not say how many.
DEFAULT_STATES = 3
# Tensors without a parameter that nobody misses: buffers that the engine computes itself.
HARMLESS = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")
# Endings of tensors that only a quantised layer has.
QUANTISED = ("weight_packed", "weight_scale", "weight_scale_inv", "qweight", "scales", "weight_zero_point")


def target_width(config: Config) -> int:
    """Width of the base that the drafter was made for. Raises ConfigError when neither key is a size."""
    return config.integer("target_hidden_size") or config.need("hidden_size")


def layer_ids(config: Config) -> tuple[int, ...] | None:
    """The ids that the base is told to capture: only those nested in eagle_config are read. Raises ConfigError.

    SGLang 0.5.9 srt/model_executor/model_runner.py:345, 0.5.20 srt/model_executor/model_runner_components/
    spec_aux_hidden_state.py.
    """
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
    return config.integer("num_aux_hidden_states", maximum=MAX_LAYERS) or len(layer_ids(config) or ()) or DEFAULT_STATES


def hidden_size(pair: Pair) -> list[Check]:
    """The drafter takes states as wide as the base makes them; its own width may be another one."""
    request, config = pair.request, pair.drafter.config
    base = pair.base.config.text_part.need("hidden_size")
    own = config.need("hidden_size")
    source = request.where("srt/models/llama_eagle3.py")
    drafter = request.variable("drafter")
    if (
        config.architecture == LLAMA
        and config.has("target_hidden_size")
        and config.integer("target_hidden_size") is None
    ):
        fix = f"remove target_hidden_size from the config.json of {drafter}, or give it the base's hidden size"
        expected = f"a number as target_hidden_size in {config.where}, or no such key"
        return [Check("drafter.hidden_size", "fail", expected, "null", fix, source)]
    target = target_width(config)
    key = "target_hidden_size" if config.integer("target_hidden_size") else "hidden_size"
    found = f"{key} {target} in {config.where} ({pair.drafter.source.label})"
    return [
        verdict(
            "drafter.hidden_size",
            target == base,
            f"a drafter for hidden size {base}, that of the base {pair.base.source.label}",
            found if target == own else f"{found}, its own hidden size is {own}",
            f"set {drafter} to a drafter made for this base, or correct {request.variable('base')}",
            source,
        )
    ]


def first_projection(pair: Pair) -> list[Check]:
    """fc leads from the states of the base, side by side, to the drafter's width."""
    request, config = pair.request, pair.drafter.config
    own, target = config.need("hidden_size"), target_width(config)
    count = states(config, request)
    source = request.where("srt/models/llama_eagle3.py")
    fix = f"set {request.variable('drafter')} to a drafter whose config.json belongs to its weights"
    if count == 1 and target == own:
        # The engine takes a state as wide as the embedding for one that has been through fc already.
        found = f"one state of width {target}, which the engine hands on without fc"
        return [Check("drafter.fc", "warn", f"states wider than {own}, so that fc is used", found, fix, source)]
    if quantisation(config):
        return [skipped("drafter.fc", "fc.weight of the right shape", "the drafter is quantised", source)]
    fc = pair.drafter.tensors.get("fc.weight")
    wanted = [own, count * target]
    return [
        verdict(
            "drafter.fc",
            fc is not None and list(fc.shape) == wanted,
            f"fc.weight {wanted}: hidden size {own} from {count} states of width {target}",
            f"fc.weight {list(fc.shape)}" if fc is not None else "no fc.weight",
            fix,
            source,
        )
    ]


def eagle3_layout(pair: Pair) -> Layout:
    """What the engine makes for this EAGLE-3 drafter. Raises ConfigError."""
    request, config = pair.request, pair.drafter.config
    make = mla_eagle3 if config.architecture == MLA else llama_eagle3
    return make(config, request, states(config, request), target_width(config))


def quantisation(config: Config) -> str | None:
    """The method that the checkpoint itself declares, None when it declares none. Raises ConfigError."""
    for key in ("quantization_config", "compression_config"):
        declared = config.mapping(key)
        if declared is not None:
            return declared.text("quant_method") or "unnamed"
    return None


def coverage(pair: Pair, layout: Layout) -> list[Check]:
    """Each parameter has its tensors, of its shape; each tensor has a parameter. The engine says neither."""
    request = pair.request
    source = request.where(f"{layout.file} load_weights")
    ids = ("drafter.tensors", "drafter.shapes", "drafter.unused_tensors")
    method = quantisation(pair.drafter.config)
    tensors = pair.drafter.tensors
    if method is not None and any(name.endswith(QUANTISED) for name in tensors):
        reason = f"the drafter is quantised ({method}); names and shapes depend on the method"
        return [skipped(id, "a tensor for each parameter", reason, source) for id in ids]
    taken: dict[tuple[str, str], Tensor] = {}
    unused = []
    for name, tensor in tensors.items():
        if is_table(name):
            continue
        place = layout.place(name)
        if place is None:
            unused.append(name)
        else:
            taken[place] = tensor
    needed = {
        (parameter, piece): (shape, held.shared)
        for parameter, held in layout.parameters.items()
        for piece, shape in held.pieces.items()
    }
    missing = [place for place, (dummy, shared) in needed.items() if not shared and place not in taken]
    wrong = [(place, tensor, needed[place][0]) for place, tensor in taken.items() if tensor.shape != needed[place][0]]
    noticed = [name for name in unused if not name.endswith(HARMLESS)]
    drafter = request.variable("drafter")
    return [
        verdict(
            ids[0],
            not missing,
            f"a tensor for each of the {len(needed)} parts that SGLang {request.engine} makes of this drafter",
            _missing(missing, noticed) if missing else f"{len(tensors)} tensors, none missing",
            f"set {drafter} to a drafter in the layout of this release, or install the release it was made for",
            source,
        ),
        verdict(
            ids[1],
            not wrong,
            "shapes that belong to config.json",
            _wrong(wrong) if wrong else f"{len(taken)} tensors of the right shape",
            f"set {drafter} to a drafter whose config.json belongs to its weights",
            source,
        ),
        verdict(
            ids[2],
            not noticed,
            "a use for each tensor",
            f"{len(noticed)} that the engine passes over: {_some(noticed)}" if noticed else "each tensor is used",
            "expect a lower accept length, or take a release or a drafter in which they are used",
            source,
            otherwise="warn",
        ),
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" and more" if len(names) > 3 else "")


def _missing(places: list[tuple[str, str]], unused: list[str]) -> str:
    told = [f"{parameter} ({piece})" if piece else parameter for parameter, piece in places]
    found = f"nothing for {len(told)} of them: {_some(told)}"
    return f"{found}; tensors of other names: {_some(unused)}" if unused else found


def _wrong(found: list[tuple[tuple[str, str], Tensor, Shape]]) -> str:
    (parameter, piece), tensor, shape = found[0]
    where = f"{parameter} ({piece})" if piece else parameter
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{where} {list(tensor.shape)} where {list(shape)} belongs{more}"


def split(pair: Pair) -> list[Check]:
    """Each part that tensor parallelism splits can be split. What it replicates is of no matter."""
    request = pair.request
    checks = []
    for role, config, id in (
        ("base", pair.base.config.text_part, "base.tensor_parallel"),
        ("drafter", pair.drafter.config.text_part, "drafter.tensor_parallel"),
    ):
        uneven = _uneven(config, request, drafter=role == "drafter")
        checks.append(
            verdict(
                id,
                not uneven,
                f"heads, inner width and vocabulary of the {role} that {request.tp_size} GPUs can share",
                "; ".join(uneven) if uneven else "each can be split",
                f"set {request.variable('tp_size')} to a number that divides them",
                request.where("srt/models/llama.py LlamaAttention, srt/layers/vocab_parallel_embedding.py"),
            )
        )
    return checks


def _uneven(config: Config, request: Request, drafter: bool) -> list[str]:
    tp = request.tp_size
    sizes: Mapping[str, int | None] = {
        "num_attention_heads": config.integer("num_attention_heads"),
        "intermediate_size": config.integer("intermediate_size") if drafter else None,
    }
    found = [f"{key} {size}" for key, size in sizes.items() if size is not None and size % tp]
    mla = config.integer("kv_lora_rank") is not None
    shared = config.integer("num_key_value_heads")
    if shared is not None and not mla and shared % tp and tp % shared:
        found.append(f"num_key_value_heads {shared}")
    vocab = config.integer("vocab_size")
    # The engine pads a vocabulary to a multiple of 64 before it splits it.
    if vocab is not None and -(-vocab // 64) * 64 % tp:
        found.append(f"vocab_size {vocab}, padded to {-(-vocab // 64) * 64}")
    if drafter and config.architecture == MLA and request.since("0.5.15") and config.need("hidden_size") % tp:
        found.append(f"hidden_size {config.need('hidden_size')}")
    return found
