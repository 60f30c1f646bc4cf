# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib
from pathlib import Path

import yaml
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.expected import TYPES

from tests.fixtures.modules import run

MODULES = "ansible_collections.gpuserve.sglang.plugins.modules"


def test_a_failing_check_fails_with_its_fix_and_still_returns_the_checks(tmp_path: Path) -> None:
    result = run("gpu_health", devices=[str(tmp_path / "nvidia-uvm")], driver="absent")
    assert result["failed"]
    assert "[node.nvidia-uvm] expected" in result["msg"]
    assert "the node does not exist; fix: " in result["msg"]
    assert result["checks"][0]["status"] == "fail"


def test_an_ignored_check_is_still_returned_but_does_not_stop(tmp_path: Path) -> None:
    result = run("gpu_health", devices=[str(tmp_path / "nvidia-uvm")], driver="absent", ignore=["node.nvidia-uvm"])
    assert "failed" not in result
    assert result["ignored"] == ["node.nvidia-uvm"]
    assert "1 failed" in result["summary"]


def test_an_ignored_id_that_no_check_has_is_warned_about() -> None:
    result = run("gpu_health", devices=["/dev/null"], driver="absent", ignore=["gpu.tempreature"])
    assert "gpu.tempreature is no check of this run" in str(result["warnings"])


def test_a_lab_passes_in_check_mode() -> None:
    result = run("gpu_health", devices=["/dev/null"], driver="absent", check_mode=True)
    assert not result["changed"]
    assert "failed" not in result
    assert {check["status"] for check in result["checks"] if check["id"].startswith(("cuda.", "gpu."))} == {"skipped"}


def test_no_parameters_end_in_a_result() -> None:
    assert {"checks", "summary", "gpus"} <= set(run("gpu_health"))


def test_a_threshold_that_does_not_exist_is_refused() -> None:
    assert "warp_speed" in run("gpu_health", thresholds={"warp_speed": 9})["msg"]


def test_the_documented_thresholds_are_those_of_the_data_file() -> None:
    module = importlib.import_module(f"{MODULES}.gpu_health")
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]["thresholds"]["suboptions"]
    assert {name: option["type"] for name, option in documented.items()} == dict(TYPES)


def test_ids_are_unique_and_the_same_whatever_the_machine(tmp_path: Path) -> None:
    ids = [check["id"] for check in run("gpu_health", devices=["/dev/null"], driver="absent", level="deep")["checks"]]
    assert len(ids) == len(set(ids))
    without = run("gpu_health", devices=["/dev/null"], venv=str(tmp_path))["checks"]
    assert [check["id"] for check in without] == [name for name in ids if not name.startswith("deep.")]
