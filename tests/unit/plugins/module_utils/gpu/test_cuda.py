# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import cuda
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.child import CRASHED, DONE, TIMEOUT, Report

LIBRARY = {"kind": "library", "path": "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"}
INIT = {"kind": "init", "code": 0}


def count(number: int, code: int = 0) -> dict[str, object]:
    return {"kind": "count", "code": code, "count": number, "driver": 13000}


def statuses(records: tuple[dict[str, object], ...], end: str = DONE, expected: int | None = 1) -> list[str]:
    detail = "SIGSEGV" if end == CRASHED else ""
    return [check.status for check in cuda.judge(Report(records, end, detail, 5.0), expected_count=expected)]


def test_a_sound_machine() -> None:
    assert statuses((LIBRARY, INIT, count(1))) == ["pass", "pass", "pass"]


def test_no_library_stops_there() -> None:
    assert statuses(({"kind": "library", "error": "cannot open"},)) == ["fail", "skipped", "skipped"]


@pytest.mark.parametrize(
    ("code", "name", "fix"),
    [
        (999, "CUDA_ERROR_UNKNOWN", "node.nvidia-uvm"),
        (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "same version of libcuda"),
        (802, "CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
        (100, "CUDA_ERROR_NO_DEVICE", "node.nvidia0"),
        (34, "CUDA_ERROR_STUB_LIBRARY", "LD_LIBRARY_PATH"),
        (712, "712", "cuda.h"),
    ],
)
def test_return_codes_are_translated(code: int, name: str, fix: str) -> None:
    checks = cuda.judge(Report((LIBRARY, {"kind": "init", "code": code}), DONE, "", 0.1), expected_count=1)
    assert [check.status for check in checks] == ["pass", "fail", "skipped"]
    assert name in checks[1].actual
    assert fix in checks[1].fix


@pytest.mark.parametrize("end", [TIMEOUT, CRASHED])
def test_a_cuinit_that_never_returns(end: str) -> None:
    assert statuses((LIBRARY,), end) == ["pass", "fail", "skipped"]


@pytest.mark.parametrize(
    ("found", "expected", "status"), [(8, 8, "pass"), (7, 8, "fail"), (0, None, "fail"), (3, None, "pass")]
)
def test_count(found: int, expected: int | None, status: str) -> None:
    assert statuses((LIBRARY, INIT, count(found)), expected=expected)[2] == status


def test_a_count_that_fails_is_translated() -> None:
    (*_before, check) = cuda.judge(Report((LIBRARY, INIT, count(0, 3)), DONE, "", 0.1), expected_count=1)
    assert check.status == "fail"
    assert "CUDA_ERROR_NOT_INITIALIZED" in check.actual


def test_a_hang_after_the_count_is_not_a_pass() -> None:
    assert statuses((LIBRARY, INIT, count(1)), TIMEOUT)[2] == "fail"


def test_gpus_are_returned_as_answered() -> None:
    report = Report(({"kind": "gpu", "index": 0, "name": "NVIDIA H200"},), DONE, "", 0.1)
    assert cuda.gpus(report) == [{"index": 0, "name": "NVIDIA H200"}]
