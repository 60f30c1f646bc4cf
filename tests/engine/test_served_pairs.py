# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small pairs that a real SGLang is started with: it must do what drafter_compat said.

Where drafter_compat calls a pair compatible, the engine serves it with the accept length of a drafter that is always
right; where it says fail, the engine ends, or serves with one of about 1. A disagreement is a bug of
drafter_compat.

Not part of the unit tests: each pair starts an engine. It needs a venv with SGLang 0.5.20 built for a CPU::

    GPUSERVE_ENGINE_VENV=/opt/sglang/venv pytest tests/engine

The stand-ins for what no CPU wheel carries come from lab/engine/standins, or from GPUSERVE_ENGINE_STANDINS.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.ask import Question, ask
from safetensors.numpy import save_file

VENV = os.environ.get("GPUSERVE_ENGINE_VENV", "")
STANDINS = os.environ.get("GPUSERVE_ENGINE_STANDINS", str(Path(__file__).parents[2] / "lab" / "engine" / "standins"))
START_SECONDS = float(os.environ.get("GPUSERVE_ENGINE_START_SECONDS", "300"))
# One draft token, always right: each step yields it and the base's own.
RIGHT = 2.0
# Nearer to guessing than to knowing. Where weights are missing the engine computes with whatever its memory held: with
# no fc 1.14 and 1.31 were seen.
GUESSED = 1.5
VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, MLP, CONTEXT = 512, 64, 4, 4, 2, 16, 128, 2048
DRAFT_VOCAB = 256
# Of odd length, so that each token is drafted at some time though every second one is.
LOOP = [17, 401, 33, 250, 99, 310, 72, 480, 130]
NEXT = dict(zip(LOOP, [*LOOP[1:], LOOP[0]]))

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = dict[str, Array]


def unit(rng: np.random.Generator, rows: int, columns: int) -> Array:
    values = rng.standard_normal((rows, columns)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


RNG = np.random.default_rng(0)
EMBEDDING = unit(RNG, VOCAB, HIDDEN)
# What the drafter makes of a state: a code of its own, so that a drafter whose fc is not used is never right.
CODE = unit(RNG, VOCAB, HIDDEN)


def config(**changes: Any) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCAB,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
        **changes,
    }


def layer(prefix: str, width: int, hidden: int = HIDDEN) -> Tensors:
    """One layer that adds nothing to the residual."""
    rng = np.random.default_rng(1)
    kv = KV_HEADS * HEAD_DIM
    shapes = {"q": (HEADS * HEAD_DIM, width), "k": (kv, width), "v": (kv, width)}
    tensors = {f"{prefix}self_attn.{part}_proj.weight": unit(rng, *shape) for part, shape in shapes.items()}
    tensors[f"{prefix}self_attn.o_proj.weight"] = np.zeros((hidden, HEADS * HEAD_DIM), np.float32)
    for part in ("gate", "up"):
        tensors[f"{prefix}mlp.{part}_proj.weight"] = unit(rng, MLP, hidden)
    tensors[f"{prefix}mlp.down_proj.weight"] = np.zeros((hidden, MLP), np.float32)
    for name in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"{prefix}{name}.weight"] = np.ones(hidden, np.float32)
    return tensors


def base_tensors() -> Tensors:
    """A base that says the loop: the state is the token's embedding, the head leads to the next token."""
    head = np.zeros((VOCAB, HIDDEN), np.float32)
    for token, follower in NEXT.items():
        head[follower] = EMBEDDING[token]
    tensors = {"model.embed_tokens.weight": EMBEDDING, "model.norm.weight": np.ones(HIDDEN, np.float32)}
    tensors["lm_head.weight"] = head
    for number in range(LAYERS):
        tensors.update(layer(f"model.layers.{number}.", HIDDEN))
    return tensors


def drafter_tensors(ids: list[int], at: str = "midlayer.", hidden: int = HIDDEN, code: Array = CODE) -> Tensors:
    """A drafter that is always right: fc turns the last of three states into the token's code, which the head knows.

    ``ids`` are the base's ids of its draft ids. A state is the embedding of the token before the one to draft from.
    """
    loop = EMBEDDING[LOOP]
    turn = np.linalg.pinv(loop) @ code[LOOP][:, :hidden]
    head = np.zeros((len(ids), hidden), np.float32)
    for token in LOOP:
        head[ids.index(NEXT[NEXT[token]])] = code[token][:hidden]
    tensors = {
        "fc.weight": np.concatenate([np.zeros((hidden, 2 * HIDDEN)), turn.T], axis=1).astype(np.float32),
        "norm.weight": np.ones(hidden, np.float32),
        "lm_head.weight": head,
        **layer(at, 2 * hidden, hidden),
        f"{at}hidden_norm.weight": np.ones(hidden, np.float32),
    }
    if len(ids) != VOCAB:
        tensors["d2t"] = np.array(ids, np.int64) - np.arange(len(ids))
        tensors["t2d"] = np.isin(np.arange(VOCAB), ids)
    return tensors


# Without id 0, so that no draft id is by chance the base's.
SOME = sorted([*LOOP, *[token for token in range(1, VOCAB) if token not in LOOP][: DRAFT_VOCAB - len(LOOP)]])
ALL = list(range(VOCAB))


@dataclass(frozen=True)
class Served:
    """A pair, and whether it is right. ``edit`` changes the drafter's tensors."""

    name: str
    right: bool
    drafter: Mapping[str, Any] = field(default_factory=dict)
    tensors: Callable[[], Tensors] = lambda: drafter_tensors(SOME)
    edit: Callable[[Tensors], object] = lambda tensors: None
    without: tuple[str, ...] = ()
    algorithm: str = "EAGLE3"
    arguments: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def rename(old: str, new: str) -> Callable[[Tensors], object]:
    return lambda tensors: [tensors.update({name.replace(old, new): tensors.pop(name)}) for name in list(tensors)]


def own_width() -> Tensors:
    """Half as wide as the base, with an embedding of its own."""
    half = unit(np.random.default_rng(3), VOCAB, HIDDEN // 2)
    tensors = drafter_tensors(SOME, hidden=HIDDEN // 2, code=half)
    tensors["embed_tokens.weight"] = unit(np.random.default_rng(4), VOCAB, HIDDEN // 2)
    return tensors


def shared_head() -> Tensors:
    """The base's head leads from a token to the next, so fc leads from a state to the next token's embedding."""
    tensors = drafter_tensors(ALL, code=np.stack([EMBEDDING[NEXT.get(token, token)] for token in range(VOCAB)]))
    del tensors["lm_head.weight"]
    return tensors


def two_layers() -> Tensors:
    tensors = {**drafter_tensors(SOME, at="layers.0."), **layer("layers.1.", HIDDEN)}
    tensors["layers.1.hidden_norm.weight"] = np.ones(HIDDEN, np.float32)
    return tensors


def ids(*numbers: int) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(numbers), "use_aux_hidden_state": True}}


HALF = {"hidden_size": HIDDEN // 2, "target_hidden_size": HIDDEN}
SHORT = {"max_position_embeddings": CONTEXT // 2}
OTHER_FC = {"fc.weight": np.zeros((HIDDEN, 96), np.float32)}
TIED = {"tie_word_embeddings": True, "draft_vocab_size": VOCAB}
SPECULATORS = {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3"}
PAIRS = [
    Served("fits", True),
    Served("layers.0 names", True, tensors=lambda: drafter_tensors(SOME, at="layers.0.")),
    Served("whole vocabulary", True, {"draft_vocab_size": VOCAB}, lambda: drafter_tensors(ALL)),
    Served("head of the base", True, {"draft_vocab_size": None}, shared_head),
    Served("own width", True, HALF, own_width),
    Served("two layers", True, {"num_hidden_layers": 2}, two_layers),
    Served("other vocabulary size on one GPU", True, {"vocab_size": 600}),
    Served(
        "shorter context, served so",
        True,
        SHORT,
        arguments=("--context-length", str(CONTEXT // 2)),
        options={"context_length": CONTEXT // 2},
    ),
    Served("another hidden size", False, {"hidden_size": HIDDEN // 2}, own_width),
    Served("fc of another base", False, edit=lambda tensors: tensors.update(OTHER_FC)),
    Served("unknown names", False, edit=rename("midlayer.", "decoder.")),
    Served("no fc", False, edit=lambda tensors: tensors.pop("fc.weight")),
    Served("no head", False, edit=lambda tensors: tensors.pop("lm_head.weight")),
    Served("layer that is not there", False, ids(0, 1, 3)),
    Served("no layer ids on a base of four layers", False, {"eagle_config": None}),
    Served("no table", False, edit=lambda tensors: tensors.pop("d2t")),
    Served("table that leads outside", False, edit=lambda tensors: tensors.update(d2t=tensors["d2t"] + VOCAB)),
    Served("no draft_vocab_size", False, without=("draft_vocab_size",)),
    Served("shorter context", False, SHORT),
    Served("another type", False, {"torch_dtype": "float16"}),
    Served("EAGLE for an EAGLE-3 drafter", False, algorithm="EAGLE"),
    Served("tied, and a head of its own", False, TIED, lambda: drafter_tensors(ALL)),
    Served("speculators layout", False, SPECULATORS),
    Served("base class as drafter", False, {"architectures": ["LlamaForCausalLM"]}),
]


def write(folder: Path, values: Mapping[str, Any], tensors: Tensors) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values))
    save_file(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("served") / "base", config(), base_tensors())
    words = {f"w{number}": number for number in range(VOCAB)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "w0", "bos_token": "w1", "eos_token": "w2"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return folder


def drafter(pair: Served, folder: Path) -> Path:
    values = config(
        architectures=["LlamaForCausalLMEagle3"], num_hidden_layers=1, draft_vocab_size=DRAFT_VOCAB, **ids(0, 1, 2)
    )
    values.update(pair.drafter)
    for key in pair.without:
        del values[key]
    tensors = pair.tensors()
    pair.edit(tensors)
    return write(folder, values, tensors)


@contextmanager
def served(base: Path, drafter: Path, pair: Served, log: Path) -> Iterator[int | None]:
    """The engine with this pair: its port once it answers, None when it ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        f"{VENV}/bin/python", "-m", "sglang.launch_server", "--model-path", str(base), "--host", "127.0.0.1",
        "--port", str(port), "--device", "cpu", "--prefill-attention-backend", "intel_amx",
        "--decode-attention-backend", "intel_amx", "--max-total-tokens", "4096",
        "--speculative-algorithm", pair.algorithm, "--speculative-draft-model-path", str(drafter),
        "--speculative-num-steps", "1", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "2",
        *pair.arguments,
    ]  # fmt: skip
    env = {**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": STANDINS, "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield port if wait(process, port) else None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the engine answers; False when it ends before it does."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as response:
                if response.status == 200:
                    return True
        except OSError:
            time.sleep(1)
    raise TimeoutError(f"the engine neither ended nor answered within {START_SECONDS} seconds")


def accept_length(port: int) -> float | None:
    """The accept length of 64 tokens, None when the engine ends meanwhile."""
    sampling = {"temperature": 0, "max_new_tokens": 64, "ignore_eos": True}
    body = json.dumps({"input_ids": LOOP, "sampling_params": sampling}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/generate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            told = json.load(response)
    except (OSError, ValueError):
        return None
    assert told["output_ids"][: len(LOOP)] == LOOP, "the base itself does not say the loop"
    return float(told["meta_info"]["spec_accept_length"])


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_the_engine_does_what_was_said(pair: Served, base: Path, tmp_path: Path) -> None:
    assert VENV, "set GPUSERVE_ENGINE_VENV to a venv with SGLang for a CPU"
    made = drafter(pair, tmp_path / "drafter")
    question = Question(base=str(base), drafter=str(made), algorithm=pair.algorithm, engine=VENV, **pair.options)
    answer = ask(question)
    with served(base, made, pair, tmp_path / "engine.log") as port:
        length = None if port is None else accept_length(port)
    print(f"{pair.name}: compatible {answer.compatible}, accept length {length}")
    failed = [check.sentence() for check in answer.checks if check.status == "fail"]
    assert answer.compatible is pair.right, failed
    if answer.compatible:
        assert length is not None, (tmp_path / "engine.log").read_text()[-3000:]
        assert length > 0.95 * RIGHT
    else:
        assert length is None or length < GUESSED, f"served with {length}, though: {failed}"
