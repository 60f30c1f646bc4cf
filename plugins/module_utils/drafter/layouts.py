# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters that the engine makes for a drafter, and where it puts each tensor of a checkpoint.

The engine skips a tensor that it has no parameter for, and leaves a parameter without a tensor as it was allocated;
both without an error. So each layout here repeats the engine's own naming, and the comparison finds what it would not
say. Shapes are those of the whole model (TP 1), [rows, columns] as in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..checkpoint.config import Config
from .pair import Request

Shape = tuple[int, ...]
# Tensors that are read for something else than a parameter, or known to be passed over on purpose.
TABLES = ("d2t", "t2d")
QKV = {".q_proj": (".qkv_proj", "q"), ".k_proj": (".qkv_proj", "k"), ".v_proj": (".qkv_proj", "v")}
GATE_UP = {".gate_proj": (".gate_up_proj", "gate"), ".up_proj": (".gate_up_proj", "up")}


@dataclass(frozen=True)
class Parameter:
    """One parameter: the shape of each piece that a tensor brings (the piece ``""`` is the whole)."""

    pieces: Mapping[str, Shape]
    # The base's own is used, whether or not the drafter ships one.
    shared: bool = False


@dataclass(frozen=True)
class Layout:
    """What one class of drafter holds. ``place`` leads from a tensor's name to parameter and piece, or to None."""

    file: str
    parameters: Mapping[str, Parameter]
    place: Callable[[str], tuple[str, str] | None]


def is_table(name: str) -> bool:
    """The tensor is one of the vocabulary tables, as the engine recognises them: by a part of the name."""
    return any(table in name for table in TABLES)


def stacked(name: str, pieces: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """The name of the parameter that joins several tensors, and the piece; the name itself when it is none of them."""
    for part, (joined, piece) in pieces.items():
        if part in name:
            return name.replace(part, joined), piece
    return name, ""


def heads(config: Config) -> tuple[int, int, int]:
    """Query heads, key-value heads and the size of one. Raises ConfigError.

    SGLang srt/models/llama.py LlamaAttention: head_dim is taken from the config when it is there.
    """
    query = config.need("num_attention_heads")
    key_value = config.integer("num_key_value_heads") or query
    return query, key_value, config.integer("head_dim") or config.need("hidden_size") // query


def attention(prefix: str, config: Config, width: int, out_bias: bool, in_bias: bool) -> dict[str, Parameter]:
    """Grouped-query attention that reads states of ``width``. Raises ConfigError."""
    query, key_value, size = heads(config)
    hidden = config.need("hidden_size")
    rows = {"q": query * size, "k": key_value * size, "v": key_value * size}
    parameters = {
        f"{prefix}qkv_proj.weight": Parameter({piece: (count, width) for piece, count in rows.items()}),
        f"{prefix}o_proj.weight": Parameter({"": (hidden, query * size)}),
    }
    if in_bias:
        parameters[f"{prefix}qkv_proj.bias"] = Parameter({piece: (count,) for piece, count in rows.items()})
    if out_bias:
        parameters[f"{prefix}o_proj.bias"] = Parameter({"": (hidden,)})
    return parameters


def mlp(prefix: str, hidden: int, inner: int) -> dict[str, Parameter]:
    """A gated MLP."""
    return {
        f"{prefix}gate_up_proj.weight": Parameter({"gate": (inner, hidden), "up": (inner, hidden)}),
        f"{prefix}down_proj.weight": Parameter({"": (hidden, inner)}),
    }


def norm(name: str, size: int) -> dict[str, Parameter]:
    """An RMS norm's weight."""
    return {f"{name}.weight": Parameter({"": (size,)})}


def embedding_and_head(config: Config, request: Request, head: int, target: int) -> dict[str, Parameter]:
    """embed_tokens and lm_head of an EAGLE-3 drafter: which of them are its own, and which the base's. Raises
    ConfigError.

    SGLang srt/models/llama.py set_embed: the drafter keeps its embedding only when target_hidden_size is set and
    differs from hidden_size; llama_eagle3.py: a null draft_vocab_size takes the base's head (0.5.2).
    """
    hidden, vocab = config.need("hidden_size"), config.need("vocab_size")
    keeps = config.integer("target_hidden_size") is not None and target != hidden
    parameters = {"model.embed_tokens.weight": Parameter({"": (vocab, hidden)}, shared=not keeps)}
    if not config.flag("tie_word_embeddings"):
        from_base = config.integer("draft_vocab_size") is None
        parameters["lm_head.weight"] = Parameter({"": (head, hidden)}, shared=from_base)
    return parameters


def llama_eagle3(config: Config, request: Request, count: int, target: int) -> Layout:
    """LlamaForCausalLMEagle3 with ``count`` states of width ``target``. Raises ConfigError.

    SGLang srt/models/llama_eagle3.py, read in 0.4.9 to 0.5.23: ``midlayer`` up to 0.5.11, ``layers.N`` with the old
    name as an alias from 0.5.12; the norms before fc from 0.5.12, norm_before_fc from 0.5.17.
    """
    hidden = config.need("hidden_size")
    inner = config.need("intermediate_size_mlp" if config.text("model_type") == "llama4_text" else "intermediate_size")
    many = request.since("0.5.12")
    layers = config.layers if many else 1
    bias = config.flag("attention_bias") or config.flag("bias")
    parameters = {"model.fc.weight": Parameter({"": (hidden, count * target)}), **norm("model.norm", hidden)}
    if config.flag("bias"):
        parameters["model.fc.bias"] = Parameter({"": (hidden,)})
    if many and uses_fc_norm(config):
        for chunk in range(count):
            parameters.update(norm(f"model.fc_norm.{chunk}", target))
    if request.since("0.5.17") and normalises_before_fc(config):
        parameters.update(norm("model.input_norm", count * target))
    for layer in range(layers):
        at = f"model.layers.{layer}." if many else "model.midlayer."
        width = 2 * hidden if layer == 0 else hidden
        parameters.update(attention(f"{at}self_attn.", config, width, out_bias=bias, in_bias=False))
        parameters.update(mlp(f"{at}mlp.", hidden, inner))
        for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
            parameters.update(norm(at + name, hidden))
    head = config.integer("draft_vocab_size") or config.need("vocab_size")
    parameters.update(embedding_and_head(config, request, head, target))
    aliases = {"midlayer": "layers.0"}
    aliases.update({f"aux_norm_{part}": f"fc_norm.{number}" for number, part in enumerate(("low", "mid", "high"))})

    def place(name: str) -> tuple[str, str] | None:
        for old, new in aliases.items() if many else ():
            name = name.replace(old, new)
        name, piece = stacked(name, {**QKV, **GATE_UP})
        for candidate in (name, f"model.{name}"):
            if candidate in parameters:
                return candidate, piece
        return None

    return Layout("srt/models/llama_eagle3.py", parameters, place)


def mla_eagle3(config: Config, request: Request, count: int, target: int) -> Layout:
    """Eagle3DeepseekV2ForCausalLM with ``count`` states of width ``target``. Raises ConfigError.

    SGLang srt/models/kimi_k25_eagle3.py (0.5.12 to 0.5.23): only ``layers.0.`` names, everything but lm_head under
    model.
    """
    hidden = config.need("hidden_size")
    query = config.need("num_attention_heads")
    q_rank, kv_rank = config.need("q_lora_rank"), config.need("kv_lora_rank")
    nope, rope = config.need("qk_nope_head_dim"), config.need("qk_rope_head_dim")
    value = config.need("v_head_dim")
    at = "model.midlayer."
    parameters = {
        "model.fc.weight": Parameter({"": (hidden, count * target)}),
        f"{at}self_attn.fused_qkv_a_proj_with_mqa.weight": Parameter(
            {"q": (q_rank, 2 * hidden), "kv": (kv_rank + rope, 2 * hidden)}
        ),
        f"{at}self_attn.q_b_proj.weight": Parameter({"": (query * (nope + rope), q_rank)}),
        f"{at}self_attn.kv_b_proj.weight": Parameter({"": (query * (nope + value), kv_rank)}),
        f"{at}self_attn.o_proj.weight": Parameter({"": (hidden, query * value)}),
        **norm(f"{at}self_attn.q_a_layernorm", q_rank),
        **norm(f"{at}self_attn.kv_a_layernorm", kv_rank),
        **mlp(f"{at}mlp.", hidden, config.need("intermediate_size")),
        **norm("model.norm", hidden),
    }
    if config.flag("bias"):
        parameters["model.fc.bias"] = Parameter({"": (hidden,)})
    if request.since("0.5.13") and uses_fc_norm(config):
        for chunk in range(count):
            parameters.update(norm(f"model.fc_norm.{chunk}", target))
    for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
        parameters.update(norm(at + name, hidden))
    head = config.integer("draft_vocab_size") or config.need("vocab_size")
    parameters.update(embedding_and_head(config, request, head, target))

    def place(name: str) -> tuple[str, str] | None:
        name = re.sub(r"^layers\.0\.", "midlayer.", name)
        if not name.startswith("lm_head."):
            name = f"model.{name}"
        name, piece = stacked(name, GATE_UP)
        for part, which in (("q_a_proj", "q"), ("kv_a_proj_with_mqa", "kv")):
            if part in name:
                name, piece = name.replace(part, "fused_qkv_a_proj_with_mqa"), which
                break
        return (name, piece) if name in parameters else None

    return Layout("srt/models/kimi_k25_eagle3.py", parameters, place)


def llama_eagle(config: Config) -> Layout:
    """LlamaForCausalLMEagle (EAGLE-1 and 2): one fc from two widths, its head and embedding the base's. Raises
    ConfigError.

    SGLang srt/models/llama_eagle.py, read in 0.5.20: ``model.`` is put before each name, lm_head tensors are passed
    over, the first layer has no input_layernorm.
    """
    hidden = config.need("hidden_size")
    bias = config.flag("attention_bias") or config.flag("bias")
    parameters = {
        "model.fc.weight": Parameter({"": (hidden, 2 * hidden)}),
        "model.fc.bias": Parameter({"": (hidden,)}),
        "model.embed_tokens.weight": Parameter({"": (config.need("vocab_size"), hidden)}, shared=True),
    }
    for layer in range(config.layers):
        at = f"model.layers.{layer}."
        parameters.update(attention(f"{at}self_attn.", config, hidden, out_bias=bias, in_bias=bias))
        parameters.update(mlp(f"{at}mlp.", hidden, config.need("intermediate_size")))
        parameters.update(norm(f"{at}post_attention_layernorm", hidden))
        if layer:
            parameters.update(norm(f"{at}input_layernorm", hidden))

    def place(name: str) -> tuple[str, str] | None:
        name, piece = stacked(f"model.{name}", {**QKV, **GATE_UP})
        return (name, piece) if name in parameters else None

    return Layout("srt/models/llama_eagle.py", parameters, place)


def dflash(config: Config, count: int) -> Layout:
    """DFlashDraftModel fed by ``count`` layers of the base. Raises ConfigError.

    SGLang srt/models/dflash.py, read in 0.5.11 to 0.5.23: a leading ``model.`` may be there or not; no embedding, no
    head.
    """
    hidden = config.need("hidden_size")
    bias = config.flag("attention_bias")
    dummy, dummy, size = heads(config)
    parameters = {
        "fc.weight": Parameter({"": (hidden, count * hidden)}),
        **norm("hidden_norm", hidden),
        **norm("norm", hidden),
    }
    for layer in range(config.layers):
        at = f"layers.{layer}."
        parameters.update(attention(f"{at}self_attn.", config, hidden, out_bias=bias, in_bias=bias))
        parameters.update(norm(f"{at}self_attn.q_norm", size))
        parameters.update(norm(f"{at}self_attn.k_norm", size))
        parameters.update(mlp(f"{at}mlp.", hidden, config.need("intermediate_size")))
        for name in ("input_layernorm", "post_attention_layernorm"):
            parameters.update(norm(at + name, hidden))

    def place(name: str) -> tuple[str, str] | None:
        name, piece = stacked(name, {**QKV, **GATE_UP})
        stripped = name[len("model.") :] if name.startswith("model.") else name
        return (stripped, piece) if stripped in parameters else None

    return Layout("srt/models/dflash.py", parameters, place)


def uses_fc_norm(config: Config) -> bool:
    """Each state of the base is normalised before fc."""
    return config.flag("fc_norm") or config.flag("use_aux_norm")


def normalises_before_fc(config: Config) -> bool:
    """All states are normalised together before fc; the nested key is read first."""
    nested = config.mapping("eagle_config")
    if nested is not None and nested.has("norm_before_fc"):
        return nested.flag("norm_before_fc")
    return config.flag("norm_before_fc")
