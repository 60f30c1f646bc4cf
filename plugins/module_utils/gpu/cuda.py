# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what libcuda answered: it can be loaded, cuInit returns 0, and it counts the GPUs that are expected.

nvidia-smi working proves none of this: it needs neither libcuda nor /dev/nvidia-uvm.
"""

from __future__ import annotations

from typing import Any

from ..checks import FAIL, PASS, SKIPPED, Check
from .child import DONE, Report

SOURCE = "cuda.h, enum cudaError_enum (CUDA 13.0)"

# Code -> (name in cuda.h, what it means for a GPU server, the one thing to do).
CODES: dict[int, tuple[str, str, str]] = {
    1: ("CUDA_ERROR_INVALID_VALUE", "the library refuses its arguments", "reinstall libcuda in the driver's version"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "no memory for a context", "free host and GPU memory, then look again"),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "the driver is not initialised", "restart the process that asks"),
    34: (
        "CUDA_ERROR_STUB_LIBRARY",
        "the toolkit's stub was loaded instead of the driver's libcuda",
        "take the toolkit's lib64/stubs out of LD_LIBRARY_PATH and install the driver's libcuda.so.1",
    ),
    46: (
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "a GPU is busy or in exclusive compute mode",
        "stop the process that holds it, or set its compute mode to Default (nvidia-smi -c 0)",
    ),
    100: (
        "CUDA_ERROR_NO_DEVICE",
        "no GPU can be used: none is bound to the driver, or no /dev/nvidia0..N is open to us",
        "see the checks node.nvidia0..N here; if they passed, see the host's kernel log for the GPU",
    ),
    101: (
        "CUDA_ERROR_INVALID_DEVICE",
        "a GPU that is listed cannot be used",
        "see the host's kernel log for an Xid of that GPU",
    ),
    214: (
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "an uncorrectable ECC error was found",
        "drain the host and reset the GPU; replace it if it comes back",
    ),
    304: (
        "CUDA_ERROR_OPERATING_SYSTEM",
        "a call to the kernel failed",
        "see the checks of the nodes here, then the host's kernel log",
    ),
    801: (
        "CUDA_ERROR_NOT_SUPPORTED",
        "the operation is not supported here",
        "compare the driver's version with the GPU's minimum",
    ),
    802: (
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the NVLink fabric is not ready",
        "start nvidia-fabricmanager on the host, in the driver's version, and wait for it",
    ),
    803: (
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda and the kernel module have different versions",
        "install the same version of libcuda here as the host's kernel module has (cat /proc/driver/nvidia/version)",
    ),
    804: (
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "a forward-compatibility libcuda was loaded on a GPU that does not support it",
        "take the cuda-compat folder out of LD_LIBRARY_PATH",
    ),
    999: (
        "CUDA_ERROR_UNKNOWN",
        "the driver refused without a reason; the usual one is that /dev/nvidia-uvm cannot be opened",
        "see the check node.nvidia-uvm here and mend that one first; if it passed, reload nvidia_uvm on the host",
    ),
}


def translate(code: int) -> tuple[str, str]:
    """(what was answered, the one thing to do) for a return code other than 0."""
    name, meaning, fix = CODES.get(
        code,
        (
            "a code cuda.h does not explain here",
            "see cuda.h",
            "look the code up in cuda.h and in the host's kernel log",
        ),
    )
    return f"{code} {name}: {meaning}", fix


def skipped(reason: str) -> list[Check]:
    """The checks of this file when CUDA must not be asked."""
    return [
        Check("cuda.library", SKIPPED, "libcuda.so.1 can be loaded", reason, source=SOURCE),
        Check("cuda.init", SKIPPED, "cuInit returns 0", reason, source=SOURCE),
        Check("cuda.count", SKIPPED, "CUDA counts the expected GPUs", reason, source=SOURCE),
    ]


def judge(report: Report, *, expected_count: int | None) -> list[Check]:
    """``expected_count`` None means that any number but 0 will do."""
    library = _library(report)
    if library.status != PASS:
        return [library, *(_not_reached(check, "libcuda.so.1 was not loaded") for check in skipped("")[1:])]
    init = _init(report)
    if init.status != PASS:
        return [library, init, _not_reached(skipped("")[2], "cuInit did not succeed")]
    return [library, init, _count(report, expected_count)]


def gpus(report: Report) -> list[dict[str, Any]]:
    """The GPUs in CUDA's order: index, name, memory (bytes), capability, uuid, pci; what was not answered is absent."""
    return [{key: value for key, value in record.items() if key != "kind"} for record in report.of("gpu")]


def _not_reached(check: Check, reason: str) -> Check:
    return Check(check.id, SKIPPED, check.expected, reason, source=check.source)


def _library(report: Report) -> Check:
    expected = "libcuda.so.1 can be loaded"
    told = report.of("library")
    if not told:
        fix = "run the check again with a longer timeout; if it stays so, reinstall the driver's libcuda"
        return Check("cuda.library", FAIL, expected, report.trouble() or "the probe said nothing", fix, SOURCE)
    if "error" in told[0]:
        fix = (
            "install the driver's user-space libraries in the version of the host's kernel module (role nvidia_driver)"
        )
        return Check("cuda.library", FAIL, expected, str(told[0]["error"]), fix, SOURCE)
    return Check("cuda.library", PASS, expected, str(told[0]["path"]), source=SOURCE)


def _init(report: Report) -> Check:
    expected = "cuInit returns 0"
    told = report.of("init")
    if not told:
        fix = "the driver hangs or crashes: see the host's kernel log (dmesg | grep -i -e nvrm -e xid) and reboot it"
        return Check("cuda.init", FAIL, expected, f"cuInit: {report.trouble()}", fix, SOURCE)
    code = int(told[0]["code"])
    if code:
        actual, fix = translate(code)
        return Check("cuda.init", FAIL, expected, actual, fix, SOURCE)
    return Check("cuda.init", PASS, expected, "0", source=SOURCE)


def _count(report: Report, expected_count: int | None) -> Check:
    expected = "at least 1 GPU" if expected_count is None else f"{expected_count} GPUs"
    told = report.of("count")
    if not told or (report.end != DONE and not gpus(report)):
        fix = "read the host's kernel log (dmesg | grep -i -e nvrm -e xid) and reboot the host"
        return Check("cuda.count", FAIL, expected, f"cuDeviceGetCount: {report.trouble()}", fix, SOURCE)
    code, count = int(told[0]["code"]), int(told[0]["count"])
    if code:
        actual, fix = translate(code)
        return Check("cuda.count", FAIL, expected, actual, fix, SOURCE)
    if count == 0 or expected_count not in (None, count):
        fix = "see the checks node.* here and the host's kernel log for the missing GPU; else correct expected_count"
        return Check("cuda.count", FAIL, expected, f"{count} GPUs", fix, SOURCE)
    return Check("cuda.count", PASS, expected, f"{count} GPUs", source=SOURCE)
