# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule on real calls of nvidia-ml-py into the doubles: one scenario that passes, one that does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import rules
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.expected import Expected
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.inventory import Gpu, combine

from tests.doubles import gpus
from tests.unit.plugins.module_utils.gpu.conftest import Examine

# An idle Hopper card answers neither; each has its own test.
UNJUDGED = {"gpu.idle", "gpu.retired_pages"}

FAULTS = [
    ("gpu.lost", "code nvmlDeviceGetTemperature 3 15", "fail", "fell off the bus"),
    ("gpu.lost", "code nvmlDeviceGetPersistenceMode 3 16", "fail", "needs a reset"),
    ("gpu.recovery_action", "value nvmlDeviceGetFieldValues.230 3 2", "fail", "reboot the host"),
    ("gpu.memory_total", "value nvmlDeviceGetMemoryInfo 3 75161927680 644939776 0", "fail", "71680 MiB"),
    ("gpu.memory_leaked", "value nvmlDeviceGetMemoryInfo 3 150754820096 644939776 9000000000", "fail", "no process"),
    ("gpu.processes", "value nvmlDeviceGetComputeRunningProcesses 3 4000000 1000", "fail", "4000000 is gone"),
    ("gpu.ecc_mode", "value nvmlDeviceGetEccMode 3 0 0", "warn", "off, on expected"),
    ("gpu.ecc_mode", "value nvmlDeviceGetEccMode 3 1 0", "warn", "off after the next reset"),
    ("gpu.ecc_volatile", "value nvmlDeviceGetTotalEccErrors.1.0 3 2", "fail", "2 uncorrected"),
    ("gpu.ecc_volatile", "value nvmlDeviceGetTotalEccErrors.0.0 3 20000001", "warn", "20000001 corrected"),
    ("gpu.ecc_aggregate", "value nvmlDeviceGetTotalEccErrors.1.1 3 513", "fail", "513 uncorrected"),
    ("gpu.ecc_aggregate", "value nvmlDeviceGetTotalEccErrors.1.1 3 1", "warn", "1 uncorrected"),
    ("gpu.remapped_rows", "value nvmlDeviceGetRemappedRows 3 0 1 0 1", "fail", "a remapping failed"),
    ("gpu.remapped_rows", "value nvmlDeviceGetRemappedRows 3 0 1 1 0", "fail", "one is pending"),
    ("gpu.repair", "value nvmlDeviceGetRepairStatus 3 1 0", "warn", "a channel"),
    ("gpu.pcie_width", "value nvmlDeviceGetCurrPcieLinkWidth 3 8", "fail", "x8, x16 expected"),
    ("gpu.pcie_generation", "value nvmlDeviceGetCurrPcieLinkGeneration 3 3", "fail", "generation 3 while working"),
    ("gpu.pcie_generation", "value nvmlDeviceGetMaxPcieLinkGeneration 3 4", "warn", "the slot allows generation 4"),
    ("gpu.hw_slowdown", "value nvmlDeviceGetCurrentClocksThrottleReasons 3 0x48", "fail", "hardware thermal, slowdown"),
    ("gpu.sw_slowdown", "value nvmlDeviceGetCurrentClocksThrottleReasons 3 0x20", "warn", "for heat"),
    ("gpu.temperature", "value nvmlDeviceGetTemperature.0 3 90", "fail", "90 C, -1 below"),
    ("gpu.temperature", "value nvmlDeviceGetTemperature.0 3 85", "warn", "85 C, 4 below"),
    ("gpu.persistence", "value nvmlDeviceGetPersistenceMode 3 0", "warn", "off"),
    ("gpu.compute_mode", "value nvmlDeviceGetComputeMode 3 2", "fail", "Prohibited"),
    ("gpu.compute_mode", "value nvmlDeviceGetComputeMode 3 3", "warn", "Exclusive process"),
    ("gpu.mig", "value nvmlDeviceGetMigMode 3 1 1", "fail", "on"),
    ("gpu.mig", "value nvmlDeviceGetMigMode 3 0 1", "fail", "on after the next reset"),
    ("gpu.clocks", "value nvmlDeviceGetApplicationsClock.1 3 1200", "warn", "1200 MHz, 1980 MHz by default"),
    ("gpu.bar1", "value nvmlDeviceGetBAR1MemoryInfo 3 268435456", "warn", "256 MiB, less than"),
    ("gpu.nvlink", "value nvmlDeviceGetNvLinkState.7 3 0", "fail", "17 of 18 links"),
    ("gpu.nvlink", "code nvmlDeviceGetNvLinkState 3 3", "warn", "18 links expected"),
    ("gpu.fabric", "value nvmlDeviceGetGpuFabricInfoV 3 2 0", "fail", "in progress"),
]


def test_eight_sound_gpus_pass_every_rule(examine: Examine) -> None:
    checks = examine(gpus.h200(8))
    found = {rule.id: checks[rule.id].status for rule in rules.RULES}
    assert {name for name, status in found.items() if status != "pass"} == UNJUDGED
    assert checks["gpu.temperature"].actual == "all 8: 39 C, 50 below its threshold"


@pytest.mark.parametrize(("rule", "line", "status", "text"), FAULTS)
def test_one_faulty_gpu_is_named(examine: Examine, rule: str, line: str, status: str, text: str) -> None:
    check = examine([*gpus.h200(8), line])[rule]
    assert check.status == status
    assert f"GPU 3 ({gpus.pci(3)}): " in check.actual
    assert text in check.actual
    assert check.fix


def test_every_rule_has_a_fault() -> None:
    assert {rule.id for rule in rules.RULES} - {name for name, *_rest in FAULTS} == UNJUDGED


@pytest.mark.parametrize("count", [1, 8, 16])
def test_a_card_that_supports_nothing_passes_nothing(examine: Examine, count: int) -> None:
    """A consumer card, a vGPU or a container: every call of NVML about a GPU is refused."""
    lines = [line for line in gpus.rtx_pro_6000(count) if "nvmlDeviceGet" not in line or "nvmlDeviceGetCount" in line]
    checks = examine(lines)
    assert checks["gpu.count"].actual == f"{count} GPUs"
    assert {checks[rule.id].status for rule in rules.RULES} == {"skipped"}
    assert "not supported by this GPU" in checks["gpu.temperature"].actual


@pytest.mark.parametrize("code", [2, 3, 4, 6, 13, 27, 999])
def test_any_refusal_of_any_call_is_never_a_pass(examine: Examine, code: int) -> None:
    names = {line.split()[1].partition(".")[0] for line in gpus.h200(2) if line.startswith("value nvmlDeviceGet")}
    refused = [f"code {name} * {code}" for name in names - {"nvmlDeviceGetCount"}]
    checks = examine([*gpus.h200(2), *refused])
    assert {checks[rule.id].status for rule in rules.RULES} == {"skipped"}


def test_one_gpu_that_refuses_keeps_the_others_from_passing(examine: Examine) -> None:
    check = examine([*gpus.h200(8), "code nvmlDeviceGetRemappedRows 5 3"])["gpu.remapped_rows"]
    assert check.status == "skipped"
    assert f"GPU 5 ({gpus.pci(5)}): NVML 3: not supported by this GPU" in check.actual


def test_an_idle_link_is_no_fault_and_no_proof(examine: Examine) -> None:
    check = examine(gpus.rtx_pro_6000(8))["gpu.pcie_generation"]
    assert check.status == "skipped"
    assert "generation 1 while idle, which is no fault" in check.actual


def test_a_slow_link_of_a_card_that_does_not_tell_whether_it_is_idle(examine: Examine) -> None:
    lines = [*gpus.rtx_pro_6000(1), "code nvmlDeviceGetCurrentClocksThrottleReasons * 3"]
    assert "generation 1, and whether it is idle: NVML 3" in examine(lines)["gpu.pcie_generation"].actual


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["value nvmlDeviceGetRetiredPages.0 * 1", "value nvmlDeviceGetRetiredPages.1 * 0"], "pass"),
        (["value nvmlDeviceGetRetiredPages.0 * 0", "value nvmlDeviceGetRetiredPages.1 * 60"], "fail"),
    ],
)
def test_retired_pages_of_an_older_card(examine: Examine, lines: list[str], status: str) -> None:
    pending = "value nvmlDeviceGetRetiredPagesPendingStatus * 0"
    assert examine([*gpus.h200(1), *lines, pending])["gpu.retired_pages"].status == status


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("", "pass"),
        ("value nvmlDeviceGetComputeRunningProcesses 0 4242 1000", "fail"),
        ("value nvmlDeviceGetMemoryInfo 0 150754820096 644939776 9000000000", "fail"),
    ],
)
def test_idle_is_judged_where_it_is_asked_for(examine: Examine, line: str, status: str) -> None:
    assert examine([*gpus.h200(2), line], idle=True)["gpu.idle"].status == status


def test_a_single_gpu_needs_no_nvlink(examine: Examine) -> None:
    check = examine(gpus.h200(1))["gpu.nvlink"]
    assert (check.status, check.actual) == ("skipped", f"GPU 0 ({gpus.pci(0)}): a single GPU has no peer")


def test_a_card_without_nvlink_is_not_passed(examine: Examine) -> None:
    check = examine(gpus.rtx_pro_6000(2))["gpu.nvlink"]
    assert check.status == "skipped"
    assert "has no NVLink" in check.actual


def test_memory_held_by_others_is_not_judged_in_a_container(root: Path) -> None:
    gpu = Gpu(0, {"memory": {"total": 1, "reserved": 0, "used": 90 * 2**30, "free": 0}, "processes": []})
    held = {rule.id: rule for rule in rules.RULES}["gpu.memory_leaked"]
    on_host = held.judge(gpu, rules.Context(Expected({}), 1, "", False, root))
    inside = held.judge(gpu, rules.Context(Expected({}), 1, "lxc", False, root))
    assert (on_host.status, inside.status) == ("fail", "skipped")
    assert "run on the host" in inside.text


@pytest.mark.parametrize(("state", "status"), [("S", "pass"), ("Z", "fail"), ("D", "fail")])
def test_a_process_that_no_longer_lives(root: Path, state: str, status: str) -> None:
    (root / "proc/77").mkdir()
    (root / "proc/77/stat").write_text(f"77 (a (strange) name) {state} 1 1\n")
    rule = {rule.id: rule for rule in rules.RULES}["gpu.processes"]
    gpu = Gpu(0, {"processes": [{"pid": 77, "memory": 1}]})
    assert rule.judge(gpu, rules.Context(Expected({}), 1, "", False, root)).status == status


def test_a_real_process_lives(root: Path) -> None:
    rule = {rule.id: rule for rule in rules.RULES}["gpu.processes"]
    gpu = Gpu(0, {"processes": [{"pid": os.getpid(), "memory": 1}]})
    assert rule.judge(gpu, rules.Context(Expected({}), 1)).status == "pass"


def test_an_operators_value_goes_before_the_models(examine: Examine) -> None:
    lines = [*gpus.h200(1), "value nvmlDeviceGetCurrPcieLinkWidth * 8"]
    assert examine(lines, thresholds={"pcie_width": 8})["gpu.pcie_width"].status == "pass"


def test_a_model_that_is_not_known_is_not_judged_by_numbers(examine: Examine) -> None:
    lines = [*gpus.h200(1), "value nvmlDeviceGetName * NVIDIA Something"]
    check = examine(lines)["gpu.memory_total"]
    assert check.status == "skipped"
    assert "no value is known for NVIDIA Something" in check.actual


def test_nothing_found_is_not_a_pass() -> None:
    assert combine("a", "b", []).status == "skipped"


def test_unknown_thresholds_are_refused() -> None:
    with pytest.raises(ValueError, match="warp_speed is none of"):
        Expected({}).value("warp_speed")
