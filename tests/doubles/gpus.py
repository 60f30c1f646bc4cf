# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Doubles of NVIDIA's driver libraries, built from C, and the scenarios that they play.

As a command it builds the libraries into a folder, puts nvidia-ml-py beside them and prints what to export:
``python -m tests.doubles.gpus FOLDER``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

HERE = Path(__file__).parent
DRIVER = "580.159.04"
LIBRARIES = {"nvml.c": "libnvidia-ml.so", "cuda.c": "libcuda.so"}


def build(folder: Path, driver: str = DRIVER) -> Path:
    """Both libraries in ``folder`` under the names that a driver of that version installs."""
    folder.mkdir(parents=True, exist_ok=True)
    for source, name in LIBRARIES.items():
        library = folder / f"{name}.{driver}"
        command = ["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]
        subprocess.run([*command, "-o", str(library), str(HERE / source)], check=True)
        link = folder / f"{name}.1"
        link.unlink(missing_ok=True)
        link.symlink_to(library.name)
    return folder


def carry(folder: Path) -> None:
    """This interpreter's nvidia-ml-py into ``folder``, for a machine that has none."""
    package = distribution("nvidia-ml-py")
    for file in package.files or ():
        if file.suffix != ".pyc":
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package.locate_file(file), target)


def h200(count: int = 1) -> list[str]:
    """Idle H200s as NVML of driver 580.159.04 describes one; several of them have NVLink, a single one has not."""
    lines = _common(count, "NVIDIA H200")
    lines += [
        f"value nvmlDeviceGetMemoryInfo * {150754820096} {644939776} 0",
        "value nvmlDeviceGetBAR1MemoryInfo * 274877906944",
        "value nvmlDeviceGetCudaComputeCapability * 9 0",
        "value nvmlDeviceGetVbiosVersion * 96.00.A5.00.1A",
        "value nvmlDeviceGetMigMode * 0 0",
        "value nvmlDeviceGetEccMode * 1 1",
        "value nvmlDeviceGetRemappedRows * 0 0 0 0",
        "value nvmlDeviceGetCurrPcieLinkGeneration * 5",
        "value nvmlDeviceGetCurrentClocksThrottleReasons * 0",
        "value nvmlDeviceGetPerformanceState * 0",
        "value nvmlDeviceGetMarginTemperature * 48",
        "value nvmlDeviceGetTemperatureThreshold.0 * 95",
        "value nvmlDeviceGetTemperatureThreshold.1 * 89",
        "value nvmlDeviceGetTemperatureThreshold.3 * 87",
        "value nvmlDeviceGetPowerUsage * 124338",
        "value nvmlDeviceGetPowerManagementLimit * 700000",
        "value nvmlDeviceGetPowerManagementDefaultLimit * 700000",
        "value nvmlDeviceGetClockInfo.1 * 1980",
        "value nvmlDeviceGetMaxClockInfo.1 * 1980",
        "value nvmlDeviceGetApplicationsClock.1 * 1980",
        "value nvmlDeviceGetDefaultApplicationsClock.1 * 1980",
        "value nvmlDeviceGetClockInfo.2 * 3201",
        "value nvmlDeviceGetMaxClockInfo.2 * 3201",
        "value nvmlDeviceGetFieldValues.230 * 0",
        "value nvmlDeviceGetRepairStatus * 0 0",
        f"value cuDeviceTotalMem * {150109880320}",
        "value cuDeviceGetAttribute * 9 0",
    ]
    for error in range(2):
        lines += [f"value nvmlDeviceGetTotalEccErrors.{error}.{counter} * 0" for counter in range(2)]
    if count > 1:
        lines += [f"value nvmlDeviceGetNvLinkState.{link} * 1" for link in range(18)]
        lines += ["value nvmlDeviceGetGpuFabricInfoV * 3 0"]
    return lines


def rtx_pro_6000(count: int = 8) -> list[str]:
    """Idle RTX PRO 6000 Blackwell Server Edition: PCIe only, the link at generation 1 while idle."""
    lines = _common(count, "NVIDIA RTX PRO 6000 Blackwell Server Edition")
    lines += [
        f"value nvmlDeviceGetMemoryInfo * {97887 * 2**20} {653 * 2**20} 0",
        f"value nvmlDeviceGetBAR1MemoryInfo * {98304 * 2**20}",
        "value nvmlDeviceGetCudaComputeCapability * 12 0",
        "value nvmlDeviceGetVbiosVersion * 98.02.81.00.07",
        "value nvmlDeviceGetMigMode * 0 0",
        "value nvmlDeviceGetEccMode * 1 1",
        "value nvmlDeviceGetRemappedRows * 0 0 0 0",
        "value nvmlDeviceGetCurrPcieLinkGeneration * 1",
        "value nvmlDeviceGetCurrentClocksThrottleReasons * 1",
        "value nvmlDeviceGetPerformanceState * 8",
        "value nvmlDeviceGetTemperatureThreshold.0 * 95",
        "value nvmlDeviceGetTemperatureThreshold.1 * 92",
        "value nvmlDeviceGetTemperatureThreshold.3 * 90",
        "value nvmlDeviceGetPowerUsage * 28000",
        "value nvmlDeviceGetPowerManagementLimit * 600000",
        "value nvmlDeviceGetPowerManagementDefaultLimit * 600000",
        "value nvmlDeviceGetClockInfo.1 * 180",
        "value nvmlDeviceGetMaxClockInfo.1 * 2430",
        "value nvmlDeviceGetClockInfo.2 * 405",
        "value nvmlDeviceGetMaxClockInfo.2 * 12481",
        "value nvmlDeviceGetFieldValues.230 * 0",
        f"value cuDeviceTotalMem * {97234 * 2**20}",
        "value cuDeviceGetAttribute * 12 0",
    ]
    for error in range(2):
        lines += [f"value nvmlDeviceGetTotalEccErrors.{error}.{counter} * 0" for counter in range(2)]
    return lines


def _common(count: int, name: str) -> list[str]:
    lines = [
        f"value nvmlSystemGetDriverVersion * {DRIVER}",
        f"value nvmlSystemGetNVMLVersion * 13.{DRIVER}",
        "value nvmlSystemGetCudaDriverVersion * 13000",
        f"value nvmlDeviceGetCount * {count}",
        f"value nvmlDeviceGetName * {name}",
        "value nvmlDeviceGetPersistenceMode * 1",
        "value nvmlDeviceGetComputeMode * 0",
        "value nvmlDeviceGetMaxPcieLinkGeneration * 5",
        "value nvmlDeviceGetGpuMaxPcieLinkGeneration * 5",
        "value nvmlDeviceGetCurrPcieLinkWidth * 16",
        "value nvmlDeviceGetMaxPcieLinkWidth * 16",
        "value nvmlDeviceGetUtilizationRates * 0",
        "value nvmlDeviceGetTemperature.0 * 39",
        "value nvmlDeviceGetComputeRunningProcesses *",
        "value nvmlDeviceGetP2PStatus.read * 0",
        "value nvmlDeviceGetP2PStatus.write * 0",
        "value nvmlDeviceGetTopologyCommonAncestor * 40",
        "value cuDriverGetVersion * 13000",
        f"value cuDeviceGetCount * {count}",
        f"value cuDeviceGetName * {name}",
    ]
    for gpu in range(count):
        lines += [
            f"value nvmlDeviceGetPciInfo {gpu} 0000{pci(gpu).upper()}",
            f"value nvmlDeviceGetUUID {gpu} GPU-00000000-0000-0000-0000-{gpu:012x}",
            f"value nvmlDeviceGetMinorNumber {gpu} {gpu}",
            f"value cuDeviceGetPCIBusId {gpu} {pci(gpu)}",
        ]
    return lines


def pci(gpu: int) -> str:
    """The address of a scenario's GPU, as sysfs writes it."""
    return f"0000:{0x11 + gpu:02x}:00.0"


def write(path: Path, lines: Iterable[str]) -> Path:
    """The scenario as the libraries read it."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


if __name__ == "__main__":
    folder = build(Path(sys.argv[1]).resolve())
    carry(folder)
    scenario = write(folder / "scenario", rtx_pro_6000())
    print(f"export LD_LIBRARY_PATH={folder} PYTHONPATH={folder} GPU_DOUBLE_SCENARIO={scenario}")
