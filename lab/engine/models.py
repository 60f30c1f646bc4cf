# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tiny Llama base model that says a fixed loop of words, and an EAGLE-3 drafter that knows the loop.

The weights are made on purpose, so that speculation is real: the base's blocks add nothing to the residual and its head
maps a token of the loop to the next one; the drafter takes the base's state at the last token and looks two words
ahead. Its drafts are accepted, and the text can be read. A second drafter has another hidden size: it does not fit.

Usage: python -m lab.engine.models FOLDER
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

Array = npt.NDArray[np.float32]

BASE = "tiny-llama"
DRAFTER = "tiny-eagle3"
MISFIT = "tiny-eagle3-misfit"

SENTENCE = " serve tokens on a tiny random model"
CORPUS = [
    "the quick brown fox jumps over the lazy dog",
    "hello world, how are you today?",
    "serve tokens on a tiny random model",
] * 4
SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|user|>' if m['role'] != 'assistant' else '<|assistant|>' }}"
    "{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass(frozen=True)
class Shape:
    """The sizes of a model. ``draft_vocab`` is the drafter's own, smaller vocabulary."""

    vocab: int = 512
    hidden: int = 64
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    intermediate: int = 128
    positions: int = 2048
    draft_vocab: int = 256

    def config(self, architecture: str, layers: int) -> dict[str, object]:
        """config.json as transformers writes it for a Llama."""
        return {
            "architectures": [architecture],
            "attention_bias": False,
            "bos_token_id": 1,
            "dtype": "float32",
            "eos_token_id": 2,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.hidden,
            "initializer_range": 0.02,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.positions,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": self.heads,
            "num_hidden_layers": layers,
            "num_key_value_heads": self.kv_heads,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "vocab_size": self.vocab,
        }


def _tokenizer(shape: Shape) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.vocab, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _layer(shape: Shape, draw: np.random.Generator, qkv_inputs: int) -> dict[str, Array]:
    """One Llama layer that adds nothing to the residual: both of its output projections are zero."""

    def random(*size: int) -> Array:
        return (draw.standard_normal(size) * 0.02).astype(np.float32)

    kv = shape.kv_heads * shape.head_dim
    heads = shape.heads * shape.head_dim
    return {
        "self_attn.q_proj.weight": random(heads, qkv_inputs),
        "self_attn.k_proj.weight": random(kv, qkv_inputs),
        "self_attn.v_proj.weight": random(kv, qkv_inputs),
        "self_attn.o_proj.weight": np.zeros((shape.hidden, heads), np.float32),
        "mlp.gate_proj.weight": random(shape.intermediate, shape.hidden),
        "mlp.up_proj.weight": random(shape.intermediate, shape.hidden),
        "mlp.down_proj.weight": np.zeros((shape.hidden, shape.intermediate), np.float32),
        "input_layernorm.weight": np.ones(shape.hidden, np.float32),
        "post_attention_layernorm.weight": np.ones(shape.hidden, np.float32),
    }


def _embedding(shape: Shape) -> Array:
    """One unit vector a token: the same for base and drafter, since the drafter reads the base's states."""
    rows = np.random.default_rng(0).standard_normal((shape.vocab, shape.hidden))
    lengths: npt.NDArray[np.float64] = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / lengths).astype(np.float32)


def _following(tokenizer: Tokenizer) -> dict[int, int]:
    """Which token of the loop follows which."""
    loop = tokenizer.encode(SENTENCE).ids
    if len(set(loop)) != len(loop):
        raise ValueError(f"a token stands twice in {SENTENCE!r}: it has no single follower")
    return dict(zip(loop, loop[1:] + loop[:1], strict=True))


def write_base(folder: Path, shape: Shape) -> None:
    """The base model with its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(shape)
    embedding = _embedding(shape)
    head = np.zeros((shape.vocab, shape.hidden), np.float32)
    following = _following(tokenizer)
    for token, follower in following.items():
        head[follower] += embedding[token]
    # The end of any prompt leads into the loop, weaker than the loop itself.
    head[next(iter(following))] += 0.5 * embedding[tokenizer.token_to_id("<|assistant|>")]
    weights = {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": np.ones(shape.hidden, np.float32),
        "lm_head.weight": head,
    }
    draw = np.random.default_rng(1)
    for layer in range(shape.layers):
        for name, tensor in _layer(shape, draw, shape.hidden).items():
            weights[f"model.layers.{layer}.{name}"] = tensor
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", shape.config("LlamaForCausalLM", shape.layers))
    _write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "bos_token": "<s>",
            "chat_template": CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": "</s>",
            "model_max_length": shape.positions,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "<unk>",
        },
    )


def write_drafter(folder: Path, shape: Shape) -> None:
    """An EAGLE-3 drafter: qkv takes [embedding, state] (2 x hidden), fc takes three states of the base (3 x hidden)."""
    folder.mkdir(parents=True, exist_ok=True)
    embedding = _embedding(shape)
    following = _following(_tokenizer(shape))
    others = [token for token in range(shape.vocab) if token not in following]
    draft_tokens = sorted([*following, *others[: shape.draft_vocab - len(following)]])
    place = {token: row for row, token in enumerate(draft_tokens)}
    head = np.zeros((shape.draft_vocab, shape.hidden), np.float32)
    for token, follower in following.items():
        head[place[following[follower]]] = embedding[token]
    known = np.zeros(shape.vocab, np.bool_)
    known[draft_tokens] = True
    zero, one = np.zeros((shape.hidden, shape.hidden), np.float32), np.eye(shape.hidden, dtype=np.float32)
    layer = _layer(shape, np.random.default_rng(2), 2 * shape.hidden)
    weights: dict[str, npt.NDArray[np.generic]] = {f"midlayer.{name}": tensor for name, tensor in layer.items()}
    weights |= {
        # Of the three states of the base only the last one counts here.
        "fc.weight": np.concatenate([zero, zero, one], axis=1),
        "midlayer.hidden_norm.weight": np.ones(shape.hidden, np.float32),
        "norm.weight": np.ones(shape.hidden, np.float32),
        "lm_head.weight": head,
        # The base's token is the draft token plus d2t of the draft token.
        "d2t": np.array(draft_tokens, np.int64) - np.arange(shape.draft_vocab, dtype=np.int64),
        "t2d": known,
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = shape.config("LlamaForCausalLMEagle3", 1)
    config["draft_vocab_size"] = shape.draft_vocab
    # SGLang's own choice for a base of four layers would be two states, not the three that fc takes.
    config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "use_aux_hidden_state": True}
    _write_json(folder / "config.json", config)


def write_all(root: Path) -> None:
    """The base, the drafter that fits and the one that does not."""
    write_base(root / BASE, Shape())
    write_drafter(root / DRAFTER, Shape())
    write_drafter(root / MISFIT, Shape(hidden=96, head_dim=24))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
