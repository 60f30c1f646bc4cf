# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before the engine starts: waits for device nodes and free GPU memory, and refuses a driver mismatch.

Run by the unit's ExecStartPre with the engine's Python, which has nvidia-ml-py. What it waits for goes to the journal.
A former engine gives its memory back some seconds after its end; a start in that time would die for lack of it, minutes
later, with another reason.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

NODES = ("dev/nvidiactl", "dev/nvidia-uvm")
# nvml.h, nvmlReturn_t
DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH = 9, 18
# The share of a GPU's memory that may be in use by others: the driver's own part, about 0.5 GB, shows there too.
IN_USE = 0.05
PAUSE_S = 2.0


class Refused(Exception):
    """No start can work; the text says what to do."""


def missing_nodes(root: Path) -> list[str]:
    """The nodes that are not there or may not be opened, each with the reason."""
    told = []
    for node in NODES:
        try:
            os.close(os.open(root / node, os.O_RDWR | os.O_NONBLOCK))
        except OSError as error:
            told.append(f"/{node} ({error.strerror})")
    return told


def kernel_driver(root: Path) -> str:
    """The version of the kernel's module, as far as it tells."""
    try:
        found = re.search(r"\b\d+\.\d+(\.\d+)?\b", (root / "proc/driver/nvidia/version").read_text(encoding="utf-8"))
    except OSError:
        return "unknown"
    return found[0] if found else "unknown"


def occupied(root: Path, nvml: Any, count: int) -> list[str]:
    """The first ``count`` GPUs whose memory others use, each with the processes.

    Raises:
        Refused: NVML does not work, or there are fewer GPUs.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if error.value == LIB_RM_VERSION_MISMATCH:
            raise Refused(
                f"the driver's library is of another version than the kernel's module ({kernel_driver(root)}); "
                f"fix: run the main playbook, or its step nvidia_driver alone (--tags nvidia_driver)"
            ) from error
        if error.value == DRIVER_NOT_LOADED:
            raise Refused("the kernel has no NVIDIA module; fix: run the main playbook, which loads it") from error
        raise Refused(f"NVML does not work: {error}; fix: see what nvidia-smi says") from error
    try:
        found = nvml.nvmlDeviceGetCount()
        if found < count:
            raise Refused(f"{count} GPUs are needed and {found} are here; fix: see what nvidia-smi -L says on the host")
        told = []
        for index in range(count):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            if memory.used > IN_USE * memory.total:
                told.append(f"GPU {index} has {memory.used >> 20} MiB in use ({processes(nvml, handle)})")
        return told
    finally:
        nvml.nvmlShutdown()


def processes(nvml: Any, handle: Any) -> str:
    """Who uses a GPU, as far as it can be seen from here."""
    try:
        pids = [str(process.pid) for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except nvml.NVMLError:
        pids = []
    return "processes " + ", ".join(pids) if pids else "by no process that is seen from here"


def waits_for(root: Path, count: int) -> tuple[str, str]:
    """What is not there yet, empty when all is, and what to do should it not come.

    Raises:
        Refused: no start can work.
    """
    nodes = missing_nodes(root)
    if nodes:
        return (
            f"device nodes: {', '.join(nodes)}",
            "run the main playbook, or its steps nvidia_driver and lxc_gpu alone",
        )
    try:
        import pynvml
    except ImportError as error:
        raise Refused("this Python has no nvidia-ml-py; fix: run the main playbook, which installs it") from error
    busy = occupied(root, pynvml, count)
    return f"free GPU memory: {'; '.join(busy)}" if busy else "", "end what uses it"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, required=True, help="how many GPUs the engine takes, from the first one on")
    parser.add_argument("--timeout", type=float, required=True, help="how long to wait, in seconds")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where dev and proc lie")
    options = parser.parse_args()
    end = time.monotonic() + options.timeout
    said = ""
    while True:
        try:
            waiting, fix = waits_for(options.root, options.gpus)
            if waiting and time.monotonic() > end:
                raise Refused(f"after {options.timeout:.0f} s it is still waiting for {waiting}; fix: {fix}")
        except Refused as error:
            print(f"refused to start: {error}", flush=True)
            return 1
        if not waiting:
            return 0
        if waiting != said:
            print(f"waiting for {waiting}", flush=True)
            said = waiting
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
