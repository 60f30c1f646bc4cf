# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sum for one GPU: the numbers that were measured, and each check once passed and once failed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.config import Config
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.errors import ConfigError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.safetensors import Tensor
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.source import Cost
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.vram import (
    GIB,
    Answer,
    Assumptions,
    Model,
    Plan,
    Question,
    kv_bytes,
    kv_layers,
    plan,
    read_models,
    weigh,
    work_out,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures import checkpoints as small

MIB = 2**20
# As NVML counts them: RTX PRO 6000 Blackwell, and a card that is sold as 48 GB.
CARD_96 = 97_887 * MIB
CARD_48 = 46_068 * MIB


K26 = Question(base="", gpus=[CARD_96] * 8, tp_size=8, mem_fraction=0.85)


@pytest.fixture(scope="module")
def k26(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    """The base of Kimi K2.6's sizes, read once: its headers are 30 MB."""
    path = small.write_k26(tmp_path_factory.mktemp("models") / "Kimi-K2.6")
    checks, models = read_models(replace(K26, base=str(path)), Cost())
    assert [check.status for check in checks] == ["pass"]
    return models


def llama_drafter(root: Path) -> Path:
    """An EAGLE-3 drafter for it, without its large tensors."""
    sizes = {"hidden_size": 7168, "intermediate_size": 12288, "vocab_size": 163840, "draft_vocab_size": 32000}
    config = small.llama_drafter_config(**sizes, num_attention_heads=64, num_key_value_heads=64, head_dim=128)
    shapes = {name: shape for name, shape in small.llama_drafter_shapes(config).items() if len(shape[1]) == 1}
    return small.write(root, config, shapes)


def ask(base: Path, **options: Any) -> Answer:
    return plan(replace(K26, base=str(base), **options))


def judged(models: Mapping[str, Model], **options: Any) -> tuple[dict[str, Check], Plan]:
    """The checks by id, and the sum, for models that were read before."""
    checks, sum_ = work_out(replace(K26, **options), models)
    assert sum_ is not None
    return {check.id: check for check in checks}, sum_


def status(answer: Answer, id: str) -> str:
    return next(check.status for check in answer.checks if check.id == id)


@pytest.mark.parametrize(("dtype", "token", "measured"), [("auto", 70_272, 116_153), ("fp8_e4m3", 35_136, 232_306)])
def test_k26_on_eight_cards_of_96_gb(k26: dict[str, Model], dtype: str, token: int, measured: int) -> None:
    checks, sum_ = judged(k26, kv_cache_dtype=dtype)
    assert checks["vram.weights"].status == checks["vram.outside"].status == "pass"
    assert sum_.kv_per_token_base == token
    assert abs(sum_.max_total_tokens - measured) < 0.10 * measured
    assert round(k26["base"].weights.total / 8 / GIB, 1) == 69.3
    # What each rank holds whole (latent projections, router, vision tower) comes on top of an even share.
    assert 71 * GIB < sum_.base_weights < 73 * GIB


def test_0_90_leaves_too_little_outside(k26: dict[str, Model]) -> None:
    told = judged(k26, mem_fraction=0.90)[0]["vram.outside"]
    assert (told.status, told.fix) == ("warn", "set mem_fraction to 0.88 or less")


def test_k26_on_eight_cards_of_48_gb_is_refused_with_the_numbers(k26: dict[str, Model]) -> None:
    checks, sum_ = judged(k26, gpus=[CARD_48] * 8)
    told = checks["vram.weights"]
    assert told.status == "fail"
    assert told.expected == "weights below 37.4 GiB, 0.85 of the 44.0 GiB free at start"
    assert told.actual == "71.9 GiB base, 0.0 GiB drafter, 1.0 GiB for loading"
    assert "split it over 32 such GPUs (tp_size 32)" in told.fix
    assert checks["vram.tokens"].status == "skipped"
    assert sum_.max_total_tokens == 0


def test_what_the_drafter_costs(k26: dict[str, Model], tmp_path: Path) -> None:
    question = replace(K26, base=str(llama_drafter(tmp_path)))
    drafter = read_models(question, Cost())[1]["base"]
    checks, sum_ = judged({**k26, "drafter": drafter}, algorithm="EAGLE3")
    assert sum_.kv_per_token_drafter == 4_096
    # One layer more, counted as one of the base's.
    assert sum_.kv_per_token_counted == 70_272 + 70_272 // 61
    assert 0 < sum_.tokens_without_drafter - sum_.max_total_tokens < 0.05 * 116_153
    assert "the drafter costs" in checks["vram.tokens"].actual


def test_a_context_that_is_asked_for(k26: dict[str, Model]) -> None:
    assert judged(k26, context_length=100_000)[0]["vram.tokens"].status == "pass"
    told = judged(k26, context_length=200_000)[0]["vram.tokens"]
    assert told.status == "fail"
    assert told.fix.startswith("set kv_cache_dtype to fp8_e4m3, or set context_length to 114")


def test_the_bases_own_limit_is_a_warning(k26: dict[str, Model]) -> None:
    assert judged(k26)[0]["vram.tokens"].status == "warn"


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [([CARD_96] * 8, "pass"), ([CARD_96] * 7, "fail"), ([CARD_96] * 7 + [CARD_48], "warn"), ([], "skipped")],
)
def test_the_gpus(tmp_path: Path, gpus: list[int], expected: str) -> None:
    base, _ = small.llama_pair(tmp_path)
    answer = ask(base, gpus=gpus)
    assert status(answer, "vram.gpus") == expected
    assert answer.fits is {"pass": True, "warn": True, "fail": False, "skipped": None}[expected]


def test_a_small_pair_on_a_small_card(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    answer = ask(base, drafter=str(drafter), gpus=[16 * GIB], tp_size=1, mem_fraction=0.4, context_length=4096)
    assert answer.fits is True
    assert status(answer, "vram.tokens") == "pass"
    assert answer.plan is not None
    assert answer.plan.largest_context == small.CONTEXT


def test_assumptions_can_be_changed(tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    answer = ask(base, gpus=[4 * GIB], tp_size=1, mem_fraction=0.5, assumptions=Assumptions(0, 0, 0, 0, 0, 0))
    assert answer.plan is not None
    assert answer.plan.before_load == 4 * GIB
    assert answer.plan.needed_outside == 0


def test_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    answer = ask(tmp_path / "none", names={"base": "the_base"})
    assert answer.fits is False
    assert answer.plan is None
    assert "the_base" in str(answer.checks)
    assert status(answer, "vram.fit") == "skipped"


def test_weights_of_another_format_are_not_called_missing(tmp_path: Path) -> None:
    base, _ = small.llama_pair(tmp_path)
    (base / "model.safetensors").unlink()
    (base / "pytorch_model.bin").write_bytes(b"x")
    answer = ask(base)
    assert answer.fits is None
    assert status(answer, "base.readable") == status(answer, "vram.fit") == "skipped"


NUMBERS = st.integers(-5, 10**6) | st.floats()
VALUES = NUMBERS | st.none() | st.booleans() | st.text(max_size=3) | st.just([1]) | st.just({})
KEYS = [*sorted(small.llama_config()), "kv_lora_rank", "qk_rope_head_dim", "layer_types", "full_attention_interval"]


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
@settings(max_examples=200, deadline=None)
def test_no_config_makes_it_crash(changes: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        config = {**small.llama_config(), **changes}
        base = small.write(Path(name), config, small.llama_base_shapes(small.llama_config()))
        answer = ask(base, gpus=[CARD_48] * 8)
        assert answer.fits is (answer.plan is not None and all(check.status != "fail" for check in answer.checks))


@pytest.mark.parametrize("change", [{"mem_fraction": 1.0}, {"mem_fraction": 0.0}, {"tp_size": 0}])
def test_numbers_out_of_range(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="set it to"):
        ask(tmp_path, **change)


def tensor(*shape: int) -> Tensor:
    size = 2
    for part in shape:
        size *= part
    return Tensor("file", "BF16", shape, 0, size)


def test_how_tensors_are_shared_out() -> None:
    named = {
        "model.layers.0.self_attn.q_proj.weight": tensor(64, 64),
        "model.layers.0.self_attn.k_proj.weight": tensor(16, 64),
        "model.layers.0.mlp.gate.weight": tensor(8, 64),
        "model.layers.0.mlp.gate_proj.weight": tensor(64, 64),
        "model.layers.0.input_layernorm.weight": tensor(64),
        "model.layers.1.mlp.up_proj.weight": tensor(64, 64),
        "visual.layers.7.weight": tensor(10, 10),
        "model.embed_tokens.weight": tensor(100, 64),
    }
    weights = weigh(named.items(), layers=1, own_embedding=True)
    assert weights.split == 2 * (64 * 64 + 64 * 64 + 100 * 64)
    assert weights.key_value == 2 * 16 * 64
    # A router, a norm and a vision tower are on each GPU; the layer behind the last is not loaded.
    assert weights.replicated == 2 * (8 * 64 + 64 + 100)
    assert weights.per_gpu(4, kv_heads=2) == weights.split // 4 + weights.key_value // 2 + weights.replicated
    assert weigh(named.items(), layers=1, own_embedding=False).split == 2 * (64 * 64 + 64 * 64)


def config(**values: Any) -> Config:
    return Config(values, "config.json of the base")


def test_the_cache_of_one_token() -> None:
    heads = {"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16}
    assert kv_bytes(config(**heads), 1, 2) == 2 * 4 * (16 + 16) * 2
    assert kv_bytes(config(**heads), 4, 2) == 2 * 1 * (16 + 16) * 2
    assert kv_bytes(config(**heads), 8, 1) == 2 * 1 * (16 + 16)
    latent = {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert kv_bytes(config(**latent), 8, 2) == kv_bytes(config(**latent), 1, 2) == 70_272
    with pytest.raises(ConfigError):
        kv_bytes(config(num_hidden_layers=2), 1, 2)


def test_layers_that_cache_nothing_per_token() -> None:
    kinds = ["linear_attention", "full_attention", "sliding_attention", "linear_attention"]
    layers, told = kv_layers(config(num_hidden_layers=4, layer_types=kinds))
    assert layers == 2
    assert told == "2 layers with a state that is not counted; layers with a window are counted as if they had none"
    assert kv_layers(config(num_hidden_layers=48, full_attention_interval=4))[0] == 12
    assert kv_layers(config(num_hidden_layers=48)) == (48, "")
