# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import caches

INFORMATION = "Model: \t\t NVIDIA RTX PRO 6000 Blackwell Workstation Edition\nIRQ:   \t\t 205\n"


def test_a_folder_for_each_engine_and_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = tmp_path / "gpus"
    (gpus / "0000:01:00.0").mkdir(parents=True)
    (gpus / "0000:01:00.0" / "information").write_text(INFORMATION)
    monkeypatch.setattr(caches, "_GPUS", gpus)
    state.write_record(tmp_path, state.Record("k", "3.11", {"sglang": "0.5.20"}))
    name = "0.5.20-nvidia-rtx-pro-6000-blackwell-workstation-edition"
    assert caches.folder(Path("/var/cache/x"), tmp_path) == Path("/var/cache/x", name)


def test_what_is_not_known_has_a_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_GPUS", tmp_path / "none")
    assert caches.folder(tmp_path, tmp_path / "venv").name == "unknown-no-gpu"


def test_each_variable_has_its_own_folder(tmp_path: Path) -> None:
    told = caches.environment(tmp_path)
    assert told["TVM_FFI_CACHE_DIR"] == f"{tmp_path}/tvm-ffi"
    assert len(set(told.values())) == len(told)


def test_cold_then_warm(tmp_path: Path) -> None:
    cold = caches.look(tmp_path)
    assert not cold.warm
    assert cold.sentence().startswith("kernel caches cold")
    # A folder alone compiles nothing.
    (tmp_path / "tvm-ffi" / "marlin").mkdir(parents=True)
    assert not caches.look(tmp_path).warm
    (tmp_path / "tvm-ffi" / "marlin" / "kernel.so").touch()
    warm = caches.look(tmp_path)
    assert warm.warm
    assert warm.sentence() == f"kernel caches warm: 1 files in {tmp_path} (tvm-ffi)"
