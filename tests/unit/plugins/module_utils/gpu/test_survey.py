# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import health

from tests.doubles import gpus


def test_gpus_by_nvml(play: Callable[[list[str]], None], root: Path) -> None:
    play(gpus.h200(2))
    node = root / "sys/bus/pci/devices" / gpus.pci(1) / "numa_node"
    node.parent.mkdir(parents=True)
    node.write_text("1\n")
    found = health.survey(health.Request(devices=("/dev/null",), root=root))
    assert (found.driver, found.cuda, found.container, found.reason) == (gpus.DRIVER, "13.0", "", "")
    assert found.gpus[1] == {
        "index": 1,
        "name": "NVIDIA H200",
        "uuid": "GPU-00000000-0000-0000-0000-000000000001",
        "pci": gpus.pci(1),
        "minor": 1,
        "capability": "9.0",
        "vbios": "96.00.A5.00.1A",
        "memory": 150754820096,
        "memory_used": 0,
        "numa_node": 1,
    }


def test_gpus_by_cuda_without_nvml(play: Callable[[list[str]], None], root: Path) -> None:
    play([*gpus.h200(2), "code nvmlInitWithFlags * 4"])
    found = health.survey(health.Request(devices=("/dev/null",), root=root))
    assert [gpu["memory"] for gpu in found.gpus] == [150109880320] * 2
    assert found.cuda == "13.0"


def test_no_driver_is_a_reason(tmp_path: Path) -> None:
    found = health.survey(health.Request(devices=(str(tmp_path / "nvidiactl"),), root=tmp_path))
    assert (found.gpus, found.driver) == ((), "")
    assert "no NVIDIA kernel module" in found.reason


def test_a_missing_node_is_not_made_by_asking(
    play: Callable[[list[str]], None],
    root: Path,
    tmp_path: Path,
) -> None:
    node = tmp_path / "nvidia-uvm-of-this-test"
    play([*gpus.h200(1), f"create nvmlInitWithFlags {node}"])
    found = health.survey(health.Request(devices=(str(node),), root=root))
    assert "missing" in found.reason
    assert not node.exists()


def test_a_hang_is_a_reason(play: Callable[[list[str]], None], root: Path) -> None:
    play([*gpus.h200(1), "hang nvmlInitWithFlags *", "hang cuInit *"])
    found = health.survey(health.Request(devices=("/dev/null",), root=root, timeout=1.0))
    assert "gpu_health tells why" in found.reason
