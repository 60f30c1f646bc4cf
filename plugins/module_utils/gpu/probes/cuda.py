# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Load libcuda, initialise it and list its devices.

Run by child.py as a script of its own: cuInit may hang or crash. Records: {kind: library, path} or {kind: library,
error}; {kind: init, code}; {kind: count, code, count, driver}, driver being the CUDA version as 1000 * major +
10 * minor; per device {kind: gpu, index, name, memory (bytes), capability, uuid, pci}.
"""

from __future__ import annotations

import ctypes
import json
import os
import uuid
from pathlib import Path

# cuda.h, CUdevice_attribute
COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76


def say(kind: str, **facts: object) -> None:
    """One record, not buffered, so that nothing is lost when the next call hangs."""
    os.write(1, (json.dumps({"kind": kind, **facts}) + "\n").encode())


def mapped(library: str) -> str:
    """The file that the loader chose for ``library``, from this process's own map."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if Path(path).name.startswith(library):
            return path
    return ""


def describe(cuda: ctypes.CDLL, index: int) -> dict[str, object]:
    """One device; a field whose call fails is left out."""
    facts: dict[str, object] = {"index": index}
    device = ctypes.c_int()
    if cuda.cuDeviceGet(ctypes.byref(device), index):
        return facts
    text = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t()
    identity = (ctypes.c_ubyte * 16)()
    major, minor = ctypes.c_int(), ctypes.c_int()
    if not cuda.cuDeviceGetName(text, len(text), device):
        facts["name"] = text.value.decode(errors="replace")
    if not cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device):
        facts["memory"] = size.value
    if not cuda.cuDeviceGetUuid(ctypes.byref(identity), device):
        facts["uuid"] = f"GPU-{uuid.UUID(bytes=bytes(identity))}"
    if not cuda.cuDeviceGetPCIBusId(text, len(text), device):
        facts["pci"] = text.value.decode(errors="replace").lower()
    if not cuda.cuDeviceGetAttribute(
        ctypes.byref(major), COMPUTE_CAPABILITY_MAJOR, device
    ) and not cuda.cuDeviceGetAttribute(ctypes.byref(minor), COMPUTE_CAPABILITY_MINOR, device):
        facts["capability"] = f"{major.value}.{minor.value}"
    return facts


def main() -> int:
    """The probe; its exit status is 0 however CUDA answered."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        say("library", error=str(error))
        return 0
    say("library", path=str(Path(mapped("libcuda.so")).resolve()))
    code = cuda.cuInit(0)
    say("init", code=code)
    if code:
        return 0
    count, driver = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(driver))
    code = cuda.cuDeviceGetCount(ctypes.byref(count))
    say("count", code=code, count=count.value, driver=driver.value)
    for index in range(count.value):
        say("gpu", **describe(cuda, index))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
