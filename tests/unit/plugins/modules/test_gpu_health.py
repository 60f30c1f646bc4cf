# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[4]
MODULE = "ansible_collections.gpuserve.sglang.plugins.modules.gpu_health"


def run(**parameters: object) -> dict[str, Any]:
    """The module as Ansible runs it, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", MODULE, json.dumps({"ANSIBLE_MODULE_ARGS": parameters})],
        env={"PYTHONPATH": str(REPOSITORY / ".build/collections"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(ended.stdout)


def test_a_failing_check_fails_with_its_fix_and_still_returns_the_checks(tmp_path: Path) -> None:
    result = run(devices=[str(tmp_path / "nvidia-uvm")], driver="absent")
    assert result["failed"]
    assert "[node.nvidia-uvm] expected" in result["msg"]
    assert "the node does not exist; fix: " in result["msg"]
    assert [check["status"] for check in result["checks"]] == ["fail", "skipped", "skipped", "skipped", "skipped"]


def test_an_ignored_check_is_still_returned(tmp_path: Path) -> None:
    result = run(devices=[str(tmp_path / "nvidia-uvm")], driver="absent", ignore=["node.nvidia-uvm"])
    assert "failed" not in result
    assert result["ignored"] == ["node.nvidia-uvm"]
    assert result["summary"] == "GPU health: 1 failed, 4 not checked"


def test_a_lab_passes_in_check_mode() -> None:
    result = run(devices=["/dev/null"], driver="absent", _ansible_check_mode=True)
    assert (result["changed"], result["summary"]) == (False, "GPU health: 1 passed, 4 not checked")


def test_no_parameters_end_in_a_result() -> None:
    result = run()
    assert {"checks", "summary", "gpus"} <= set(result)
