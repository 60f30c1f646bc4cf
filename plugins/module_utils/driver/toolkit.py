# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CUDA toolkit fits driver, torch and GPUs, and where one is already."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check

# The first driver branch of each CUDA version. Source: CUDA Toolkit release notes, "CUDA Toolkit and Corresponding
# Driver Versions". A newer branch knows at least the last one.
_DRIVER_BRANCHES = (
    (525, "12.0"),
    (530, "12.1"),
    (535, "12.2"),
    (545, "12.3"),
    (550, "12.4"),
    (555, "12.5"),
    (560, "12.6"),
    (565, "12.7"),
    (570, "12.8"),
    (575, "12.9"),
    (580, "13.0"),
    (590, "13.1"),
)
# The first CUDA version whose compiler knows an architecture. Source: CUDA Toolkit release notes, by version.
_ARCHITECTURES = {
    "sm_80": "11.0",
    "sm_86": "11.1",
    "sm_89": "11.8",
    "sm_90": "11.8",
    "sm_100": "12.8",
    "sm_103": "12.9",
    "sm_120": "12.8",
    "sm_121": "12.9",
}
# From here on NVIDIA's packages for Python bring nvcc itself; those of CUDA 12 (nvidia-cuda-nvcc-cu12) do not.
FIRST_WHEELS = "13.0"


@dataclass(frozen=True)
class Toolkit:
    """A complete one: ``root`` holds bin/nvcc, headers, nvvm and the run time's library."""

    root: Path
    version: str


def order(version: str) -> tuple[int, ...]:
    """A sort key of CUDA versions."""
    return tuple(int(part) for part in version.split("."))


def driver_maximum(driver: str) -> str:
    """The newest CUDA version that a driver is known to run; empty without a driver, or with one older than CUDA 12."""
    branch = int(driver.partition(".")[0]) if driver else 0
    return next((cuda for first, cuda in reversed(_DRIVER_BRANCHES) if branch >= first), "")


def torch_cuda(venv: Path | None) -> str:
    """The CUDA version (major and minor) that the venv's torch was built for; empty when there is none to be known."""
    for path in sorted(venv.glob("lib/python3*/site-packages/torch/version.py")) if venv else ():
        found = re.search(r"^cuda\b[^=]*=\s*'(\d+\.\d+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    return ""


def inspect(root: Path) -> Toolkit | None:
    """The toolkit under ``root``; None unless it is complete enough to compile and link what the engine does."""
    try:
        header = (root / "include/cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    number = re.search(r"^#define\s+CUDART_VERSION\s+(\d+)", header, re.MULTILINE)
    needed = (root / "bin/nvcc", root / "nvvm/bin/cicc", root / "include/crt/host_defines.h")
    standard = any((root / "include" / folder).is_dir() for folder in ("cccl/cuda/std", "cuda/std"))
    if number is None or not standard or not all(path.exists() for path in needed) or not libraries(root):
        return None
    return Toolkit(root, f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}")


def libraries(root: Path) -> list[Path]:
    """The run time's shared libraries; wheels keep them in lib, installations in lib64 or targets."""
    return sorted(path for folder in ("lib64", "lib") for path in (root / folder).glob("libcudart.so*"))


def in_venv(venv: Path | None) -> Toolkit | None:
    """The toolkit that a venv's packages bring, with ninja beside it."""
    for root in sorted(venv.glob("lib/python3*/site-packages/nvidia/cu[0-9]*")) if venv else ():
        toolkit = inspect(root)
        if toolkit is not None and ninja(venv):
            return toolkit
    return None


def ninja(venv: Path | None) -> Path | None:
    """The venv's ninja, else the machine's."""
    own = venv / "bin/ninja" if venv else None
    if own is not None and own.exists():
        return own
    found = shutil.which("ninja")
    return Path(found) if found else None


def choose(asked: str, torch: str, maximum: str, fallback: str) -> tuple[str, str]:
    """The version to have, and why."""
    if asked:
        return asked, "cuda_toolkit_version asks for it"
    if torch:
        return torch, "the engine's torch was built for it"
    if maximum and order(maximum) < order(fallback):
        return maximum, "the driver knows no newer one"
    return fallback, "cuda_toolkit_fallback_version, since no torch with CUDA is installed"


def judge(version: str, torch: str, maximum: str, driver: str, architectures: Sequence[str]) -> list[Check]:
    """Whether the chosen version fits everything that is known."""
    return [_driver(version, maximum, driver), _torch(version, torch), *_gpus(version, architectures)]


def judge_wheels(version: str) -> Check:
    """Whether NVIDIA's packages for Python bring the compiler of this version."""
    name, expected = "cuda.wheels", f"nvcc {version} among NVIDIA's packages for Python"
    source = "the packages' files: nvidia-cuda-nvcc brings bin/nvcc, nvidia-cuda-nvcc-cu12 does not"
    if order(version) >= order(FIRST_WHEELS):
        return Check(name, PASS, expected, "nvidia-cuda-nvcc", source=source)
    fix = f"set cuda_toolkit_source to packages, or install it in /usr/local/cuda-{version} yourself"
    return Check(name, FAIL, expected, f"they bring it from {FIRST_WHEELS} on", fix, source)


def _driver(version: str, maximum: str, driver: str) -> Check:
    name, expected = "cuda.driver", f"a driver that runs CUDA {version}"
    source = "CUDA Compatibility guide, minor version compatibility"
    if not driver:
        return Check(name, SKIPPED, expected, "no NVIDIA kernel module runs", source=source)
    found = f"driver {driver} runs CUDA {maximum or 'older than 12'}"
    if not maximum or order(version)[0] > order(maximum)[0]:
        fix = "upgrade the driver (nvidia_driver_version), or take an engine whose torch is built for an older CUDA"
        return Check(name, FAIL, expected, found, fix, source)
    if order(version) > order(maximum):
        fix = "upgrade the driver: machine code runs, but kernels that are built as PTX are refused at load time"
        return Check(name, WARN, expected, found, fix, source)
    return Check(name, PASS, expected, found, source=source)


def _torch(version: str, torch: str) -> Check:
    name, expected = "cuda.torch", f"a torch that was built for CUDA {version}"
    source = (
        "torch/utils/cpp_extension.py, _check_cuda_version: another major version is refused, another minor warned of"
    )
    if not torch:
        return Check(name, SKIPPED, expected, "no torch with CUDA is installed yet", source=source)
    found = f"built for {torch}"
    fix = f"set cuda_toolkit_version to {torch}, or leave it empty"
    if order(version)[0] != order(torch)[0]:
        return Check(name, FAIL, expected, found, fix, source)
    if version != torch:
        return Check(name, WARN, expected, found, fix, source)
    return Check(name, PASS, expected, found, source=source)


def _gpus(version: str, architectures: Sequence[str]) -> list[Check]:
    checks = []
    for architecture in architectures:
        name, expected = "cuda.architecture", f"a compiler that knows {architecture}"
        first = _ARCHITECTURES.get(architecture)
        if first is None:
            reason = f"when CUDA came to know {architecture} is not on record here; the proof will tell"
            checks.append(Check(name, SKIPPED, expected, reason))
        elif order(version) < order(first):
            fix = f"set cuda_toolkit_version to {first} or newer"
            checks.append(Check(name, FAIL, expected, f"CUDA {version}; {first} is the first", fix))
        else:
            checks.append(Check(name, PASS, expected, f"CUDA {version}"))
    return checks
