# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table: pairs of small checkpoints, each with its verdict per engine version.

A row names a family, what is changed about it, and what the checks must say. Valid pairs come first, then one mutation
for each rule.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.ask import Answer, Question, ask

from tests.fixtures import checkpoints as small

Config = dict[str, Any]
Edit = Callable[[small.Shapes], object]


@dataclass(frozen=True)
class Row:
    """One pair. ``verdicts``: for each engine version, the ids that fail and warn (all others must do neither)."""

    name: str
    family: str
    verdicts: Mapping[str, Mapping[str, str]]
    base: Config = field(default_factory=dict)
    drafter: Config = field(default_factory=dict)
    without: tuple[str, ...] = ()
    edit: Edit | None = None
    values: Mapping[str, bytes] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    base_files: Mapping[str, str] = field(default_factory=dict)
    options: Config = field(default_factory=dict)


FAMILIES: Mapping[str, tuple[str, Any, Any, Any]] = {
    "llama": ("EAGLE3", small.llama_config, small.llama_drafter_config, small.llama_drafter_shapes),
    "llama-layers": (
        "EAGLE3",
        small.llama_config,
        small.llama_drafter_config,
        lambda config: small.llama_drafter_shapes(config, "layers.0."),
    ),
    "kimi-mla": ("EAGLE3", small.kimi_config, small.mla_drafter_config, small.mla_drafter_shapes),
    "kimi-llama": ("EAGLE3", small.kimi_config, small.llama_drafter_config, small.llama_drafter_shapes),
    "dflash": ("DFLASH", small.llama_config, small.dflash_config, small.dflash_shapes),
    "eagle": ("EAGLE", small.llama_config, small.eagle_config, small.eagle_shapes),
    "standalone": ("STANDALONE", small.llama_config, small.llama_config, small.llama_base_shapes),
    "mtp": ("NEXTN", small.kimi_config, small.llama_config, small.llama_base_shapes),
}
FINE: Mapping[str, str] = {}


def fails(*ids: str) -> dict[str, str]:
    return dict.fromkeys(ids, "fail")


def warns(*ids: str) -> dict[str, str]:
    return dict.fromkeys(ids, "warn")


def renamed(old: str, new: str) -> Edit:
    """Tensors of another name."""

    def edit(shapes: small.Shapes) -> None:
        for name in list(shapes):
            if old in name:
                shapes[name.replace(old, new)] = shapes.pop(name)

    return edit


def table(ids: list[int]) -> dict[str, bytes]:
    """d2t and t2d that lead to these ids."""
    offsets = [id - position for position, id in enumerate(ids)]
    marks = bytes(int(id in set(ids)) for id in range(small.VOCAB))
    return {"d2t": struct.pack(f"<{len(ids)}q", *offsets), "t2d": marks}


def aux(*ids: int, **more: Any) -> Config:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids), **more}}


SPREAD = [2 * number for number in range(small.DRAFT_VOCAB)]
OUTSIDE = [*range(small.DRAFT_VOCAB - 1), small.VOCAB]
TWICE = [*range(small.DRAFT_VOCAB - 1), 0]
HALF = {"hidden_size": 32, "target_hidden_size": small.HIDDEN}
OWN_EMBEDDING: Edit = lambda shapes: shapes.update({"embed_tokens.weight": ("BF16", (small.VOCAB, 32))})  # noqa: E731
TRUST = {"trust_remote_code": True}

VALID = [
    Row(
        "llama", "llama", {"0.4.9": FINE, "0.5.2": FINE, "0.5.11": FINE, "0.5.12": FINE, "0.5.20": FINE, "0.5.23": FINE}
    ),
    Row("llama, table that spreads", "llama", {"0.5.20": FINE}, values=table(SPREAD)),
    Row("llama, own width", "llama", {"0.5.9": FINE, "0.5.20": FINE}, drafter=HALF, edit=OWN_EMBEDDING),
    Row(
        "llama, whole vocabulary without d2t",
        "llama",
        {"0.5.9": FINE, "0.5.20": FINE},
        drafter={"draft_vocab_size": small.VOCAB},
    ),
    Row(
        "llama, head of the base",
        "llama",
        {"0.4.9": fails("drafter.lm_head"), "0.5.2": FINE, "0.5.20": FINE},
        drafter={"draft_vocab_size": None},
        edit=lambda shapes: shapes.pop("lm_head.weight"),
    ),
    Row("llama, layers.0 names", "llama-layers", {"0.5.12": FINE, "0.5.20": FINE}),
    Row(
        "llama, model. prefix",
        "llama",
        {"0.5.20": FINE},
        edit=lambda shapes: shapes.update({"model.norm.weight": shapes.pop("norm.weight")}),
    ),
    Row(
        "llama, two layers",
        "llama",
        {"0.5.9": {**fails("drafter.layers"), **warns("drafter.unused_tensors")}, "0.5.12": FINE},
        drafter={"num_hidden_layers": 2},
        edit=lambda shapes: shapes.update(
            {
                name.replace("midlayer.", "layers.1."): (
                    dtype,
                    (shape[0], small.HIDDEN) if ".self_attn." in name and "o_proj" not in name else shape,
                )
                for name, (dtype, shape) in list(shapes.items())
                if name.startswith("midlayer.")
            }
        ),
    ),
    Row("llama, five states", "llama", {"0.5.12": FINE}, drafter=aux(0, 2, 3, 4, 5)),
    Row("llama, engine's own layers", "llama", {"0.5.20": FINE}, drafter={"eagle_config": None}),
    Row(
        "llama with fc_norm",
        "llama",
        {"0.5.12": FINE},
        drafter={"use_aux_norm": True},
        edit=lambda shapes: shapes.update(
            {f"aux_norm_{part}.weight": ("BF16", (small.HIDDEN,)) for part in ("low", "mid", "high")}
        ),
    ),
    Row("kimi with mla drafter", "kimi-mla", {"0.5.12": FINE, "0.5.13.post1": FINE, "0.5.20": FINE}, options=TRUST),
    Row("kimi with mla drafter on 2", "kimi-mla", {"0.5.20": FINE}, options={**TRUST, "tp_size": 2}),
    Row(
        "kimi with mla drafter of 3.1",
        "kimi-mla",
        {"0.5.12": warns("drafter.features", "drafter.unused_tensors"), "0.5.13.post1": FINE},
        drafter={"fc_norm": True, "norm_output": True},
        options=TRUST,
    ),
    Row(
        "kimi with mla drafter without draft_vocab_size",
        "kimi-mla",
        {"0.5.20": FINE},
        drafter={"draft_vocab_size": None},
        edit=lambda shapes: shapes.pop("lm_head.weight"),
        options=TRUST,
    ),
    Row("kimi with llama drafter", "kimi-llama", {"0.5.10": FINE, "0.5.20": FINE}, options=TRUST),
    Row(
        "kimi, draft backend of its own",
        "kimi-llama",
        {"0.5.20": FINE},
        options={**TRUST, "attention_backend": "trtllm_mla", "draft_attention_backend": "triton"},
    ),
    Row("dflash", "dflash", {"0.5.11": FINE, "0.5.20": FINE}),
    Row(
        "dflash, engine's own layers",
        "dflash",
        {"0.5.20": FINE},
        drafter={"dflash_config": {"mask_token_id": 5, "num_target_layers": small.LAYERS}},
    ),
    Row("eagle", "eagle", {"0.5.9": FINE, "0.5.20": FINE}),
    Row("eagle as NEXTN", "eagle", {"0.5.20": FINE}, options={"algorithm": "NEXTN"}),
    Row("lower case", "llama", {"0.5.11": fails("drafter.algorithm"), "0.5.12": FINE}, options={"algorithm": "eagle3"}),
    Row(
        "standalone of one family",
        "standalone",
        {"0.5.2": FINE, "0.5.20": FINE},
        drafter={"num_hidden_layers": 2, "hidden_size": 32},
        files={"tokenizer.json": "{}"},
        base_files={"tokenizer.json": "{}"},
    ),
    Row(
        "nextn with a head in the checkpoint",
        "mtp",
        {"0.5.20": FINE},
        drafter={"architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1},
        edit=lambda shapes: shapes.update({f"model.layers.{small.LAYERS}.eh_proj.weight": ("BF16", (1,))}),
        options=TRUST,
    ),
]

BROKEN = [
    Row(
        "another hidden size",
        "llama",
        {"0.4.9": fails("drafter.hidden_size"), "0.5.20": fails("drafter.hidden_size")},
        drafter={"hidden_size": 32},
    ),
    Row(
        "target size of another base",
        "llama",
        {"0.5.20": fails("drafter.hidden_size")},
        drafter={"hidden_size": 32, "target_hidden_size": 128},
        edit=OWN_EMBEDDING,
    ),
    Row("own width without an embedding", "llama", {"0.5.20": fails("drafter.tensors")}, drafter=HALF),
    Row("target size null", "llama", {"0.5.20": fails("drafter.hidden_size")}, drafter={"target_hidden_size": None}),
    Row(
        "fc of another base",
        "llama",
        {"0.5.20": fails("drafter.fc", "drafter.shapes")},
        edit=lambda shapes: shapes.update({"fc.weight": ("BF16", (small.HIDDEN, 3 * 32))}),
    ),
    Row(
        "fc for four states",
        "llama",
        {"0.5.9": fails("drafter.fc", "drafter.shapes", "drafter.aux_layer_ids"), "0.5.12": FINE},
        drafter=aux(1, 2, 3, 4),
    ),
    Row(
        "no fc",
        "llama",
        {"0.5.20": fails("drafter.fc", "drafter.tensors")},
        edit=lambda shapes: shapes.pop("fc.weight"),
    ),
    Row("one state", "llama", {"0.5.20": warns("drafter.fc")}, drafter=aux(3)),
    Row(
        "layers.0 names before 0.5.12",
        "llama-layers",
        {"0.5.9": {**fails("drafter.tensors"), **warns("drafter.unused_tensors")}, "0.5.12": FINE},
    ),
    Row(
        "unknown names",
        "llama",
        {"0.5.20": {**fails("drafter.tensors"), **warns("drafter.unused_tensors")}},
        edit=renamed("midlayer.", "decoder."),
    ),
    Row(
        "one tensor missing",
        "llama",
        {"0.5.20": fails("drafter.tensors")},
        edit=lambda shapes: shapes.pop("midlayer.mlp.up_proj.weight"),
    ),
    Row(
        "a bias that no one reads",
        "llama",
        {"0.5.20": warns("drafter.unused_tensors")},
        edit=lambda shapes: shapes.update({"midlayer.self_attn.q_proj.bias": ("BF16", (64,))}),
    ),
    Row(
        "a harmless buffer",
        "llama",
        {"0.5.20": FINE},
        edit=lambda shapes: shapes.update({"midlayer.self_attn.rotary_emb.inv_freq": ("F32", (8,))}),
    ),
    Row(
        "heads of another size",
        "llama",
        {"0.5.20": fails("drafter.shapes")},
        edit=lambda shapes: shapes.update({"midlayer.self_attn.q_proj.weight": ("BF16", (128, 2 * small.HIDDEN))}),
    ),
    Row(
        "qkv from one width",
        "llama",
        {"0.5.20": fails("drafter.shapes")},
        edit=lambda shapes: shapes.update({"midlayer.self_attn.k_proj.weight": ("BF16", (32, small.HIDDEN))}),
    ),
    Row(
        "mlp of another width",
        "llama",
        {"0.5.20": fails("drafter.shapes")},
        edit=lambda shapes: shapes.update({"midlayer.mlp.down_proj.weight": ("BF16", (small.HIDDEN, 96))}),
    ),
    Row(
        "base class as drafter",
        "llama",
        {"0.5.20": fails("drafter.architecture")},
        drafter={"architectures": ["LlamaForCausalLM"]},
    ),
    Row(
        "a class of another engine",
        "llama",
        {"0.5.20": fails("drafter.architecture")},
        drafter={"architectures": ["Eagle3Qwen3ForCausalLM"]},
    ),
    Row(
        "no model type",
        "llama",
        {"0.5.9": warns("drafter.model_type"), "0.5.20": fails("drafter.model_type")},
        without=("model_type",),
    ),
    Row("no class", "llama", {"0.5.20": fails("drafter.architecture")}, without=("architectures",)),
    Row("mla drafter before 0.5.12", "kimi-mla", {"0.5.11": fails("drafter.architecture")}, options=TRUST),
    Row(
        "EAGLE for an EAGLE-3 drafter",
        "llama",
        {"0.5.20": fails("drafter.architecture")},
        options={"algorithm": "EAGLE"},
    ),
    Row(
        "EAGLE3 for an EAGLE-1 drafter",
        "eagle",
        {"0.5.20": fails("drafter.architecture")},
        options={"algorithm": "EAGLE3"},
    ),
    Row("DFLASH before it existed", "dflash", {"0.5.9": fails("drafter.algorithm")}),
    Row(
        "an algorithm that does not exist",
        "llama",
        {"0.5.20": fails("drafter.algorithm")},
        options={"algorithm": "DDTREE"},
    ),
    Row(
        "speculators layout",
        "llama",
        {"0.5.20": fails("drafter.architecture")},
        drafter={
            "speculators_model_type": "eagle3",
            "architectures": ["Eagle3Speculator"],
            "transformer_layer_config": {},
        },
    ),
    Row(
        "vocabulary of another base on one GPU",
        "llama",
        {"0.5.20": warns("drafter.vocab_size", "drafter.t2d")},
        drafter={"vocab_size": 600},
    ),
    Row(
        "vocabulary of another base on two",
        "llama",
        {"0.5.20": {**fails("drafter.vocab_size"), **warns("drafter.t2d")}},
        drafter={"vocab_size": 640},
        options={"tp_size": 2},
    ),
    Row(
        "draft vocabulary of another base",
        "llama",
        {"0.5.20": {**fails("drafter.d2t"), **warns("drafter.vocab_size")}},
        drafter={"vocab_size": 600, "draft_vocab_size": 600},
    ),
    Row("no table", "llama", {"0.5.20": fails("drafter.d2t")}, edit=lambda shapes: shapes.pop("d2t")),
    Row(
        "table of another length",
        "llama",
        {"0.5.20": fails("drafter.d2t")},
        edit=lambda shapes: shapes.update({"d2t": ("I64", (100,))}),
    ),
    Row(
        "table of fractions",
        "llama",
        {"0.5.20": fails("drafter.d2t")},
        edit=lambda shapes: shapes.update({"d2t": ("F32", (small.DRAFT_VOCAB,))}),
        values={},
    ),
    Row("table that leads outside", "llama", {"0.5.20": fails("drafter.d2t")}, values=table(OUTSIDE)),
    Row("table with an id twice", "llama", {"0.5.20": warns("drafter.d2t_unique")}, values=table(TWICE)),
    Row(
        "tables that do not belong together",
        "llama",
        {"0.5.20": warns("drafter.t2d")},
        values={**table(SPREAD), "t2d": bytes([1] * 256 + [0] * 256)},
    ),
    Row(
        "no draft_vocab_size",
        "llama",
        {"0.5.20": fails("drafter.lm_head", "drafter.d2t", "drafter.shapes")},
        without=("draft_vocab_size",),
    ),
    Row(
        "head of the base and one of its own",
        "llama",
        {"0.5.20": warns("drafter.lm_head")},
        drafter={"draft_vocab_size": None},
    ),
    Row(
        "head of the base, other width",
        "llama",
        {"0.5.20": fails("drafter.lm_head")},
        drafter={**HALF, "draft_vocab_size": None},
        edit=lambda shapes: (OWN_EMBEDDING(shapes), shapes.pop("lm_head.weight")),
    ),
    Row(
        "tied and a head of its own",
        "llama",
        {"0.5.20": {**fails("drafter.lm_head"), **warns("drafter.unused_tensors")}},
        drafter={"tie_word_embeddings": True, "draft_vocab_size": small.VOCAB},
    ),
    Row(
        "a layer that the base does not have", "llama", {"0.5.20": fails("drafter.aux_layer_ids")}, drafter=aux(1, 3, 7)
    ),
    Row("a negative layer", "llama", {"0.5.20": fails("drafter.aux_layer_ids")}, drafter=aux(-3, 3, 5)),
    Row("a layer twice", "llama", {"0.5.20": fails("drafter.aux_layer_ids")}, drafter=aux(3, 3, 5)),
    Row("no layers", "llama", {"0.5.20": fails("drafter.aux_layer_ids")}, drafter=aux()),
    Row(
        "too few layers for the engine's own choice",
        "llama",
        {"0.5.20": fails("drafter.aux_layer_ids")},
        base={"num_hidden_layers": 4},
        drafter={"eagle_config": None},
    ),
    Row(
        "ids at the top level only",
        "llama",
        {"0.5.20": warns("drafter.aux_layer_convention")},
        drafter={"eagle_config": None, "eagle_aux_hidden_state_layer_ids": [1, 3, 5]},
    ),
    Row(
        "last layer of gemma",
        "llama",
        {"0.5.20": FINE},
        base={"architectures": ["Gemma3ForCausalLM"]},
        drafter=aux(1, 3, 7),
    ),
    Row(
        "ids of gpt-oss with the last state",
        "llama",
        {"0.5.20": FINE, "0.5.16": fails("drafter.aux_layer_ids")},
        base={"architectures": ["GptOssForCausalLM"]},
        drafter=aux(2, 4, 8),
    ),
    Row(
        "kimi, ids that start with 2",
        "kimi-mla",
        {"0.5.12": warns("drafter.aux_layer_convention"), "0.5.13.post1": warns("drafter.aux_layer_convention")},
        drafter=aux(2, 4, 5),
        options=TRUST,
    ),
    Row(
        "kimi, last layer by the old rule",
        "kimi-mla",
        {"0.5.12": fails("drafter.aux_layer_ids"), "0.5.13.post1": warns("drafter.aux_layer_convention")},
        drafter=aux(2, 4, 7),
        options=TRUST,
    ),
    Row(
        "kimi, no ids",
        "kimi-mla",
        {"0.5.20": warns("drafter.aux_layer_convention")},
        drafter={"eagle_config": None},
        options=TRUST,
    ),
    Row(
        "norm_before_fc before 0.5.17",
        "llama",
        {"0.5.16": warns("drafter.features", "drafter.unused_tensors"), "0.5.17": FINE},
        drafter=aux(1, 3, 5, norm_before_fc=True),
        edit=lambda shapes: shapes.update({"input_norm.weight": ("BF16", (3 * small.HIDDEN,))}),
    ),
    Row(
        "norm_output before 0.5.12",
        "llama",
        {"0.5.11": warns("drafter.features"), "0.5.12": FINE},
        drafter={"norm_output": True},
    ),
    Row(
        "fc_norm switched off",
        "kimi-mla",
        {"0.5.20": warns("drafter.unused_tensors")},
        drafter={"fc_norm": False},
        edit=lambda shapes: shapes.update({"fc_norm.0.weight": ("BF16", (small.HIDDEN,))}),
        options=TRUST,
    ),
    Row(
        "shorter context",
        "llama",
        {"0.4.9": warns("drafter.context"), "0.5.2": fails("drafter.context"), "0.5.20": fails("drafter.context")},
        drafter={"max_position_embeddings": 2048},
    ),
    Row(
        "shorter context, served so",
        "llama",
        {"0.5.20": FINE},
        drafter={"max_position_embeddings": 2048},
        options={"context_length": 2048},
    ),
    Row(
        "shorter context, allowed",
        "llama",
        {"0.5.20": warns("drafter.context")},
        drafter={"max_position_embeddings": 2048},
        options={"allow_longer_context": True},
    ),
    Row(
        "context scaled by rope",
        "llama",
        {"0.5.20": FINE},
        drafter={"max_position_embeddings": 2048, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    ),
    Row(
        "context that yarn has scaled already",
        "llama",
        {"0.5.20": fails("drafter.context")},
        drafter={
            "max_position_embeddings": 2048,
            "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 1024},
        },
    ),
    Row(
        "more context than the base",
        "llama",
        {"0.5.20": fails("base.context", "drafter.context")},
        options={"context_length": 8192},
    ),
    Row("no type", "llama", {"0.5.20": fails("drafter.dtype")}, without=("torch_dtype",)),
    Row("no type, given to both", "llama", {"0.5.20": FINE}, without=("torch_dtype",), options={"dtype": "bfloat16"}),
    Row("half for bfloat16", "llama", {"0.5.20": fails("drafter.dtype")}, drafter={"torch_dtype": "float16"}),
    Row(
        "compressed-tensors typed",
        "llama",
        {"0.5.6": fails("drafter.quantization"), "0.5.20": fails("drafter.quantization")},
        base={"quantization_config": {"quant_method": "compressed-tensors"}},
        options={"quantization": "compressed-tensors"},
    ),
    Row(
        "compressed-tensors typed, drafter unquant",
        "llama",
        {"0.5.6.post2": fails("drafter.quantization"), "0.5.7": FINE},
        base={"quantization_config": {"quant_method": "compressed-tensors"}},
        options={"quantization": "compressed-tensors", "draft_quantization": "unquant"},
    ),
    Row("fp8 typed", "llama", {"0.5.20": warns("drafter.quantization")}, options={"quantization": "fp8"}),
    Row(
        "fp8 typed for an mla drafter",
        "kimi-mla",
        {"0.5.20": fails("drafter.quantization")},
        options={**TRUST, "quantization": "fp8"},
    ),
    Row(
        "another method than the base's",
        "llama",
        {"0.5.20": {**fails("base.quantization"), **warns("drafter.quantization")}},
        base={"quantization_config": {"quant_method": "awq"}},
        options={"quantization": "fp8"},
    ),
    Row(
        "drafter with a method of its own",
        "llama",
        {"0.5.5": fails("drafter.quantization"), "0.5.6.post2": FINE},
        drafter={"quantization_config": {"quant_method": "fp8"}},
        options={"quantization": "awq"},
    ),
    Row(
        "mla backend for a llama drafter",
        "kimi-llama",
        {"0.5.20": fails("drafter.attention_backend")},
        options={**TRUST, "attention_backend": "trtllm_mla"},
    ),
    Row(
        "plain backend for an mla drafter",
        "kimi-mla",
        {"0.5.20": fails("drafter.attention_backend")},
        options={**TRUST, "attention_backend": "triton", "draft_attention_backend": "trtllm_mha"},
    ),
    Row(
        "backend without a draft worker",
        "llama",
        {"0.5.20": fails("drafter.attention_backend")},
        options={"attention_backend": "torch_native"},
    ),
    Row(
        "heads that three GPUs cannot share",
        "llama",
        {"0.5.20": fails("base.tensor_parallel", "drafter.tensor_parallel")},
        options={"tp_size": 3},
    ),
    Row(
        "drafter heads that two cannot share",
        "llama",
        {"0.5.20": fails("drafter.tensor_parallel")},
        drafter={"num_attention_heads": 3, "num_key_value_heads": 3},
        options={"tp_size": 2},
    ),
    Row(
        "code without trust",
        "kimi-llama",
        {"0.5.20": warns("pair.trust_remote_code")},
        options={"trust_remote_code": False},
    ),
    Row(
        "other special tokens, as generation_config tells",
        "kimi-mla",
        {"0.5.20": warns("drafter.special_tokens")},
        base={"eos_token_id": None},
        drafter={"eos_token_id": 7},
        base_files={"generation_config.json": '{"eos_token_id": [3, 4]}'},
        options=TRUST,
    ),
    Row("other special tokens", "llama", {"0.5.20": warns("drafter.special_tokens")}, drafter={"eos_token_id": 7}),
    Row(
        "another tokenizer",
        "llama",
        {"0.5.20": warns("drafter.tokenizer")},
        files={"tokenizer.json": "{}"},
        base_files={"tokenizer.json": "{ }"},
    ),
    Row(
        "a sibling's drafter",
        "llama",
        {"0.5.20": warns("drafter.made_for")},
        base={"_name_or_path": "moonshotai/Kimi-K2.6"},
        files={"README.md": "---\nbase_model: moonshotai/Kimi-K2.5\n---\n"},
    ),
    Row(
        "two layers in an mla drafter",
        "kimi-mla",
        {"0.5.20": fails("drafter.layers")},
        drafter={"num_hidden_layers": 2},
        options=TRUST,
    ),
    Row(
        "standalone, another tokenizer",
        "standalone",
        {"0.5.20": fails("drafter.tokenizer")},
        drafter={"num_hidden_layers": 2},
        files={"tokenizer.json": "{}"},
        base_files={"tokenizer.json": "{ }"},
    ),
    Row(
        "standalone, larger vocabulary",
        "standalone",
        {"0.5.20": fails("drafter.vocab_size")},
        drafter={"num_hidden_layers": 2, "vocab_size": 600},
    ),
    Row(
        "standalone, fewer padded rows",
        "standalone",
        {"0.5.20": warns("drafter.vocab_size")},
        drafter={"num_hidden_layers": 2, "vocab_size": 500},
    ),
    Row(
        "nextn without a head",
        "mtp",
        {"0.5.20": fails("drafter.mtp_layer")},
        drafter={"architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 0},
        options=TRUST,
    ),
    Row("dflash, another width", "dflash", {"0.5.20": fails("drafter.hidden_size")}, drafter={"hidden_size": 32}),
    Row(
        "dflash, layer outside",
        "dflash",
        {"0.5.20": fails("drafter.target_layer_ids")},
        drafter={
            "dflash_config": {"target_layer_ids": [1, 3, 7], "mask_token_id": 5, "num_target_layers": small.LAYERS}
        },
    ),
    Row(
        "dflash, made for a deeper base",
        "dflash",
        {"0.5.20": warns("drafter.target_layers")},
        drafter={"dflash_config": {"target_layer_ids": [1, 3, 5], "mask_token_id": 5, "num_target_layers": 64}},
    ),
    Row(
        "dflash without num_target_layers",
        "dflash",
        {"0.5.17": fails("drafter.target_layer_ids"), "0.5.18": FINE},
        drafter={"dflash_config": {"target_layer_ids": [1, 3, 5], "mask_token_id": 5}},
    ),
    Row(
        "dflash, mask token outside",
        "dflash",
        {"0.5.20": fails("drafter.mask_token")},
        drafter={
            "dflash_config": {"target_layer_ids": [1, 3, 5], "mask_token_id": small.VOCAB, "num_target_layers": 8}
        },
    ),
    Row("dflash without a block size", "dflash", {"0.5.20": warns("drafter.block_size")}, without=("block_size",)),
    Row(
        "dflash, tensor missing",
        "dflash",
        {"0.5.20": fails("drafter.tensors")},
        edit=lambda shapes: shapes.pop("hidden_norm.weight"),
    ),
    Row("eagle, another width", "eagle", {"0.5.20": fails("drafter.hidden_size")}, drafter={"hidden_size": 32}),
    Row(
        "eagle, tensor missing",
        "eagle",
        {"0.5.20": fails("drafter.tensors")},
        edit=lambda shapes: shapes.pop("fc.bias"),
    ),
    Row(
        "a size that is text",
        "llama",
        {"0.5.20": fails("pair.config")},
        drafter={"num_hidden_layers": "one"},
        options={"tp_size": 1},
    ),
]


def build(row: Row, root: Path) -> Question:
    """Writes the pair and asks about it."""
    algorithm, base_config, drafter_config, shapes_of = FAMILIES[row.family]
    base = base_config(**row.base)
    drafter = {key: value for key, value in drafter_config(**row.drafter).items() if key not in row.without}
    told = {"draft_vocab_size": small.DRAFT_VOCAB, "eagle_config": {}, **drafter}
    shapes = shapes_of(told if row.family.endswith("llama") or row.family == "llama-layers" else drafter)
    if row.edit is not None:
        row.edit(shapes)
    small.write(root / "base", base, small.llama_base_shapes({"head_dim": 16, **base.get("text_config", base)}))
    small.write(root / "drafter", drafter, shapes, row.values)
    for role, files in (("base", row.base_files), ("drafter", row.files)):
        for name, text in files.items():
            (root / role / name).write_text(text)
    options = {"algorithm": algorithm, "base": str(root / "base"), "drafter": str(root / "drafter"), **row.options}
    return Question(engine="", **options)


def bad(answer: Answer) -> dict[str, str]:
    return {check.id: check.status for check in answer.checks if check.status in ("fail", "warn")}


CASES = [(row, version) for row in [*VALID, *BROKEN] for version in row.verdicts]


@pytest.mark.parametrize(("row", "version"), CASES, ids=[f"{row.name} on {version}" for row, version in CASES])
def test_pair(row: Row, version: str, tmp_path: Path) -> None:
    question = build(row, tmp_path)
    answer = ask(Question(**{**question.__dict__, "engine": version}))
    told = json.dumps([check.__dict__ for check in answer.checks if check.status != "pass"], indent=1)
    assert bad(answer) == row.verdicts[version], told
    assert answer.compatible is ("fail" not in row.verdicts[version].values())


def test_the_table_is_as_large_as_it_should_be() -> None:
    rows = [row.name for row in [*VALID, *BROKEN]]
    assert len(rows) >= 60
    assert len(rows) == len(set(rows))
