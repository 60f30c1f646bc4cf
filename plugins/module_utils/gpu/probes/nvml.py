# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask NVML everything that the health checks judge, through nvidia-ml-py, one call at a time.

Run by child.py as a script of its own: NVML may hang or crash. Nothing here changes a setting. Records:

- {kind: library, version} of nvidia-ml-py, or {kind: library, error} when it cannot be imported;
- {kind: build, torch, cuda} of this interpreter's PyTorch, read from its files, not imported (absent without PyTorch);
- {kind: init, code}, an nvmlReturn_t, 0 when NVML works; {kind: system, key, value};
- {kind: call, gpu, name} before each call, so that a hang has a name (gpu is null for a system call);
- {kind: value, gpu, key, value} or {kind: error, gpu, key, code}; code -1: nvidia-ml-py does not know the call;
- {kind: pair, a, b, key, value} or {kind: error, pair: [a, b], key, code} for each two GPUs.

Units are NVML's: bytes, degrees Celsius, MHz, milliwatts.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

UNKNOWN_CALL = -1
# nvml.h: NVML_NVLINK_MAX_LINKS of the GPUs that exist (18 on Hopper and Blackwell).
NVLINKS = 18
# nvml.h: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
RECOVERY_ACTION = 230
# nvml.h: nvmlTemperatureThresholds_t
SHUTDOWN, SLOWDOWN, GPU_MAX = 0, 1, 3
# nvml.h: nvmlGpuP2PCapsIndex_t; nvidia-ml-py's own NVML_P2P_CAPS_INDEX_READ is a tuple by mistake.
P2P_READ, P2P_WRITE = 0, 1


def say(kind: str, **facts: object) -> None:
    """One record, not buffered, so that nothing is lost when the next call hangs."""
    os.write(1, (json.dumps({"kind": kind, **facts}) + "\n").encode())


def text(value: Any) -> str:
    """nvidia-ml-py answers bytes or str, by its version."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class Nvml:
    """NVML with every call announced and every refusal recorded."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def ask(self, name: str, *arguments: Any, gpu: int | None = None) -> tuple[int, Any]:
        """(0, the answer) or (an nvmlReturn_t, None)."""
        say("call", gpu=gpu, name=name)
        try:
            return 0, getattr(self.library, name)(*arguments)
        except self.library.NVMLError as error:
            return int(error.value), None
        except (AttributeError, TypeError):
            # Not in this nvidia-ml-py, or in another form.
            return UNKNOWN_CALL, None

    def read(self, gpu: int, key: str, convert: Callable[[Any], Any], name: str, *arguments: Any) -> None:
        """Say one value of one GPU, or why there is none."""
        code, answer = self.ask(name, *arguments, gpu=gpu)
        if code:
            say("error", gpu=gpu, key=key, code=code)
        else:
            say("value", gpu=gpu, key=key, value=convert(answer))


def as_is(value: Any) -> Any:
    """A number or a list of numbers."""
    return list(value) if isinstance(value, (list, tuple)) else value


def memory(value: Any) -> dict[str, int]:
    """nvmlMemory_v2_t: ``used`` does not hold what the driver keeps for itself."""
    return {key: int(getattr(value, key, 0)) for key in ("total", "reserved", "used", "free")}


def processes(value: Any) -> list[dict[str, Any]]:
    """Process ids as the host counts them; memory is None where the driver does not tell it."""
    return [{"pid": int(entry.pid), "memory": entry.usedGpuMemory} for entry in value]


def capability(value: Any) -> str:
    """9.0 for (9, 0)."""
    return ".".join(str(part) for part in value)


def pci(value: Any) -> str:
    """0000:41:00.0, as sysfs writes it: NVML's domain has eight digits."""
    return re.sub("^0000(?=[0-9a-f]{4}:)", "", text(value.busId).lower())


def read_gpu(nvml: Nvml, gpu: int, handle: Any) -> None:
    """Everything about one GPU."""
    library = nvml.library

    def read(key: str, name: str, *arguments: Any, convert: Callable[[Any], Any] = as_is) -> None:
        nvml.read(gpu, key, convert, name, handle, *arguments)

    read("name", "nvmlDeviceGetName", convert=text)
    read("pci", "nvmlDeviceGetPciInfo", convert=pci)
    read("uuid", "nvmlDeviceGetUUID", convert=text)
    read("minor", "nvmlDeviceGetMinorNumber")
    read("vbios", "nvmlDeviceGetVbiosVersion", convert=text)
    read("capability", "nvmlDeviceGetCudaComputeCapability", convert=capability)
    read("memory", "nvmlDeviceGetMemoryInfo", getattr(library, "nvmlMemory_v2", None), convert=memory)
    read("bar1", "nvmlDeviceGetBAR1MemoryInfo", convert=lambda value: int(value.bar1Total))
    read("persistence", "nvmlDeviceGetPersistenceMode")
    read("compute_mode", "nvmlDeviceGetComputeMode")
    read("mig", "nvmlDeviceGetMigMode")
    read("ecc_mode", "nvmlDeviceGetEccMode")
    for key, error, counter in (
        ("ecc_volatile_corrected", 0, 0),
        ("ecc_volatile_uncorrected", 1, 0),
        ("ecc_aggregate_corrected", 0, 1),
        ("ecc_aggregate_uncorrected", 1, 1),
    ):
        read(key, "nvmlDeviceGetTotalEccErrors", error, counter)
    read("remapped_rows", "nvmlDeviceGetRemappedRows")
    read("retired_pages_single", "nvmlDeviceGetRetiredPages", 0, convert=len)
    read("retired_pages_double", "nvmlDeviceGetRetiredPages", 1, convert=len)
    read("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus")
    read("repair", "nvmlDeviceGetRepairStatus")
    read("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration")
    read("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration")
    read("pcie_generation_gpu", "nvmlDeviceGetGpuMaxPcieLinkGeneration")
    read("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth")
    read("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth")
    read("clock_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    read("performance_state", "nvmlDeviceGetPerformanceState")
    read("utilization", "nvmlDeviceGetUtilizationRates", convert=lambda value: int(value.gpu))
    read("temperature", "nvmlDeviceGetTemperature", 0)
    read("temperature_margin", "nvmlDeviceGetMarginTemperature")
    read("temperature_shutdown", "nvmlDeviceGetTemperatureThreshold", SHUTDOWN)
    read("temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", SLOWDOWN)
    read("temperature_gpu_max", "nvmlDeviceGetTemperatureThreshold", GPU_MAX)
    read("power", "nvmlDeviceGetPowerUsage")
    read("power_limit", "nvmlDeviceGetPowerManagementLimit")
    read("power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit")
    read("clock_sm", "nvmlDeviceGetClockInfo", 1)
    read("clock_sm_max", "nvmlDeviceGetMaxClockInfo", 1)
    read("clock_sm_application", "nvmlDeviceGetApplicationsClock", 1)
    read("clock_sm_application_default", "nvmlDeviceGetDefaultApplicationsClock", 1)
    read("clock_memory", "nvmlDeviceGetClockInfo", 2)
    read("clock_memory_max", "nvmlDeviceGetMaxClockInfo", 2)
    read("processes", "nvmlDeviceGetComputeRunningProcesses", convert=processes)
    read_recovery(nvml, gpu, handle)
    read_nvlinks(nvml, gpu, handle)
    read_fabric(nvml, gpu, handle)


def read_recovery(nvml: Nvml, gpu: int, handle: Any) -> None:
    """What the driver itself wants done with this GPU (nvmlDeviceGpuRecoveryAction_t)."""
    code, answer = nvml.ask("nvmlDeviceGetFieldValues", handle, [RECOVERY_ACTION], gpu=gpu)
    code = code or int(answer[0].nvmlReturn)
    if code:
        say("error", gpu=gpu, key="recovery_action", code=code)
    else:
        say("value", gpu=gpu, key="recovery_action", value=int(answer[0].value.uiVal))


def read_nvlinks(nvml: Nvml, gpu: int, handle: Any) -> None:
    """State of each link that the GPU has; a GPU without any refuses the first."""
    states: list[int] = []
    for link in range(NVLINKS):
        code, answer = nvml.ask("nvmlDeviceGetNvLinkState", handle, link, gpu=gpu)
        if code and not states:
            say("error", gpu=gpu, key="nvlinks", code=code)
            return
        if code:
            break
        states.append(int(answer))
    say("value", gpu=gpu, key="nvlinks", value=states)


def read_fabric(nvml: Nvml, gpu: int, handle: Any) -> None:
    """[state, status] of the NVSwitch fabric (nvmlGpuFabricState_t, nvmlReturn_t)."""
    make = getattr(nvml.library, "c_nvmlGpuFabricInfo_v2_t", None)
    if make is None:
        say("error", gpu=gpu, key="fabric", code=UNKNOWN_CALL)
        return
    info = make()
    code, _answer = nvml.ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info), gpu=gpu)
    if code:
        say("error", gpu=gpu, key="fabric", code=code)
    else:
        say("value", gpu=gpu, key="fabric", value=[int(info.state), int(info.status)])


def read_pairs(nvml: Nvml, handles: list[tuple[int, Any]]) -> None:
    """How each two GPUs reach each other."""
    for position, (a, first) in enumerate(handles):
        for b, second in handles[position + 1 :]:
            for key, name, extra in (
                ("p2p_read", "nvmlDeviceGetP2PStatus", [P2P_READ]),
                ("p2p_write", "nvmlDeviceGetP2PStatus", [P2P_WRITE]),
                ("ancestor", "nvmlDeviceGetTopologyCommonAncestor", []),
            ):
                code, answer = nvml.ask(name, first, second, *extra, gpu=a)
                if code:
                    say("error", pair=[a, b], key=key, code=code)
                else:
                    say("pair", a=a, b=b, key=key, value=int(answer))


def tell_build() -> None:
    """Which CUDA this interpreter's PyTorch was built for."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return
    if spec is None or not spec.origin:
        return
    try:
        source = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return
    found = dict(re.findall(r"^(__version__|cuda)\b[^=\n]*=\s*'([^']*)'", source, re.MULTILINE))
    say("build", torch=found.get("__version__", ""), cuda=found.get("cuda", ""))


def main() -> int:
    """The probe; its exit status is 0 however NVML answered."""
    tell_build()
    try:
        nvml = Nvml(importlib.import_module("pynvml"))
        say("library", version=importlib.metadata.version("nvidia-ml-py"))
    except ImportError as error:
        say("library", error=str(error))
        return 0
    code, _answer = nvml.ask("nvmlInit")
    say("init", code=code)
    if code:
        return 0
    for key, name in (
        ("driver", "nvmlSystemGetDriverVersion"),
        ("nvml", "nvmlSystemGetNVMLVersion"),
        ("cuda", "nvmlSystemGetCudaDriverVersion"),
        ("count", "nvmlDeviceGetCount"),
    ):
        code, answer = nvml.ask(name)
        if code:
            say("error", gpu=None, key=key, code=code)
        else:
            say("system", key=key, value=answer if isinstance(answer, int) else text(answer))
            if key == "count":
                read_all(nvml, int(answer))
    nvml.ask("nvmlShutdown")
    return 0


def read_all(nvml: Nvml, count: int) -> None:
    """Every GPU that gives a handle, then every pair."""
    handles = []
    for gpu in range(count):
        code, handle = nvml.ask("nvmlDeviceGetHandleByIndex", gpu, gpu=gpu)
        if code:
            say("error", gpu=gpu, key="handle", code=code)
            continue
        handles.append((gpu, handle))
        read_gpu(nvml, gpu, handle)
    read_pairs(nvml, handles)


if __name__ == "__main__":
    raise SystemExit(main())
