# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.rules import judge
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.situation import Situation
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version

NAMES = {
    "--speculative-algorithm": "sglang_server_speculative_algorithm",
    "--speculative-num-steps": "sglang_server_speculative_num_steps",
    "--speculative-eagle-topk": "sglang_server_speculative_eagle_topk",
    "--speculative-num-draft-tokens": "sglang_server_speculative_num_draft_tokens",
}
EAGLE3 = "--model-path /m --speculative-algorithm EAGLE3 --speculative-draft-model-path /d"
CHAIN = f"{EAGLE3} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
TREE = f"{EAGLE3} --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"


def checks_of(words: str, version: str | None = "0.5.20", **more: object) -> dict[str, Check]:
    situation = Situation.of(words.split(), parse_version(version) if version else None, NAMES, **more)  # type: ignore[arg-type]
    return {check.id: check for check in judge(situation)}


def statuses(words: str, version: str | None = "0.5.20", **more: object) -> dict[str, str]:
    return {name.removeprefix("args."): check.status for name, check in checks_of(words, version, **more).items()}


def test_a_right_list_passes() -> None:
    assert statuses(CHAIN) == {
        "flags": "pass",
        "algorithm": "pass",
        "three_numbers": "pass",
        "chain_length": "pass",
    }


def test_without_speculation_there_is_nothing_to_judge() -> None:
    assert statuses("--model-path /m --tp-size 8") == {}


def test_no_version_is_not_a_pass() -> None:
    assert statuses(CHAIN, None) == {
        "flags": "skipped",
        "algorithm": "skipped",
        "three_numbers": "pass",
        "chain_length": "pass",
    }


def test_draft_tokens_alone_names_all_three_variables() -> None:
    check = checks_of(f"{EAGLE3} --speculative-num-draft-tokens 3")["args.three_numbers"]
    assert check.status == "fail"
    assert "sglang_server_speculative_num_draft_tokens" in check.actual
    assert (
        "sglang_server_speculative_num_steps: 2, sglang_server_speculative_eagle_topk: 1, "
        "sglang_server_speculative_num_draft_tokens: 3"
    ) in check.fix


def test_steps_and_draft_tokens_without_topk() -> None:
    check = checks_of(f"{EAGLE3} --speculative-num-steps 1 --speculative-num-draft-tokens 3")["args.three_numbers"]
    assert check.status == "fail"
    assert "without --speculative-eagle-topk (sglang_server_speculative_eagle_topk)" in check.actual


@pytest.mark.parametrize(
    ("given", "steps", "topk", "tokens"),
    [
        ("--speculative-num-steps 4", 4, 1, 5),
        ("--speculative-eagle-topk 4", 5, 4, 8),
        ("--speculative-eagle-topk 1", 3, 1, 4),
        ("--speculative-num-draft-tokens 1", 3, 1, 4),
    ],
)
def test_the_fix_is_a_set_that_fits(given: str, steps: int, topk: int, tokens: int) -> None:
    fix = checks_of(f"{EAGLE3} {given}")["args.three_numbers"].fix
    values = re.findall(r"sglang_server_speculative_(?:num_steps|eagle_topk|num_draft_tokens): (\d+)", fix)
    assert values == [str(steps), str(topk), str(tokens)]
    whole = f"--speculative-num-steps {steps} --speculative-eagle-topk {topk} --speculative-num-draft-tokens {tokens}"
    assert "fail" not in statuses(f"{EAGLE3} {whole}").values()


def test_chain_that_the_engine_would_shorten() -> None:
    words = f"{EAGLE3} --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3"
    check = checks_of(words)["args.chain_length"]
    assert check.status == "fail"
    assert "silently makes 2" in check.actual
    assert check.fix == (
        "set sglang_server_speculative_num_steps: 2 to keep 3 draft tokens, "
        "or set sglang_server_speculative_num_draft_tokens: 2, which is what would run"
    )
    allowed = {"allow_adjusted": ["speculative_num_draft_tokens"]}
    assert statuses(words, **allowed)["chain_length"] == "warn"


def test_adaptive_speculation_needs_no_numbers() -> None:
    assert "three_numbers" not in statuses(f"{EAGLE3} --speculative-adaptive --speculative-eagle-topk 1")


@pytest.mark.parametrize(
    ("algorithm", "version", "status"),
    [
        ("EAGLE3", "0.4.6.post5", "pass"),
        ("eagle3", "0.5.12", "pass"),
        ("eagle3", "0.5.11", "fail"),
        ("NEXTN", "0.5.23", "pass"),
        ("DDTREE", "0.5.20", "fail"),
        ("DFLASH", "0.5.10.post1", "fail"),
        ("DFLASH", "0.5.11", "pass"),
        ("DDTREE", "0.5.15.post1", "fail"),
        # What a release that was not read may know is not refused.
        ("NEWER", "0.6.0", "warn"),
        ("STANDALONE", "0.5.1", "warn"),
    ],
)
def test_algorithm(algorithm: str, version: str, status: str) -> None:
    words = f"--model-path /m --speculative-algorithm {algorithm} --speculative-draft-model-path /d"
    assert statuses(words, version)["algorithm"] == status


def test_unknown_algorithm_names_the_known_ones_and_the_variable() -> None:
    check = checks_of("--speculative-algorithm EAGLE4")["args.algorithm"]
    assert "EAGLE, EAGLE3, NEXTN" in check.expected
    assert "sglang_server_speculative_algorithm: EAGLE3" in check.fix


def test_a_plugin_may_bring_its_own_algorithm() -> None:
    words, plugins = "--speculative-algorithm MINE", {"environment": {"SGLANG_PLUGINS": "mine"}}
    assert statuses(words, **plugins)["algorithm"] == "warn"


def test_a_settings_file_hides_what_rules_look_for() -> None:
    assert statuses("--config /x.yml --speculative-algorithm EAGLE3 --speculative-num-steps 3") == {"rules": "skipped"}


@pytest.mark.parametrize(
    ("flag", "version", "status"),
    [
        ("--speculative-draft-model-quantization unquant", "0.5.7", "pass"),
        ("--speculative-draft-model-quantization unquant", "0.5.6.post2", "fail"),
        ("--speculative-skip-dp-mlp-sync", "0.5.22", "pass"),
        ("--speculative-skip-dp-mlp-sync", "0.5.23", "fail"),
        ("--enable-beta-spec", "0.5.5", "fail"),
        ("--speculative-no-such-thing", "0.5.20", "fail"),
        ("--speculative-no-such-thing", "0.6.0", "warn"),
        ("--speculative-draft-sink-size 4", "0.6.0", "skipped"),
    ],
)
def test_flags_of_a_release(flag: str, version: str, status: str) -> None:
    assert statuses(f"{CHAIN} {flag}", version)["flags"] == status


def test_a_flag_that_went_names_its_successor() -> None:
    check = checks_of(f"{CHAIN} --speculative-dflash-draft-window-size 64")["args.flags"]
    assert check.fix == "use --speculative-draft-window-size instead"


def test_a_flag_that_is_newer_names_the_release() -> None:
    check = checks_of(f"{CHAIN} --speculative-draft-attention-backend triton", "0.5.5")["args.flags"]
    assert check.fix == "remove it or install SGLang 0.5.7 or newer"


def test_short_forms_that_argparse_takes() -> None:
    words = "--model /m --speculative-algo EAGLE3 --speculative-draft-model /d --speculative-num-draft 4"
    assert statuses(words) == {
        "flags": "pass",
        "algorithm": "pass",
        "three_numbers": "fail",
    }


@pytest.mark.parametrize(
    ("words", "version", "status"),
    [
        (f"{CHAIN} --pp-size 2", "0.5.9", "fail"),
        (f"{CHAIN} --pipeline-parallel-size 2", "0.5.23", "fail"),
        (f"{CHAIN} --pp-size 1", "0.5.23", "pass"),
        ("--speculative-algorithm EAGLE --pp-size 2", "0.5.19", "fail"),
        ("--speculative-algorithm EAGLE --pp-size 2", "0.5.21", "skipped"),
        ("--speculative-algorithm EAGLE --pp-size 2", None, "skipped"),
    ],
)
def test_pipeline_parallel(words: str, version: str | None, status: str) -> None:
    assert statuses(words, version)["pipeline_parallel"] == status


@pytest.mark.parametrize(
    ("words", "version", "status"),
    [
        (f"{TREE} --decode-attention-backend trtllm_mha", "0.5.20", "fail"),
        (TREE, "0.5.20", "skipped"),
        (f"{TREE} --attention-backend triton --page-size 16", "0.5.20", "pass"),
        (f"{TREE} --attention-backend triton --page-size 16", "0.5.9", "fail"),
        (f"{TREE} --attention-backend triton --page-size 1", "0.5.9", "pass"),
        (f"{TREE} --attention-backend fa3 --page-size 16", "0.5.5", "fail"),
        (f"{TREE} --attention-backend fa3 --page-size 16", "0.4.9", "skipped"),
        (f"{TREE} --attention-backend fa3 --page-size 16", None, "skipped"),
    ],
)
def test_tree_backend(words: str, version: str | None, status: str) -> None:
    assert statuses(words, version)["tree_backend"] == status
