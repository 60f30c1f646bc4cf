# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Level deep: the real orchestration over doubles of PyTorch and of NVML."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import load
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.child import DONE, Report
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.expected import Expected
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.inventory import Gpu

from tests.doubles import gpus
from tests.unit.plugins.module_utils.gpu.conftest import Examine

DOUBLES = Path(gpus.__file__).parent
WORKING = [
    "value nvmlDeviceGetCurrPcieLinkGeneration * 5",
    "value nvmlDeviceGetClockInfo.1 * 2000",
    "value nvmlDeviceGetUtilizationRates * 100",
    "value nvmlDeviceGetPowerUsage * 450000",
]
Deep = Callable[..., dict[str, Check]]


@pytest.fixture
def deep(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> Deep:
    """A function that runs level deep with faults of PyTorch and lines of the NVML scenario."""

    def run(
        lines: list[str] | None = None,
        count: int = 2,
        limit: float = 20.0,
        all_reduce_min: float = 1e6,
        **faults: object,
    ) -> dict[str, Check]:
        monkeypatch.setattr(load, "BURN_SECONDS", 1)
        monkeypatch.setattr(load, "SIGNATURE_SECONDS", 2.0)
        monkeypatch.setenv("PYTHONPATH", f"{DOUBLES}:{os.environ.get('PYTHONPATH', '')}")
        monkeypatch.setenv("TORCH_DOUBLE", json.dumps(faults))
        found = examine(
            [*gpus.rtx_pro_6000(count), *WORKING, *(lines or [])],
            level="deep",
            timeout=limit,
            thresholds={"all_reduce_min": all_reduce_min, "device_to_device_min": 60e9},
        )
        return {name: check for name, check in found.items() if name.startswith("deep.")}

    return run


def statuses(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.status for name, check in checks.items()}


def test_sound_gpus_pass_everything(deep: Deep) -> None:
    checks = deep()
    assert statuses(checks) == {name: "pass" for name, _words in load.NAMES}
    assert checks["deep.host_to_device"].actual == "all 2: 50.0 GB/s"
    assert checks["deep.pcie"].actual == "all 2: generation 5 x16"
    assert checks["deep.all_reduce"].actual.endswith("all sums right")


def test_a_single_gpu_has_no_all_reduce(deep: Deep) -> None:
    checks = deep(count=1)
    assert {checks[name].status for name in ("deep.all_reduce", "deep.all_reduce_bandwidth")} == {"skipped"}
    assert checks["deep.burn"].status == "pass"


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        (
            [
                "value nvmlDeviceGetCurrPcieLinkGeneration 1 3",
                "value nvmlDeviceGetCurrentClocksThrottleReasons 1 0x80",
                "value nvmlDeviceGetTemperature.0 1 93",
            ],
            {
                "deep.pcie": ("fail", "generation 3 x16"),
                "deep.slowdown": ("fail", "lowered the clocks"),
                "deep.temperature": ("fail", "93 C at most"),
            },
        ),
        (
            [
                "value nvmlDeviceGetCurrPcieLinkWidth 1 8",
                "value nvmlDeviceGetClockInfo.1 1 600",
                "value nvmlDeviceGetTemperature.0 1 90",
            ],
            {
                "deep.pcie": ("fail", "generation 5 x8"),
                "deep.slowdown": ("warn", "600 of 2430 MHz"),
                "deep.temperature": ("warn", "90 C at most"),
            },
        ),
        (["code nvmlDeviceGetClockInfo 1 3"], {"deep.slowdown": ("skipped", "told no clocks")}),
    ],
)
def test_one_faulty_gpu_under_load(deep: Deep, lines: list[str], faults: dict[str, tuple[str, str]]) -> None:
    checks = deep(lines)
    for name, (status, text) in faults.items():
        assert checks[name].status == status
        assert f"GPU 1 ({gpus.pci(1)}): " in checks[name].actual
        assert text in checks[name].actual


def test_slow_copies_fail(deep: Deep) -> None:
    checks = deep(bandwidth=12e9)
    assert checks["deep.host_to_device"].actual == "all 2: 12.0 GB/s, at least 41.0 expected"
    assert {checks[name].status for name, *_rest in load.COPY} == {"fail"}


def test_a_card_that_computes_wrongly(deep: Deep) -> None:
    check = deep(wrong_product=1)["deep.burn"]
    assert check.status == "fail"
    assert f"GPU 1 ({gpus.pci(1)}): " in check.actual
    assert "do not serve from this card" in check.fix


def test_a_wrong_sum(deep: Deep) -> None:
    check = deep(wrong_sum=1)["deep.all_reduce"]
    assert check.status == "fail"
    assert "peer copies corrupt data" in check.fix


def test_a_slow_all_reduce(deep: Deep) -> None:
    assert deep(all_reduce_min=1e15)["deep.all_reduce_bandwidth"].status == "fail"


@pytest.mark.parametrize(
    ("model", "bandwidth", "status"),
    [
        ("NVIDIA H200", 292.3e9, "pass"),  # as measured over NVLink
        ("NVIDIA H200", 45e9, "fail"),  # NVLink is lost, and NCCL takes PCIe
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 22.2e9, "pass"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 9e9, "fail"),
        ("NVIDIA GeForce RTX 9090", 292.3e9, "skipped"),
    ],
)
def test_each_model_has_its_own_bus_bandwidth(model: str, bandwidth: float, status: str) -> None:
    records = [{"kind": "phase", "rank": rank, "phase": "import", "at": 0.0} for rank in range(2)]
    records += [
        {"kind": "all_reduce", "rank": rank, "bytes": size, "seconds": 1.0, "bandwidth": bandwidth, "wrong": 0}
        for rank in range(2)
        for size in load.SIZES
    ]
    told = [Gpu(index, {"name": model}) for index in range(2)]
    checks = {check.id: check for check in load.judge(Report(tuple(records), DONE, "", 1.0), told, 2, Expected({}))}
    check = checks["deep.all_reduce_bandwidth"]
    assert check.status == status
    assert f"{bandwidth / 1e9:.1f} GB/s" in check.actual


def test_the_signature_of_the_peer_to_peer_hang(deep: Deep) -> None:
    checks = deep(["value nvmlDeviceGetPowerUsage * 140000"], limit=4, hang="all_reduce")
    assert checks["deep.burn"].status == "pass"
    assert checks["deep.all_reduce"].status == "fail"
    assert "100 % use at 140 W of 600 W, flat memory: the signature" in checks["deep.all_reduce"].actual
    assert "NCCL_P2P_DISABLE=1" in checks["deep.all_reduce"].fix
    assert checks["deep.all_reduce_bandwidth"].status == "skipped"


def test_another_hang_is_not_given_that_name(deep: Deep) -> None:
    checks = deep(["value nvmlDeviceGetUtilizationRates * 3"], limit=3, hang="all_reduce")
    assert checks["deep.all_reduce"].status == "fail"
    assert "signature" not in checks["deep.all_reduce"].actual


def test_an_error_of_nccl_is_told(deep: Deep) -> None:
    check = deep(error={"all_reduce": "NCCL error: unhandled system error"})["deep.all_reduce"]
    assert check.status == "fail"
    assert "unhandled system error" in check.actual


def test_a_hang_while_burning_stops_what_follows(deep: Deep) -> None:
    checks = deep(limit=2, hang="burn")
    assert checks["deep.host_to_device"].status == "pass"
    assert checks["deep.burn"].status == "fail"
    assert checks["deep.all_reduce"].status == "skipped"


def test_no_pytorch_is_skipped_with_the_fix(deep: Deep) -> None:
    checks = deep(error={"import": "No module named 'torch'"})
    assert set(statuses(checks).values()) == {"skipped"}
    assert "engine's venv" in checks["deep.all_reduce"].fix


def test_a_context_that_cannot_be_made_fails(deep: Deep) -> None:
    checks = deep(error={"context": "CUDA error: out of memory"})
    assert checks["deep.start"].status == "fail"
    assert "out of memory" in checks["deep.start"].actual


def test_a_context_that_hangs_fails(deep: Deep) -> None:
    assert deep(limit=2, hang="context")["deep.start"].status == "fail"


def test_busy_gpus_are_left_alone(deep: Deep) -> None:
    checks = deep(["value nvmlDeviceGetComputeRunningProcesses 1 4242 1000"])
    assert set(statuses(checks).values()) == {"skipped"}
    assert checks["deep.burn"].actual == "GPU 1 in use: level deep needs idle GPUs"


def test_nothing_is_put_under_load_without_cuda(deep: Deep) -> None:
    checks = deep(["code cuInit * 802"])
    assert checks["deep.burn"].actual == "CUDA found no GPU"
