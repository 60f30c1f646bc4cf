# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the unit runs before the engine, with the real nvidia-ml-py on the double of NVML."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doubles import gpus

SCRIPT = Path(__file__).parents[3] / "roles/sglang_server/files/before_start.py"
Play = Callable[[list[str]], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "dev").mkdir(parents=True)
    for name in ("nvidiactl", "nvidia-uvm"):
        (folder / "dev" / name).touch()
    (folder / "proc/driver/nvidia").mkdir(parents=True)
    (folder / "proc/driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64  570.1.2  Release Build\n")
    return folder


def start(root: Path, timeout: float = 0, count: int = 8) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), "--gpus", str(count), "--timeout", str(timeout), "--root", str(root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    output = process.communicate(timeout=60)[0]
    return process.returncode, output


def test_free_gpus(root: Path, play: Play) -> None:
    play(gpus.rtx_pro_6000())
    assert end(start(root)) == (0, "")


def test_memory_that_others_hold_is_named(root: Path, play: Play) -> None:
    lines = [f"value nvmlDeviceGetMemoryInfo 3 {97887 * 2**20} {653 * 2**20} {50000 * 2**20}"]
    play([*gpus.rtx_pro_6000(), *lines, "value nvmlDeviceGetComputeRunningProcesses 3 4711 1000"])
    status, told = end(start(root))
    assert status == 1
    assert told == (
        "refused to start: after 0 s it is still waiting for free GPU memory: "
        "GPU 3 has 50653 MiB in use (processes 4711); fix: end what uses it\n"
    )


def test_memory_of_a_gpu_that_is_not_taken_does_not_count(root: Path, play: Play) -> None:
    lines = [f"value nvmlDeviceGetMemoryInfo 3 {97887 * 2**20} {653 * 2**20} {50000 * 2**20}"]
    play([*gpus.rtx_pro_6000(), *lines])
    assert end(start(root, count=2)) == (0, "")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            18,
            "the driver's library is of another version than the kernel's module (570.1.2); fix: run the main playbook",
        ),
        (9, "the kernel has no NVIDIA module; fix: run the main playbook, which loads it"),
        (999, "NVML does not work: Unknown Error; fix: see what nvidia-smi says"),
    ],
    ids=["mismatch", "no module", "unknown"],
)
def test_a_driver_that_cannot_work_is_refused_at_once(root: Path, play: Play, code: int, told: str) -> None:
    play([*gpus.rtx_pro_6000(), f"code nvmlInitWithFlags * {code}"])
    status, output = end(start(root, timeout=600))
    assert status == 1
    assert output.startswith(f"refused to start: {told}")


def test_too_few_gpus_are_refused_at_once(root: Path, play: Play) -> None:
    play(gpus.rtx_pro_6000(7))
    status, output = end(start(root, timeout=600))
    assert (status, output.split(";")[0]) == (1, "refused to start: 8 GPUs are needed and 7 are here")


def test_a_node_that_never_comes(root: Path, play: Play) -> None:
    play(gpus.rtx_pro_6000())
    (root / "dev/nvidia-uvm").unlink()
    status, output = end(start(root))
    assert status == 1
    assert "waiting for device nodes: /dev/nvidia-uvm (No such file or directory); fix: run the main playbook" in output


def test_a_node_that_comes_late_is_waited_for(root: Path, play: Play) -> None:
    play(gpus.rtx_pro_6000())
    (root / "dev/nvidia-uvm").unlink()
    process = start(root, timeout=60)
    time.sleep(1)
    (root / "dev/nvidia-uvm").touch()
    status, output = end(process)
    assert (status, output) == (0, "waiting for device nodes: /dev/nvidia-uvm (No such file or directory)\n")
