# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the real engine's parser reads flags, against what is read from its source, and what is refused of it.

It needs a venv with SGLang 0.5.20 built for a CPU, like test_served_pairs.py::

    GPUSERVE_ENGINE_VENV=/opt/sglang/venv pytest tests/engine/test_spellings.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.arguments import judge
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.asking import ask
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.flags import spelled_in
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.packages import site_packages_of
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import read_engine

VENV = os.environ.get("GPUSERVE_ENGINE_VENV", "")
STANDINS = os.environ.get("GPUSERVE_ENGINE_STANDINS", str(Path(__file__).parents[2] / "lab" / "engine" / "standins"))
ENVIRONMENT = {"PYTHONPATH": STANDINS, "SGLANG_USE_CPU_ENGINE": "1"}


@pytest.fixture(scope="module", autouse=True)
def _venv() -> None:
    assert VENV, "set GPUSERVE_ENGINE_VENV to a venv with SGLang for a CPU"


def test_every_beginning_of_every_flag_is_read_as_the_parser_reads_it() -> None:
    declared = {name: flag.alias_of for name, flag in read_engine(site_packages_of(Path(VENV))).flags.items()}
    words = sorted({flag[:end] for flag in declared for end in range(3, len(flag) + 1)} - {"--config"})
    answer = ask(Path(VENV) / "bin" / "python", words, ENVIRONMENT, 300)
    told, read = answer.spelled, spelled_in(words, declared)
    assert [flag for flag in words if told[flag].option != read[flag].option] == []
    # The names of settings differ, what they hold together does not.
    pairs = {(told[flag].setting, read[flag].setting) for flag in words if flag in declared}
    assert len(pairs) == len({mine for mine, _ in pairs}) == len({its for _, its in pairs})


def checks_of(words: str) -> dict[str, Check]:
    names = {"--tp-size": "sglang_server_tp_size", "--mem-fraction": "sglang_server_extra_args.mem_fraction"}
    found = judge(f"--model-path /no/model --device cpu {words}".split(), "0.5.20", VENV, ENVIRONMENT, (), 300, names)
    return {check.id: check for check in found.checks}


def test_abbreviations_are_refused() -> None:
    found = checks_of("--mem-fraction 0.8 --speculative-num-step 3 --tp=4 --tp-size 8")
    check = found["args.abbreviated"]
    assert (check.status, check.expected) == ("fail", "--mem-fraction-static, --speculative-num-steps, --tp-size")
    assert "--mem-fraction-static instead of --mem-fraction (sglang_server_extra_args.mem_fraction)" in check.fix
    assert found["args.twice"].actual.startswith("--tp and --tp-size (sglang_server_tp_size): ")


def test_aliases_are_whole_flags() -> None:
    found = checks_of("--tensor-parallel-size=2 --ep 2 --nccl-init-addr 127.0.0.1:1 --mem-fraction-static 0.8")
    assert (found["args.abbreviated"].status, found["args.twice"].status) == ("pass", "pass")
    assert checks_of("--ep 2 --expert-parallel-size 2")["args.twice"].status == "fail"


def test_what_begins_several_is_left_to_the_parser() -> None:
    found = checks_of("--speculative-num 3")
    assert (found["args.abbreviated"].status, found["args.flags"].status) == ("pass", "fail")
