# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.modules import run

PIN = "Requires-Dist: compressed-tensors==0.18.0\n"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    files = {
        "sglang-0.5.20.dist-info/METADATA": f"Name: sglang\nRequires-Python: >=3.10\n{PIN}",
        "sglang/srt/server_args.py": 'class Spec:\n    speculative_num_steps: A[int, "Steps."] = None\n',
        "sglang/srt/speculative/spec_info.py": "class SpeculativeAlgorithm(Enum):\n    EAGLE = auto()\n",
        "sglang/srt/models/one.py": "class One:\n    pass\n\nEntryClass = One\n",
        "compressed_tensors-0.18.0.dist-info/METADATA": "Name: compressed-tensors\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True)
        (site / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("check_mode", [True, False])
def test_what_is_returned(venv: Path, check_mode: bool) -> None:
    result = run("sglang_info", venv=str(venv), check_mode=check_mode)
    assert result["changed"] is False
    assert result["version"] == "0.5.20"
    assert result["algorithms"] == ["EAGLE"]
    assert result["flags"] == {
        "--speculative-num-steps": {
            "default": None,
            "choices": None,
            "choices_text": "",
            "alias_of": "",
            "source": "sglang/srt/server_args.py:2",
        }
    }
    assert list(result["base_architectures"]) == ["One"]  # type: ignore[call-overload]
    assert result["requires"] == [
        {"requirement": "compressed-tensors==0.18.0", "installed": "0.18.0", "satisfied": True}
    ]
    assert result["compressed_tensors"] == "==0.18.0"


def test_site_packages_is_the_same(venv: Path) -> None:
    assert run("sglang_info", site_packages=f"{venv}/lib/python3.12/site-packages") == run(
        "sglang_info", venv=str(venv)
    ) | {
        "invocation": {
            "module_args": {
                "venv": None,
                "site_packages": f"{venv}/lib/python3.12/site-packages",
                "fail_on": "fail",
            }
        }
    }


def test_a_wrong_version_fails_and_still_tells_all(venv: Path) -> None:
    (venv / "lib/python3.12/site-packages/compressed_tensors-0.18.0.dist-info").rename(
        venv / "lib/python3.12/site-packages/compressed_tensors-0.8.1.dist-info"
    )
    result = run("sglang_info", venv=str(venv))
    assert result["failed"] is True
    assert "found compressed-tensors==0.18.0 is 0.8.1; fix: install 'compressed-tensors==0.18.0'" in str(result["msg"])
    assert result["version"] == "0.5.20"
    assert "failed" not in run("sglang_info", venv=str(venv), fail_on="never")


def test_no_engine_is_one_sentence(tmp_path: Path) -> None:
    assert (
        run("sglang_info", venv=str(tmp_path))["msg"]
        == f"{tmp_path} is no virtual environment; make it first (role sglang_install)"
    )
