# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import health, nvml, rules
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.child import DONE, Report

from tests.doubles import gpus
from tests.unit.plugins.module_utils.gpu.conftest import Examine


def put_on_bus(root: Path, count: int) -> None:
    for number in range(count):
        device = root / "sys/bus/pci/devices" / gpus.pci(number)
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")


def test_a_sound_machine(examine: Examine, root: Path) -> None:
    put_on_bus(root, 8)
    checks = examine(gpus.rtx_pro_6000(8), expected_count=8)
    names = [name for name, _words in nvml.ABOUT_ALL]
    assert {name: checks[name].status for name in names} == dict.fromkeys(names, "pass")
    assert checks["gpu.p2p"].actual == "all 28: OK (one NUMA node)"


@pytest.mark.parametrize(("found", "expected", "status"), [(0, None, "fail"), (7, 8, "fail"), (16, 16, "pass")])
def test_count(examine: Examine, found: int, expected: int | None, status: str) -> None:
    checks = examine(gpus.rtx_pro_6000(found), expected_count=expected)
    assert checks["gpu.count"].status == status
    assert checks["cuda.count" if found else "cuda.init"].status == status


@pytest.mark.parametrize(
    ("code", "words", "fix"),
    [
        (9, "the NVIDIA driver is not loaded", "role nvidia_driver"),
        (18, "different versions", "version of the host's kernel module"),
        (4, "no permission", "node."),
        (999, "unknown error", "kernel log"),
    ],
)
def test_an_init_that_fails_is_translated(examine: Examine, code: int, words: str, fix: str) -> None:
    checks = examine([*gpus.h200(1), f"code nvmlInitWithFlags * {code}"])
    assert checks["nvml.init"].status == "fail"
    assert words in checks["nvml.init"].actual
    assert fix in checks["nvml.init"].fix
    assert {checks[rule.id].status for rule in rules.RULES} == {"skipped"}


def test_no_library_of_the_driver(examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = health.run_probe

    def without(*arguments: object, **options: object) -> Report:
        return real(*arguments, **{**options, "environment": {"LD_LIBRARY_PATH": str(tmp_path)}})

    monkeypatch.setattr(health, "run_probe", without)
    checks = examine(gpus.h200(1))
    assert checks["cuda.library"].status == "fail"
    assert "libnvidia-ml.so.1 was not found" in checks["nvml.init"].actual


def test_no_nvidia_ml_py_is_skipped_with_the_fix(examine: Examine, tmp_path: Path) -> None:
    """A venv whose Python has no packages at all."""
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nexec env -u PYTHONPATH /usr/bin/python3 -I -S "$@"\n')
    python.chmod(0o755)
    checks = examine(gpus.h200(1), venv=str(tmp_path / "venv"))
    assert checks["venv.python"].status == "pass"
    assert checks["nvml.library"].status == "skipped"
    assert "No module named 'pynvml'" in checks["nvml.library"].actual
    assert "install nvidia-ml-py" in checks["nvml.library"].fix
    assert {checks[rule.id].status for rule in rules.RULES} == {"skipped"}
    assert checks["cuda.count"].status == "pass"


def test_a_venv_that_is_not_there_fails_before_it_is_run(examine: Examine, tmp_path: Path) -> None:
    checks = examine(gpus.h200(1), venv=str(tmp_path / "none"))
    assert checks["venv.python"].status == "fail"
    assert "role sglang_install" in checks["venv.python"].fix
    assert checks["nvml.library"].status == "skipped"
    assert checks["cuda.count"].status == "pass"


def test_a_hang_is_named_and_what_was_read_before_is_judged(examine: Examine) -> None:
    checks = examine([*gpus.h200(8), "hang nvmlDeviceGetTemperature 3"], timeout=3.0)
    assert checks["nvml.answers"].status == "fail"
    assert checks["nvml.answers"].actual == "nvmlDeviceGetTemperature on GPU 3: no answer within 3 s"
    assert checks["gpu.temperature"].status == "skipped"
    assert "GPU 0 " in checks["gpu.temperature"].actual


def test_a_crash_is_named(examine: Examine) -> None:
    checks = examine([*gpus.h200(2), "crash nvmlDeviceGetEccMode 1"])
    assert checks["nvml.answers"].actual == "nvmlDeviceGetEccMode on GPU 1: the process died of SIGSEGV"


def test_an_init_that_hangs(examine: Examine) -> None:
    checks = examine([*gpus.h200(1), "hang nvmlInitWithFlags *"], timeout=2.0)
    assert checks["nvml.init"].actual == "nvmlInit: no answer within 2 s"


@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_a_cuinit_that_does_not_return(examine: Examine, fault: str) -> None:
    checks = examine([*gpus.h200(1), f"{fault} cuInit *"], timeout=2.0)
    assert checks["cuda.init"].status == "fail"
    assert checks["gpu.count"].status == "pass"


def test_the_founding_incident(examine: Examine, tmp_path: Path) -> None:
    """Everything that nvidia-smi shows is well; CUDA is not, because /dev/nvidia-uvm cannot be opened."""
    checks = examine([*gpus.h200(8), f"value uvm * {tmp_path}/nothing"])
    assert checks["gpu.count"].status == "pass"
    assert checks["cuda.init"].status == "fail"
    assert checks["cuda.init"].actual.startswith("999 CUDA_ERROR_UNKNOWN")
    assert "node.nvidia-uvm" in checks["cuda.init"].fix


def test_nodes_are_looked_at_before_a_library_makes_them(examine: Examine, tmp_path: Path) -> None:
    node = tmp_path / "nvidia-uvm-of-this-test"
    lines = [*gpus.h200(1), f"create nvmlInitWithFlags {node}", f"create cuInit {node}"]
    checks = examine(lines, devices=(str(node),))
    assert checks[f"node.{node.name}"].status == "fail"
    assert checks["nvml.init"].status == "skipped"
    assert not node.exists()


def test_a_gpu_that_is_lost_gives_no_handle(examine: Examine, root: Path) -> None:
    put_on_bus(root, 8)
    checks = examine([*gpus.h200(8), "code nvmlDeviceGetHandleByIndex 3 15"])
    assert checks["gpu.on_bus"].status == "fail"
    assert checks["gpu.on_bus"].actual == f"not in NVML: {gpus.pci(3)}"


def test_a_gpu_that_left_the_bus(examine: Examine, root: Path) -> None:
    put_on_bus(root, 7)
    check = examine(gpus.h200(8))["gpu.on_bus"]
    assert (check.status, check.actual) == ("fail", f"not on the bus: {gpus.pci(7)}")


def test_a_container_that_was_granted_some(examine: Examine, root: Path) -> None:
    put_on_bus(root, 8)
    (root / "run/systemd").mkdir(parents=True)
    (root / "run/systemd/container").write_text("lxc")
    assert examine(gpus.h200(4), expected_count=4)["gpu.on_bus"].status == "pass"
    assert examine(gpus.h200(3), expected_count=4)["gpu.on_bus"].status == "fail"


def test_different_models_are_told(examine: Examine) -> None:
    check = examine([*gpus.h200(2), "value nvmlDeviceGetName 1 NVIDIA H100"])["gpu.same_model"]
    assert check.status == "warn"
    assert "GPU 1: NVIDIA H100" in check.actual


@pytest.mark.parametrize(
    ("lines", "status", "text"),
    [
        (["value nvmlDeviceGetP2PStatus.1.read 0 1"], "warn", "GPU 0-1: not supported by the chipset"),
        (["code nvmlDeviceGetP2PStatus * 3"], "skipped", "not supported by this GPU"),
    ],
)
def test_peers(examine: Examine, lines: list[str], status: str, text: str) -> None:
    check = examine([*gpus.rtx_pro_6000(3), *lines])["gpu.p2p"]
    assert check.status == status
    assert text in check.actual


def test_a_single_gpu_has_no_peer(examine: Examine) -> None:
    assert examine(gpus.h200(1))["gpu.p2p"].status == "skipped"


@pytest.mark.parametrize(
    ("kernel", "library", "status"),
    [
        ("580.159.04", "libcuda.so.580.159.04", "pass"),
        ("580.142", "libcuda.so.580.159.04", "fail"),
        ("580.159.04", "libcuda.so.1", "skipped"),
    ],
)
def test_versions(kernel: str, library: str, status: str) -> None:
    report = Report(({"kind": "system", "key": "nvml", "value": "13.580.159.04"},), DONE, "", 0.1)
    check = nvml.versions(kernel, report, f"/usr/lib/{library}")
    assert check.status == status
    assert kernel in check.actual


@pytest.mark.parametrize(
    ("build", "driver", "status"),
    [
        ("13.0", 13000, "pass"),
        ("12.8", 13000, "pass"),
        ("13.1", 13000, "warn"),
        ("13.0", 12080, "fail"),
        ("", 13000, "skipped"),
        ("13.0", None, "skipped"),
    ],
)
def test_the_drivers_minimum_for_the_cuda_build(build: str, driver: int | None, status: str) -> None:
    records = ({"kind": "build", "torch": "2.11.0+cu130", "cuda": build},) if build else ()
    assert nvml.cuda_build(Report(records, DONE, "", 0.1), driver).status == status
