# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.arguments import Judgement, judge, secrets_in

from tests.unit.plugins.module_utils.engine.fake_engine import make_engine

NAMES = {
    "--model-path": "sglang_server_model_path",
    "--speculative-num-steps": "sglang_server_speculative_num_steps",
    "--speculative-eagle-topk": "sglang_server_speculative_eagle_topk",
    "--speculative-num-draft-tokens": "sglang_server_speculative_num_draft_tokens",
}
EAGLE3 = "--model-path org/model --device cpu --speculative-algorithm EAGLE3 --speculative-draft-model-path /d"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An engine of a release that no table covers, so that it is asked whatever the rules say."""
    venv = make_engine(tmp_path / "venv", "0.9.0")
    source = venv / "lib/python3.12/site-packages/sglang/srt/server_args.py"
    source.write_text(
        source.read_text().replace(
            '        parser.add_argument("--api-key"',
            '        parser.add_argument("--speculative-draft-model-path")\n        parser.add_argument("--api-key"',
        )
    )
    return venv


def put(
    venv: Path, words: str, version: str | None = None, allow_adjusted: tuple[str, ...] = (), timeout: float = 60
) -> Judgement:
    return judge(words.split(), version, str(venv), {"N": 1}, allow_adjusted, timeout, NAMES)


def check_of(found: Judgement, name: str) -> Check:
    return next(check for check in found.checks if check.id == f"args.{name}")


def ids(found: Judgement, *statuses: str) -> set[str]:
    return {check.id.removeprefix("args.") for check in found.checks if check.status in statuses}


def test_a_right_list(venv: Path) -> None:
    found = put(venv, f"{EAGLE3} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4")
    assert found.valid
    assert ids(found, "pass") == {
        *("engine", "adjusted", "flags", "algorithm", "three_numbers", "chain_length", "drafter_path"),
        *("abbreviated", "twice"),
    }
    assert found.resolved["speculative_num_draft_tokens"] == 4
    assert (found.adjusted, found.not_binding) == ([], [])


def test_draft_tokens_alone(venv: Path) -> None:
    found = put(venv, f"{EAGLE3} --speculative-num-draft-tokens 3")
    engine = check_of(found, "engine")
    assert engine.status == "fail"
    assert engine.actual.startswith("an assertion without a message at sglang/srt/server_args.py:")
    assert engine.fix == "see args.three_numbers"
    assert "sglang_server_speculative_num_steps: 2" in check_of(found, "three_numbers").fix


def test_topk_missing(venv: Path) -> None:
    found = put(venv, f"{EAGLE3} --speculative-num-steps 1 --speculative-num-draft-tokens 3")
    assert "TypeError: '>' not supported" in check_of(found, "engine").actual
    assert "sglang_server_speculative_eagle_topk" in check_of(found, "three_numbers").actual


SHORT = f"{EAGLE3} --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3"


def test_a_silent_change_is_refused_with_two_ways_out(venv: Path) -> None:
    found = put(venv, SHORT)
    assert not found.valid
    check = check_of(found, "adjusted.speculative_num_draft_tokens")
    assert "= 3 becomes 2: speculative_num_draft_tokens is adjusted to" in check.actual
    assert check.fix == (
        "set sglang_server_speculative_num_steps: 2 to keep 3 draft tokens, "
        "or set sglang_server_speculative_num_draft_tokens: 2, which is what would run"
    )
    assert found.adjusted[0] == {
        "flag": "--speculative-num-draft-tokens",
        "asked": 3,
        "effective": 2,
        "reason": "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1",
        "binding": True,
    }
    # The engine has taken the list: what the rules think of it does not count any more.
    assert "chain_length" not in ids(found, "fail", "warn")


def test_an_accepted_change_is_a_warning(venv: Path) -> None:
    found = put(venv, SHORT, allow_adjusted=("speculative-num-draft-tokens",))
    assert found.valid
    assert check_of(found, "adjusted.speculative_num_draft_tokens").status == "warn"
    assert found.adjusted[0]["effective"] == 2


def test_another_changed_value_is_a_warning(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cpu --attention-backend intel_amx")
    check = check_of(found, "adjusted.attention_backend")
    assert check.status == "warn"
    assert check.actual == "--attention-backend = intel_amx becomes torch_native: decided by _handle_everything"


def test_what_depends_on_a_gpu_is_not_binding_without_one(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cuda --attention-backend intel_amx")
    assert found.valid
    assert check_of(found, "adjusted.attention_backend").status == "skipped"
    assert found.adjusted[0]["binding"] is False
    assert found.not_binding == ["attention_backend"]
    assert "there is no GPU here" in check_of(found, "engine").actual


def test_a_refusal_for_want_of_the_gpu_says_nothing_about_the_target(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cuda --attention-backend fa3")
    assert found.valid
    assert check_of(found, "engine").status == "skipped"
    assert "refused for want of the target's GPU: ValueError: FA3 requires Hopper" in check_of(found, "engine").actual


def test_the_parser_s_refusal_names_flag_and_variable(venv: Path) -> None:
    found = put(venv, f"{EAGLE3} --speculative-num-stepz 3")
    assert check_of(found, "engine").actual == "unrecognized arguments: --speculative-num-stepz 3"
    assert check_of(found, "flags").fix == "write --speculative-num-steps if that is meant, else remove it"
    found = put(venv, f"{EAGLE3} --speculative-num-steps three")
    assert "invalid int value: 'three'" in check_of(found, "engine").actual
    assert check_of(found, "engine").fix == "see args.three_numbers"
    found = put(venv, "--model-path org/model --device cpu --tensor-parallel-size eight")
    assert check_of(found, "engine").fix == "change or remove --tensor-parallel-size, --tp-size"


def test_a_value_too_many_names_the_flag_before_it(venv: Path) -> None:
    engine = check_of(put(venv, "--model-path org/model --device cpu --verbose yes"), "engine")
    assert (engine.actual, engine.fix) == ("unrecognized arguments: yes", "change or remove --verbose")


def test_the_parser_tells_what_it_takes_for_another_flag(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cpu --tensor 2 --speculative-num-st=3")
    # The engine takes them, and what else is asked sees them as whole ones.
    assert check_of(found, "engine").status == "pass"
    assert found.resolved["speculative_num_steps"] == 3
    check = check_of(found, "abbreviated")
    assert (check.status, check.expected) == ("fail", "--tensor-parallel-size, --speculative-num-steps")
    assert check.actual == "--tensor, --speculative-num-st, which the engine completes without a word"


def test_a_flag_that_only_the_parser_knows_is_no_abbreviation(tmp_path: Path) -> None:
    """What a plugin adds is not in the source that is read."""
    venv = make_engine(tmp_path / "venv", "0.9.0")
    plugin = venv / "lib/python3.12/site-packages/sglang/srt/plugins/__init__.py"
    server_args = venv / "lib/python3.12/site-packages/sglang/srt/server_args.py"
    plugin.write_text(
        "def load_plugins():\n    pass\n\n\ndef add(parser):\n    parser.add_argument('--speculative-num-st')\n"
    )
    text = server_args.read_text().replace(
        "    raw = parser.parse_args",
        "    from sglang.srt.plugins import add\n    add(parser)\n    raw = parser.parse_args",
    )
    server_args.write_text(text)
    found = put(venv, "--model-path org/model --device cpu --speculative-num-st 3")
    assert (check_of(found, "engine").status, check_of(found, "abbreviated").status) == ("pass", "pass")


def test_a_setting_by_two_spellings(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cpu --tp-size 8 --tensor-parallel-size 4")
    assert found.resolved["tp_size"] == 4
    assert check_of(found, "twice").actual == (
        "--tp-size and --tensor-parallel-size: the engine takes the last one without a word"
    )


def test_unknown_algorithm(venv: Path) -> None:
    found = put(venv, EAGLE3.replace("EAGLE3", "DDTREE"))
    assert "Unknown speculative algorithm name: DDTREE" in check_of(found, "engine").actual
    assert check_of(found, "engine").fix == "see args.algorithm"
    assert check_of(found, "algorithm").expected == "one of EAGLE, EAGLE3"


def test_a_message_of_the_engine_is_passed_on_with_its_flags(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cpu --tp-size 64")
    engine = check_of(found, "engine")
    assert engine.actual.startswith("AssertionError: tp_size must be smaller than 64 at sglang/srt/server_args.py:")
    assert engine.fix == "change or remove --tp-size"


def test_a_model_that_is_not_there(venv: Path) -> None:
    engine = check_of(put(venv, "--model-path /no/such/model --device cpu"), "engine")
    assert engine.status == "fail"
    assert engine.actual == "--model-path (sglang_server_model_path) = /no/such/model, where no model is"


def test_a_hang(venv: Path) -> None:
    engine = check_of(put(venv, "--model-path hang --device cpu", timeout=3), "engine")
    assert engine.status == "fail"
    assert engine.actual.endswith("last lines: waiting for the other ranks")


def test_a_death(venv: Path) -> None:
    engine = check_of(put(venv, "--model-path die --device cpu"), "engine")
    assert (engine.status, engine.actual) == ("fail", "the process ended with signal 9; last lines: Segmentation fault")


def test_an_engine_that_cannot_be_imported_leaves_the_rules(tmp_path: Path) -> None:
    venv = make_engine(tmp_path / "venv")
    (venv / "lib/python3.12/site-packages/torch/__init__.py").unlink()
    (venv / "lib/python3.12/site-packages/sglang/srt/plugins/__init__.py").write_text("import no_such_package\n")
    found = put(venv, "--model-path org/model --device cpu")
    engine = check_of(found, "engine")
    assert (found.valid, engine.status) == (True, "skipped")
    assert "cannot be imported: ModuleNotFoundError" in engine.actual
    assert "types of values, and combinations that no other check here names, were not judged" in engine.actual
    assert check_of(found, "flags").status == "pass"
    assert not put(venv, "--model-path org/model --device cpu --no-such-flag").valid


def test_a_rule_of_a_known_release_refuses_at_once(tmp_path: Path) -> None:
    venv = make_engine(tmp_path / "venv", "0.5.20")
    (venv / "bin" / "python").write_text("#!/bin/sh\ntouch $0.asked\n")
    found = put(venv, "--model-path org/model --device cpu --speculative-algorithm EAGLE3 --speculative-num-steps 3")
    assert not found.valid
    assert "it was not asked" in check_of(found, "engine").actual
    assert not (venv / "bin" / "python.asked").exists()


def test_a_plugin_may_know_better_than_the_rules(tmp_path: Path) -> None:
    venv = make_engine(tmp_path / "venv", "0.5.20")
    plugin = venv / "lib/python3.12/site-packages/mine-1.0.dist-info"
    plugin.mkdir()
    (plugin / "entry_points.txt").write_text("[sglang.srt.plugins]\nmine = mine:load\n")
    source = venv / "lib/python3.12/site-packages/sglang/srt/server_args.py"
    source.write_text(source.read_text().replace('("EAGLE", "EAGLE3")', '("EAGLE", "MINE")'))
    numbers = "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2"
    assert put(venv, f"--model-path org/model --device cpu --speculative-algorithm MINE {numbers}").valid


def test_another_release_is_not_asked(venv: Path) -> None:
    found = put(venv, "--model-path org/model --device cpu", version="0.5.20")
    assert check_of(found, "engine").actual.startswith(f"{venv} holds SGLang 0.9.0, the list is for 0.5.20; ")


def test_without_an_engine_the_chain_is_judged_by_rule(tmp_path: Path) -> None:
    found = put(tmp_path, SHORT, version="0.5.20")
    assert check_of(found, "engine").status == "skipped"
    assert (found.adjusted[0]["asked"], found.adjusted[0]["effective"]) == (3, 2)


def test_a_settings_file_is_left_to_the_engine(tmp_path: Path) -> None:
    found = put(tmp_path, "--config /x.yml --speculative-algorithm EAGLE3", version="0.5.20")
    assert ids(found, "skipped") == {"engine", "rules"}


def test_secrets_are_not_told(venv: Path) -> None:
    words = ["--api-key", "k1", "--admin-api-key=k2", "--tp-size", "8"]
    assert secrets_in(words) == {"k1", "k2"}
    assert "api_key" not in put(venv, "--model-path org/model --device cpu --api-key k1").resolved
