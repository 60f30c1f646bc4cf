# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.situation import Situation, model_facts
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import EngineInfo, read_engine
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.traps import judge
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version

from tests.unit.plugins.module_utils.engine.fake_engine import make_engine

LLAMA = {"architectures": ["LlamaForCausalLM"]}
KIMI = {"architectures": ["KimiK25ForConditionalGeneration"], "text_config": {"kv_lora_rank": 512}}
EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"]}
EAGLE3_MLA = {"architectures": ["Eagle3DeepseekV2ForCausalLM"], "kv_lora_rank": 512}
EAGLE1 = {"architectures": ["LlamaForCausalLMEagle"]}
INT4 = {"quantization_config": {"quant_method": "compressed-tensors"}}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    configs = {
        "llama": LLAMA,
        "kimi": KIMI | INT4,
        "eagle3": EAGLE3,
        "eagle3-int4": EAGLE3 | INT4,
        "eagle3-mla": EAGLE3_MLA,
        "eagle1": EAGLE1,
    }
    for name, config in configs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    return tmp_path


def checks_of(
    models: Path,
    words: str,
    base: str = "llama",
    drafter: str = "eagle3",
    version: str | None = "0.5.20",
    environment: dict[str, str] | None = None,
    resolved: dict[str, object] | None = None,
) -> dict[str, Check]:
    args = ["--model-path", str(models / base), "--speculative-draft-model-path", str(models / drafter), *words.split()]
    situation = Situation.of(args, parse_version(version) if version else None, {}, environment)
    if resolved:
        situation = Situation(situation.line, situation.version, {}, situation.environment, (), None, resolved)
    return {check.id.removeprefix("args."): check for check in judge(situation)}


def test_a_right_pair_passes(models: Path) -> None:
    found = checks_of(models, "--speculative-algorithm EAGLE3")
    assert {name: check.status for name, check in found.items()} == {
        "abbreviated": "pass",
        "twice": "pass",
        "drafter_path": "pass",
        "drafter_algorithm": "pass",
    }


NAMES = {
    "--tp-size": "sglang_server_tp_size",
    "--tp": "sglang_server_extra_args.tp",
    "--speculative-num-step": "sglang_server_extra_args.speculative_num_step",
}


def spelling(words: str, engine: EngineInfo | None) -> dict[str, Check]:
    return {check.id: check for check in judge(Situation.of(words.split(), None, NAMES, engine=engine))}


@pytest.fixture
def engine(tmp_path: Path) -> EngineInfo:
    return read_engine(make_engine(tmp_path / "venv") / "lib" / "python3.12" / "site-packages")


def test_an_abbreviated_flag_is_named_with_its_variable_and_its_whole_name(engine: EngineInfo) -> None:
    check = spelling("--model-path /m --speculative-num-step 3 --tp=4", engine)["args.abbreviated"]
    assert (check.status, check.expected) == ("fail", "--speculative-num-steps, --tp-size")
    assert check.fix == (
        "write --speculative-num-steps instead of "
        "--speculative-num-step (sglang_server_extra_args.speculative_num_step), "
        "--tp-size instead of --tp (sglang_server_extra_args.tp)"
    )


@pytest.mark.parametrize(
    ("words", "known", "status"),
    [
        ("--model-path /m --tp-size=8 --tensor-parallel-size 8", True, "pass"),
        ("--model-path /m --verb", True, "fail"),
        # argparse refuses what begins several flags or none.
        ("--model-path /m --speculative-num 3 --nonsense", True, "pass"),
        # Without an engine only speculative flags are known.
        ("--model-path /m --speculative-num-step 3", False, "fail"),
        ("--model /m --tensor-parallel-size 8 --speculative-num-steps 3", False, "pass"),
        ("--model-path /m --mem-fraction 0.8", False, "skipped"),
    ],
)
def test_abbreviations(engine: EngineInfo, words: str, known: bool, status: str) -> None:
    assert spelling(words, engine if known else None)["args.abbreviated"].status == status


def test_a_setting_given_by_two_flags_names_both(engine: EngineInfo) -> None:
    check = spelling("--model-path /m --tp-size 8 --tp 4", engine)["args.twice"]
    assert check.status == "fail"
    assert check.actual.startswith("--tp-size (sglang_server_tp_size) and --tp (sglang_server_extra_args.tp): ")
    assert check.fix == "keep --tp-size (sglang_server_tp_size) alone, with the value that is meant"


@pytest.mark.parametrize(
    ("words", "known", "status"),
    [
        ("--model-path /m --tp-size 8", True, "pass"),
        ("--model-path /m --model-path /n", True, "fail"),
        ("--model-path /m --tensor-parallel-size 8 --tp-size 8", True, "fail"),
        ("--model /m --model-path /m", False, "fail"),
        ("--model-path /m --port 1 --port 2", False, "fail"),
        ("--model-path /m --speculative-num-steps 3", False, "pass"),
        ("--model-path /m --port 1", False, "skipped"),
    ],
)
def test_settings_given_twice(engine: EngineInfo, words: str, known: bool, status: str) -> None:
    assert spelling(words, engine if known else None)["args.twice"].status == status


def test_what_was_not_read_is_named(models: Path) -> None:
    found = checks_of(models, "--speculative-algorithm EAGLE3 --mem-fraction 0.8 --port 1")
    why = "the engine was not there to tell how it reads --mem-fraction, --port"
    assert [found[name].actual for name in ("abbreviated", "twice")] == [why, why]


def test_numbers_without_an_algorithm(models: Path) -> None:
    check = checks_of(models, "--speculative-num-steps 3")["no_algorithm"]
    assert check.status == "warn"
    assert check.fix.startswith("set --speculative-algorithm EAGLE3 or remove")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--model-path /m --speculative-algorithm EAGLE3", "fail"),
        ("--model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /m", "fail"),
        ("--model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /d", "pass"),
    ],
)
def test_drafter_path(words: str, status: str) -> None:
    checks = {check.id: check.status for check in judge(Situation.of(words.split(), None))}
    assert checks["args.drafter_path"] == status


def test_a_settings_file_hides_what_traps_look_for() -> None:
    assert judge(Situation.of(["--config", "/x.yml", "--speculative-algorithm", "EAGLE3"], None)) == []


def test_the_engine_reads_no_settings_file_by_an_abbreviated_flag(engine: EngineInfo) -> None:
    check = spelling("--model-path /m --conf /x.yml", engine)["args.abbreviated"]
    assert (check.status, check.expected) == ("fail", "--config")


@pytest.mark.parametrize(
    ("algorithm", "drafter", "status"),
    [
        ("EAGLE", "eagle3", "fail"),
        ("NEXTN", "eagle3-mla", "fail"),
        ("EAGLE", "eagle1", "pass"),
        ("EAGLE3", "eagle3", "pass"),
        ("EAGLE", "gone", "skipped"),
    ],
)
def test_eagle_with_an_eagle3_drafter(models: Path, algorithm: str, drafter: str, status: str) -> None:
    found = checks_of(models, f"--speculative-algorithm {algorithm}", drafter=drafter)
    assert found["drafter_algorithm"].status == status


@pytest.mark.parametrize(
    ("version", "base", "environment", "status"),
    [
        ("0.5.12", "llama", {}, "fail"),
        ("0.5.12", "llama", {"SGLANG_ENABLE_SPEC_V2": "0"}, "pass"),
        ("0.5.9", "llama", {}, "pass"),
        ("0.5.9", "llama", {"SGLANG_ENABLE_SPEC_V2": "True"}, "fail"),
        ("0.5.12", "kimi", {}, "pass"),
        ("0.5.12", "gone", {}, "skipped"),
        ("0.5.6.post3", "llama", {}, "skipped"),
        (None, "llama", {}, "skipped"),
    ],
)
def test_numbers_left_to_the_engine(
    models: Path, version: str | None, base: str, environment: dict[str, str], status: str
) -> None:
    found = checks_of(models, "--speculative-algorithm EAGLE3", base, version=version, environment=environment)
    assert found["chosen_topk"].status == status


@pytest.mark.parametrize("version", ["0.5.6.post2", "0.5.13.post1", "0.5.20"])
def test_other_releases_choose_what_they_can_draft(models: Path, version: str) -> None:
    assert "chosen_topk" not in checks_of(models, "--speculative-algorithm EAGLE3", version=version)


@pytest.mark.parametrize(
    ("words", "drafter", "status"),
    [
        ("--quantization compressed-tensors", "eagle3", "fail"),
        ("--quantization fp8", "eagle3", "warn"),
        ("--quantization compressed-tensors", "eagle3-int4", "pass"),
        ("--quantization compressed-tensors --speculative-draft-model-quantization unquant", "eagle3", "pass"),
        ("--quantization compressed-tensors", "gone", "skipped"),
    ],
)
def test_quantization_reaches_the_drafter(models: Path, words: str, drafter: str, status: str) -> None:
    found = checks_of(models, f"--speculative-algorithm EAGLE3 {words}", drafter=drafter)
    assert found["drafter_quantization"].status == status


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("0.5.7", "set --speculative-draft-model-quantization unquant"),
        ("0.5.5", "remove --quantization: the base's config.json declares its quantization itself"),
    ],
)
def test_quantization_fix_by_release(models: Path, version: str, fix: str) -> None:
    words = "--speculative-algorithm EAGLE3 --quantization compressed-tensors"
    assert checks_of(models, words, version=version)["drafter_quantization"].fix == fix


@pytest.mark.parametrize(
    ("words", "drafter", "status"),
    [
        ("--attention-backend flashmla", "eagle3", "fail"),
        ("--decode-attention-backend trtllm_mla", "eagle3", "fail"),
        ("--attention-backend flashmla --speculative-draft-attention-backend triton", "eagle3", "pass"),
        ("--attention-backend flashmla --speculative-draft-attention-backend flashmla", "eagle3", "fail"),
        ("--attention-backend flashmla", "eagle3-mla", "pass"),
        ("--attention-backend flashmla", "gone", "skipped"),
        ("--attention-backend triton", "eagle3", "pass"),
        ("", "eagle3", "skipped"),
    ],
)
def test_drafter_on_an_mla_backend(models: Path, words: str, drafter: str, status: str) -> None:
    found = checks_of(models, f"--speculative-algorithm EAGLE3 {words}", "kimi", drafter)
    assert found["drafter_attention"].status == status


def test_the_backend_that_the_engine_chose_counts(models: Path) -> None:
    chosen: dict[str, object] = {"attention_backend": "trtllm_mla"}
    found = checks_of(models, "--speculative-algorithm EAGLE3", "kimi", resolved=chosen)["drafter_attention"]
    assert found.status == "fail"
    assert found.fix == "set --speculative-draft-attention-backend triton"


def test_a_base_without_mla_has_no_such_trap(models: Path) -> None:
    assert "drafter_attention" not in checks_of(models, "--speculative-algorithm EAGLE3")


def test_model_facts(models: Path, tmp_path: Path) -> None:
    facts = model_facts(str(models / "kimi"))
    assert facts is not None
    assert (facts.architectures, facts.quantized, facts.mla) == (("KimiK25ForConditionalGeneration",), True, True)
    (models / "llama" / "hf_quant_config.json").write_text("{}")
    facts = model_facts(str(models / "llama"))
    assert facts is not None
    assert (facts.quantized, facts.mla) == (True, False)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text("[1]")
    for path in (None, "", "org/model", str(tmp_path / "none"), str(tmp_path / "bad")):
        assert model_facts(path) is None
