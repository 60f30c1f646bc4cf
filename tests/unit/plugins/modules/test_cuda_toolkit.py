# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cuda_toolkit_info and cuda_toolkit_home as tasks run them: options in, JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import proof
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import venv
from ansible_collections.gpuserve.sglang.plugins.modules import cuda_toolkit_home, cuda_toolkit_info

from tests.fixtures.modules import in_process

RUNNING = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\n"


def lay_out(root: Path) -> Path:
    for part in (
        "bin/nvcc",
        "nvvm/bin/cicc",
        "include/crt/host_defines.h",
        "lib/libcudart.so.13",
        "include/cuda/std/x",
    ):
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).touch()
    (root / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION 13000\n")
    return root


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    torch = tmp_path / "engine/lib/python3.11/site-packages/torch"
    torch.mkdir(parents=True)
    (torch / "version.py").write_text("cuda: Optional[str] = '13.0'\n")
    (tmp_path / "engine/bin").mkdir()
    (tmp_path / "engine/bin/ninja").touch()
    return tmp_path / "engine"


def info(capsys: pytest.CaptureFixture[str], tmp_path: Path, **options: Any) -> dict[str, Any]:
    base = {
        "fallback_version": "13.0",
        "architectures": ["sm_120"],
        "installed_prefix": str(tmp_path / "cuda-"),
        "running_file": str(tmp_path / "version"),
        "compiler": "sh",
    }
    return in_process(capsys, cuda_toolkit_info, **{**base, **options})


def test_nothing_known_takes_the_fallback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = info(capsys, tmp_path)
    assert (result["version"], result["origin"], result["root"]) == ("13.0", "none", "")
    assert result["compiler_found"] is True
    skipped = [check["id"] for check in result["checks"] if check["status"] == "skipped"]
    assert skipped == ["cuda.driver", "cuda.torch"]


def test_what_is_no_version_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for option in ("version", "fallback_version"):
        told = info(capsys, tmp_path, **{option: "13.x"})
        assert told["msg"].startswith(
            f"cuda_toolkit: expected a version of CUDA like 13.0 as cuda_toolkit_{option}; found 13.x"
        )


def test_an_installed_one_and_the_engine_s_own_are_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path
) -> None:
    installed = lay_out(tmp_path / "cuda-13.0")
    result = info(capsys, tmp_path, engine_venv=str(engine))
    assert (result["origin"], result["root"]) == ("installed", str(installed))
    own = lay_out(engine / "lib/python3.11/site-packages/nvidia/cu13")
    result = info(capsys, tmp_path, engine_venv=str(engine))
    assert (result["origin"], result["root"]) == ("engine", str(own))
    # The compiler must be of the version that torch was built for.
    (engine / "lib/python3.11/site-packages/torch/version.py").write_text("cuda: Optional[str] = '13.1'\n")
    assert info(capsys, tmp_path, engine_venv=str(engine))["origin"] == "none"


def test_a_driver_that_is_too_old_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path) -> None:
    (tmp_path / "version").write_text(RUNNING.format("575.51.03"))
    result = info(capsys, tmp_path, engine_venv=str(engine))
    assert result["failed"] is True
    assert "[cuda.driver] expected a driver that runs CUDA 13.0; found driver 575.51.03 runs CUDA 12.9" in result["msg"]


def test_wheels_of_an_old_version_are_refused_unless_packages_bring_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "[cuda.wheels]" in info(capsys, tmp_path, version="12.8")["msg"]
    assert "failed" not in info(capsys, tmp_path, version="12.8", source="packages")


def home(capsys: pytest.CaptureFixture[str], tmp_path: Path, **options: Any) -> dict[str, Any]:
    base = {
        "home": str(tmp_path / "home"),
        "tools": str(tmp_path / "tools"),
        "version": "13.0",
        "architectures": ["sm_120"],
    }
    return in_process(capsys, cuda_toolkit_home, **{**base, **options})


def test_home_is_made_and_proven_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(engine / "lib/python3.11/site-packages/nvidia/cu13")
    monkeypatch.setattr(proof, "_compile", lambda *_: None)
    checked = home(capsys, tmp_path, venv=str(engine), _ansible_check_mode=True)
    assert (checked["changed"], (tmp_path / "home").exists()) == (True, False)
    first = home(capsys, tmp_path, venv=str(engine))
    assert (first["changed"], first["compiled"], first["root"]) == (True, ["sm_120"], str(root))
    assert first["diff"] == checked["diff"]
    second = home(capsys, tmp_path, venv=str(engine))
    assert (second["changed"], second["compiled"]) == (False, [])
    assert second["diff"]["before"] == second["diff"]["after"]


def settled(capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path, **options: Any) -> bool:
    held = {
        "home": str(tmp_path / "home"),
        "tools": str(tmp_path / "tools"),
        "venv": str(tmp_path / "own"),
        "version": "13.0",
        "python": "python3",
        "requirements": ["alpha==1.0"],
        **options.pop("held", {}),
    }
    told: bool = info(capsys, tmp_path, engine_venv=str(engine), held=held, **options)["settled"]
    return told


def test_settled_is_what_is_proven_with_the_engine_s_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(engine / "lib/python3.11/site-packages/nvidia/cu13")
    monkeypatch.setattr(proof, "_compile", lambda *_: None)
    assert not settled(capsys, tmp_path, engine)
    # The info module's compiler is another than the default.
    home(capsys, tmp_path, venv=str(engine), compiler="sh")
    assert settled(capsys, tmp_path, engine)
    assert not info(capsys, tmp_path, engine_venv=str(engine))["settled"]
    assert not settled(capsys, tmp_path, engine, architectures=["sm_120", "sm_90"])
    assert not settled(capsys, tmp_path, engine, compiler="no-such-compiler")
    assert not settled(capsys, tmp_path, engine, held={"tools": str(tmp_path / "elsewhere")})
    (root / "bin/nvcc").write_text("another")
    assert not settled(capsys, tmp_path, engine)


def test_settled_is_what_is_proven_with_the_wheels(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    site = own / "lib/python3.11/site-packages"
    lay_out(site / "nvidia/cu13")
    (own / "bin").mkdir()
    (own / "bin/ninja").touch()
    monkeypatch.setattr(proof, "_compile", lambda *_: None)
    home(capsys, tmp_path, venv=str(own), compiler="sh")
    wrong: list[str] = []
    monkeypatch.setattr(venv, "problems", lambda _state, request: wrong if request.path == own else ["another"])
    assert settled(capsys, tmp_path, engine)
    # What the requirements say is for another version than was chosen.
    assert not settled(capsys, tmp_path, engine, held={"version": "13.1"})
    assert not settled(capsys, tmp_path, engine, source="packages")
    wrong.append("ninja is missing")
    assert not settled(capsys, tmp_path, engine)


def test_a_toolkit_that_is_broken_or_of_another_version_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path
) -> None:
    assert "found no such; fix: remove" in home(capsys, tmp_path, venv=str(engine))["msg"]
    lay_out(engine / "lib/python3.11/site-packages/nvidia/cu13")
    assert "found CUDA 13.0; fix: " in home(capsys, tmp_path, venv=str(engine), version="12.8")["msg"]


def test_a_failing_compiler_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(engine / "lib/python3.11/site-packages/nvidia/cu13")

    def refuse(*_: object) -> None:
        raise proof.ProofError("unsupported GNU version!")

    monkeypatch.setattr(proof, "_compile", refuse)
    message = home(capsys, tmp_path, venv=str(engine))["msg"]
    assert "to compile and link for sm_120; found: unsupported GNU version!; fix: " in message
