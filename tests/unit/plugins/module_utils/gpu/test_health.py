# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import health
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.child import DONE, Report
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.probes import cuda as cuda_probe

LOADED = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  \n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    return tmp_path


def load_driver(root: Path) -> None:
    (root / "proc/driver/nvidia/version").write_text(LOADED)


def found(request: health.Request) -> dict[str, str]:
    return {check.id: check.status for check in health.examine(request).checks}


def asks_the_driver(checks: dict[str, str]) -> set[str]:
    """The statuses of every check that asks NVML or CUDA."""
    return {status for name, status in checks.items() if name.startswith(("cuda.", "nvml.", "gpu.", "driver.v"))}


def test_a_machine_without_any_gpu_fails_without_an_exception(root: Path) -> None:
    devices = (str(root / "nvidiactl"), str(root / "nvidia-uvm"))
    checks = found(health.Request(root=root, devices=devices))
    assert {checks[name] for name in ("node.nvidiactl", "node.nvidia-uvm", "driver.loaded")} == {"fail"}
    assert asks_the_driver(checks) == {"skipped"}


def test_a_declared_lab(root: Path) -> None:
    checks = found(health.Request(root=root, devices=("/dev/null",), driver="absent", level="deep"))
    assert (checks["node.null"], checks["driver.loaded"]) == ("pass", "skipped")
    assert asks_the_driver(checks) == {"skipped"}
    assert {status for name, status in checks.items() if name.startswith("deep.")} == {"skipped"}


def test_a_driver_where_none_was_declared_is_told(root: Path) -> None:
    load_driver(root)
    assert found(health.Request(root=root, devices=("/dev/null",), driver="absent"))["driver.loaded"] == "warn"


def test_the_libraries_are_not_asked_while_a_node_is_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_driver(root)
    asked = []
    real = health.run_probe

    def spy(probe: ModuleType, arguments: tuple[str, ...] = (), *, interpreter: str, timeout: float) -> Report:
        asked.append(probe)
        if probe is cuda_probe:
            return Report((), DONE, "", 0.0)
        return real(probe, arguments, interpreter=interpreter, timeout=timeout)

    monkeypatch.setattr(health, "run_probe", spy)
    checks = found(health.Request(root=root, devices=(str(root / "nvidia-uvm"),)))
    assert cuda_probe not in asked
    assert (checks["driver.loaded"], checks["cuda.init"]) == ("pass", "skipped")
    found(health.Request(root=root, devices=("/dev/null",)))
    assert cuda_probe in asked


def test_a_driver_that_answers_without_telling_its_version_is_asked(root: Path) -> None:
    """A sandbox without /proc/driver: nothing is assumed of the version, and CUDA decides."""
    checks = found(health.Request(root=root, devices=("/dev/null",)))
    assert checks["driver.loaded"] == "skipped"
    assert checks["cuda.library"] in ("pass", "fail")


def test_nodes_follow_the_expected_count_and_else_the_bus(root: Path) -> None:
    for address in ("0000:01:00.0", "0000:41:00.0"):
        device = root / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
    assert "node.nvidia1" in found(health.Request(root=root))
    assert "node.nvidia1" not in found(health.Request(root=root, expected_count=1))
