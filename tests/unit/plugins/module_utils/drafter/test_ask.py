# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole question: nothing that stands in a checkpoint makes it crash, and each message names the variable."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import STATUSES
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.ask import Answer, Question, ask
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.identity import base_models
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures import checkpoints as small

ALGORITHMS = ("EAGLE3", "EAGLE", "DFLASH", "STANDALONE", "NEXTN", "NGRAM", "UNO")
FILES = ("config.json", "model.safetensors", "README.md", "tokenizer_config.json")
VERSIONS = ("0.4.6.post5", "0.5.5", "0.5.11", "0.5.12", "0.5.20", "9.9")
CONFIGS = (
    small.llama_config(),
    small.llama_drafter_config(),
    small.kimi_config(),
    small.mla_drafter_config(),
    small.dflash_config(),
    small.eagle_config(),
)
KEYS = sorted({key for config in CONFIGS for key in config} | {"dflash_config", "rope_scaling", "quantization_config"})
NAMES = st.text(max_size=5) | st.sampled_from(KEYS)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(0, 10**6) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


def compare(base: Path, drafter: Path, **options: Any) -> Answer:
    told = {"algorithm": "EAGLE3", "engine": "0.5.20", **options}
    return ask(Question(base=str(base), drafter=str(drafter), **told))


def sound(answer: Answer) -> None:
    assert answer.checks
    assert all(check.status in STATUSES for check in answer.checks)
    assert answer.compatible is not any(check.status == "fail" for check in answer.checks)
    json.dumps([answer.base, answer.drafter], allow_nan=True)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A config of some kind, with some values replaced or gone, also in what is nested."""
    config = json.loads(json.dumps(draw(st.sampled_from(CONFIGS))))
    for _ in range(draw(st.integers(0, 4))):
        place = config
        for inner in ("text_config", "eagle_config", "dflash_config"):
            if isinstance(config.get(inner), dict) and draw(st.booleans()):
                place = config[inner]
        key = draw(st.sampled_from(KEYS + sorted(place)))
        if draw(st.booleans()):
            place[key] = draw(ANYTHING)
        else:
            place.pop(key, None)
    return config


@given(damaged(), damaged(), st.sampled_from(ALGORITHMS), st.sampled_from(VERSIONS), st.integers(1, 16))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_config_makes_it_crash(
    base: dict[str, Any], drafter: dict[str, Any], algorithm: str, version: str, tp_size: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        shapes = small.llama_drafter_shapes(small.llama_drafter_config())
        small.write(root / "base", base, {})
        small.write(root / "drafter", drafter, shapes)
        answer = compare(root / "base", root / "drafter", algorithm=algorithm, engine=version, tp_size=tp_size)
        sound(answer)


@given(ANYTHING)
@settings(max_examples=150, deadline=None)
def test_no_json_makes_it_crash(value: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for role in ("base", "drafter"):
            (root / role).mkdir()
            (root / role / "config.json").write_text(json.dumps(value))
            (root / role / "model.safetensors.index.json").write_text(json.dumps(value))
        sound(compare(root / "base", root / "drafter"))


@given(
    st.binary(max_size=200), st.binary(max_size=100), st.sampled_from(("config.json", "model.safetensors", "README.md"))
)
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_it_crash(start: bytes, more: bytes, file: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        base, drafter = small.llama_pair(Path(name))
        data = (drafter / file).read_bytes() if (drafter / file).exists() else b""
        (drafter / file).write_bytes(start + data[len(more) :])
        sound(compare(base, drafter))


@given(st.binary(max_size=2100))
@settings(max_examples=100, deadline=None)
def test_no_table_makes_it_crash(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        config = small.llama_drafter_config()
        shapes = small.llama_drafter_shapes(config)
        base = small.write(Path(name) / "base", small.llama_config(), {})
        values = {"d2t": (data + bytes(2048))[:2048]}
        sound(compare(base, small.write(Path(name) / "drafter", config, shapes, values)))


def test_what_cannot_be_read_stops_only_what_needs_it(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    (drafter / "model.safetensors").unlink()
    (drafter / "pytorch_model.bin").write_bytes(b"x")
    answer = compare(base, drafter)
    statuses = {check.id: check.status for check in answer.checks}
    assert answer.compatible
    assert statuses["drafter.hidden_size"] == "pass"
    assert statuses["drafter.tensors"] == statuses["drafter.weights"] == statuses["drafter.d2t"] == "skipped"
    assert statuses["drafter.context"] == "pass"


def test_a_bad_value_is_told_once_and_skips_its_rules(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    config = small.llama_drafter_config(hidden_size="64")
    (drafter / "config.json").write_text(json.dumps(config))
    answer = compare(base, drafter)
    assert [check.id for check in answer.checks if check.status == "fail"] == ["pair.config"]
    told = next(check for check in answer.checks if check.id == "pair.config")
    assert told.actual == "'64'"
    assert "hidden_size in config.json of the drafter" in told.expected


def test_absurd_sizes_cost_no_time(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    config = small.llama_drafter_config(num_hidden_layers=10**9, num_aux_hidden_states=10**9, fc_norm=True)
    (drafter / "config.json").write_text(json.dumps(config))
    fails = [check for check in compare(base, drafter).checks if check.status == "fail"]
    assert {check.id for check in fails} == {"pair.config"}
    assert any("num_hidden_layers" in check.expected for check in fails)


def test_damaged_weights_are_told_once(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    path = drafter / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    answer = compare(base, drafter)
    assert [check.id for check in answer.checks if check.status == "fail"] == ["drafter.weights"]


def test_what_was_read_is_returned_normalised(tmp_path: Path) -> None:
    base = small.write(tmp_path / "base", small.kimi_config(), {})
    config = small.mla_drafter_config()
    drafter = small.write(tmp_path / "drafter", config, small.mla_drafter_shapes(config))
    answer = compare(base, drafter)
    assert answer.base is not None
    assert answer.drafter is not None
    assert (answer.base["hidden_size"], answer.base["context"], answer.base["dtype"]) == (64, 4096, "bfloat16")
    assert answer.base["architectures"] == ["KimiK25ForConditionalGeneration"]
    assert answer.drafter["captured_layers"] == [2, 4, 6]
    assert answer.drafter["draft_vocab_size"] == small.VOCAB


def test_the_base_as_its_own_drafter(tmp_path: Path) -> None:
    _, drafter = small.llama_pair(tmp_path)
    answer = compare(drafter, drafter)
    assert [check.status for check in answer.checks if check.id == "drafter.differs"] == ["fail"]


@pytest.mark.parametrize(
    ("declared", "layer", "expected"), [(0, 7, "fail"), (1, 7, "fail"), (1, 8, "pass"), (None, 8, "skipped")]
)
def test_a_base_that_drafts_for_itself(tmp_path: Path, declared: int | None, layer: int, expected: str) -> None:
    config = small.kimi_config(num_nextn_predict_layers=declared)
    small.write(tmp_path / "base", config, {f"model.layers.{layer}.eh_proj.weight": ("BF16", (1,))})
    answer = ask(Question(base=str(tmp_path / "base"), algorithm="NEXTN", engine="0.5.20"))
    statuses = {check.id: check.status for check in answer.checks}
    assert (statuses["drafter.mtp_layer"], statuses["drafter.fit"]) == (expected, "skipped")


def test_a_release_that_the_rules_do_not_know(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path)
    statuses = {check.id: check.status for check in compare(base, drafter, engine="0.9.0").checks}
    assert statuses["engine.release"] == "skipped"
    assert statuses["drafter.hidden_size"] == "pass"


def test_an_engine_that_is_no_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        compare(tmp_path, tmp_path, engine="latest")


def test_each_failure_names_the_variable_to_change(tmp_path: Path) -> None:
    base, drafter = small.llama_pair(tmp_path, hidden_size=32, max_position_embeddings=1024)
    names = {"drafter": "the_drafter", "base": "the_base", "context_length": "the_context"}
    answer = compare(base, drafter, names=names)
    fixes = {check.id: check.fix for check in answer.checks if check.status == "fail"}
    assert fixes["drafter.hidden_size"] == "set the_drafter to a drafter made for this base, or correct the_base"
    assert fixes["drafter.context"].startswith("set the_context to 1024 or less, or give the engine SGLANG_ALLOW")


@pytest.mark.parametrize(
    ("card", "models"),
    [
        ("---\nbase_model: org/Model-1.0\n---\n", ["org/Model-1.0"]),
        ("---\nlicense: mit\nbase_model:\n- org/A\n- org/B\ntags:\n- x/y\n---\n", ["org/A", "org/B"]),
        ("---\nbase_model:\n  - org/A\n---\n", ["org/A"]),
        ("# base_model: org/A", []),
        ("---\nbase_model:\n---\n", []),
        ("", []),
    ],
)
def test_the_bases_that_a_card_names(card: str, models: list[str]) -> None:
    assert base_models(card) == models


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A venv with an SGLang that registers two bases, one of which captures states, and one class of MTP drafter."""
    site = tmp_path / "venv/lib/python3.12/site-packages"
    files = {
        "sglang-0.5.20.dist-info/METADATA": "Name: sglang\n",
        "sglang/srt/server_args.py": "",
        "sglang/srt/speculative/spec_info.py": "class SpeculativeAlgorithm(Enum):\n    EAGLE3 = auto()\n",
        "sglang/srt/models/llama.py": "class LlamaForCausalLM:\n"
        "    def set_eagle3_layers_to_capture(self): ...\n"
        "    def get_embed_and_head(self): ...\n"
        "EntryClass = LlamaForCausalLM\n",
        "sglang/srt/models/plain.py": "class PlainForCausalLM: ...\nEntryClass = [PlainForCausalLM]\n",
        "sglang/srt/models/nextn.py": "class PlainForCausalLMNextN: ...\nEntryClass = [PlainForCausalLMNextN]\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "venv/bin").mkdir()
    return tmp_path / "venv"


@pytest.mark.parametrize(
    ("base", "architecture", "captures"),
    [("LlamaForCausalLM", "pass", "pass"), ("PlainForCausalLM", "pass", "fail"), ("OtherForCausalLM", "warn", "fail")],
)
def test_the_engines_own_source_proves_the_base(
    tmp_path: Path, venv: Path, base: str, architecture: str, captures: str
) -> None:
    config = small.llama_config(architectures=[base])
    small.write(tmp_path / "base", config, small.llama_base_shapes(config))
    drafter = small.llama_drafter_config()
    small.write(tmp_path / "drafter", drafter, small.llama_drafter_shapes(drafter))
    answer = compare(tmp_path / "base", tmp_path / "drafter", engine=str(venv))
    statuses = {check.id: check.status for check in answer.checks}
    assert (statuses["base.architecture"], statuses["base.captures"]) == (architecture, captures)
    assert answer.compatible is (captures == "pass")
    sources = {check.id: check.source for check in answer.checks}
    assert base != "LlamaForCausalLM" or sources["base.captures"] == "SGLang 0.5.20 sglang/srt/models/llama.py:2"


def test_a_version_alone_does_not_prove_the_base(tmp_path: Path) -> None:
    statuses = {check.id: check.status for check in compare(*small.llama_pair(tmp_path)).checks}
    assert statuses["base.architecture"] == statuses["base.captures"] == "skipped"


def test_a_venv_without_an_engine(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no virtual environment"):
        compare(tmp_path, tmp_path, engine=str(tmp_path))
