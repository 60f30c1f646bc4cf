# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import toolkit

PARTS = (
    "bin/nvcc",
    "nvvm/bin/cicc",
    "include/crt/host_defines.h",
    "lib/libcudart.so.13",
    "include/cccl/cuda/std/array",
)


def lay_out(root: Path, number: int = 13000) -> Path:
    for part in PARTS:
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).touch()
    (root / "include/cuda_runtime_api.h").write_text(f"// x\n#define CUDART_VERSION  {number}\n")
    return root


def site(venv: Path) -> Path:
    return venv / "lib/python3.11/site-packages"


@pytest.mark.parametrize(("number", "version"), [(13000, "13.0"), (12080, "12.8"), (13010, "13.1")])
def test_version_is_the_header_s(tmp_path: Path, number: int, version: str) -> None:
    assert toolkit.inspect(lay_out(tmp_path, number)) == toolkit.Toolkit(tmp_path, version)


@pytest.mark.parametrize("part", [*PARTS, "include/cuda_runtime_api.h"])
def test_a_toolkit_without_a_part_is_none(tmp_path: Path, part: str) -> None:
    lay_out(tmp_path)
    (tmp_path / part).unlink()
    if part.endswith("/array"):
        (tmp_path / part).parent.rmdir()
    assert toolkit.inspect(tmp_path) is None


def test_a_venv_brings_it_with_ninja_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit.shutil, "which", lambda _: None)
    root = lay_out(site(tmp_path) / "nvidia/cu13")
    assert toolkit.in_venv(tmp_path) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ninja").touch()
    assert toolkit.in_venv(tmp_path) == toolkit.Toolkit(root, "13.0")
    assert toolkit.ninja(tmp_path) == tmp_path / "bin/ninja"
    assert toolkit.in_venv(None) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n", "13.0"),
        ("cuda = '12.8'\n", "12.8"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.2'\n", ""),
    ],
)
def test_what_torch_was_built_for(tmp_path: Path, text: str, told: str) -> None:
    assert toolkit.torch_cuda(tmp_path) == ""
    path = site(tmp_path) / "torch/version.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert toolkit.torch_cuda(tmp_path) == told


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("580.95.05", "13.0"), ("575.51.03", "12.9"), ("999.1", "13.1"), ("470.256.02", ""), ("", "")],
)
def test_driver_maximum(driver: str, cuda: str) -> None:
    assert toolkit.driver_maximum(driver) == cuda


@pytest.mark.parametrize(
    ("asked", "torch", "maximum", "version"),
    [
        ("12.9", "13.0", "13.1", "12.9"),
        ("", "12.8", "13.1", "12.8"),
        ("", "", "12.9", "12.9"),
        ("", "", "13.1", "13.0"),
        ("", "", "", "13.0"),
    ],
)
def test_choice(asked: str, torch: str, maximum: str, version: str) -> None:
    assert toolkit.choose(asked, torch, maximum, "13.0")[0] == version


def status(version: str, torch: str = "", driver: str = "", architectures: tuple[str, ...] = ()) -> dict[str, str]:
    checks = toolkit.judge(version, torch, toolkit.driver_maximum(driver), driver, architectures)
    return {check.id: check.status for check in checks}


@pytest.mark.parametrize(
    ("driver", "told"),
    [("580.95.05", "pass"), ("590.44.01", "pass"), ("575.51.03", "fail"), ("470.256.02", "fail"), ("", "skipped")],
)
def test_driver_against_13_0(driver: str, told: str) -> None:
    assert status("13.0", driver=driver)["cuda.driver"] == told


def test_a_newer_minor_is_warned_of() -> None:
    assert status("13.1", driver="580.95.05")["cuda.driver"] == "warn"
    assert status("13.1", torch="13.0")["cuda.torch"] == "warn"


@pytest.mark.parametrize(("torch", "told"), [("13.0", "pass"), ("12.8", "fail"), ("", "skipped")])
def test_torch_against_13_0(torch: str, told: str) -> None:
    assert status("13.0", torch=torch)["cuda.torch"] == told


@pytest.mark.parametrize(
    ("version", "architecture", "told"),
    [
        ("13.0", "sm_120", "pass"),
        ("12.8", "sm_120", "pass"),
        ("12.6", "sm_120", "fail"),
        ("12.6", "sm_90", "pass"),
        ("13.0", "sm_999", "skipped"),
    ],
)
def test_architectures(version: str, architecture: str, told: str) -> None:
    assert status(version, architectures=(architecture,))["cuda.architecture"] == told


def test_wheels_begin_with_13() -> None:
    assert toolkit.judge_wheels("13.0").status == "pass"
    assert toolkit.judge_wheels("12.8").status == "fail"
