# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders in which kernels that were compiled once are kept, so that a start after a reboot compiles nothing.

They depend on the engine's version and on the GPU: a folder for each pair, which a rollback finds warm again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..python import state

ROOT = Path("/var/cache/sglang")
_GPUS = Path("/proc/driver/nvidia/gpus")

# The variables and what fills the folder: SGLANG_* in sglang/srt/environ.py (0.5.11 and later; SGLANG_DG_CACHE_DIR from
# 0.5.9), the others are the libraries' own. Their defaults lie below the home, in /tmp (inductor) or move with versions
# (DeepGEMM in 0.5.18).
VARIABLES = {
    "SGLANG_CACHE_DIR": "sglang",
    "SGLANG_DG_CACHE_DIR": "deep_gemm",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "TVM_FFI_CACHE_DIR": "tvm-ffi",
    "CUDA_CACHE_PATH": "cuda",
}


@dataclass(frozen=True)
class Warmth:
    """What is in the caches: ``files`` in all, ``filled`` are the folders that hold any."""

    folder: Path
    files: int
    filled: tuple[str, ...]

    @property
    def warm(self) -> bool:
        """Whether an earlier start compiled here."""
        return self.files > 0

    def sentence(self) -> str:
        """For an operator who waits for a start."""
        if self.warm:
            return f"kernel caches warm: {self.files} files in {self.folder} ({', '.join(self.filled)})"
        return f"kernel caches cold: {self.folder} is empty, the first start compiles what it needs and takes longer"


def folder(root: Path, venv: Path) -> Path:
    """The caches of an engine on this host's GPUs."""
    record = state.read_record(venv)
    version = record.packages.get("sglang", "unknown") if record is not None else "unknown"
    # Only the first counts: the engine takes GPUs of one kind.
    return root / f"{version}-{next(iter(gpus()), 'no-gpu')}"


def gpus() -> list[str]:
    """The GPUs' names as words, in the order of their addresses."""
    found = []
    for told in sorted(_GPUS.glob("*/information")) if _GPUS.is_dir() else ():
        name = re.search(r"^Model:\s*(.+)$", told.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        found += [re.sub(r"[^a-z0-9]+", "-", name[1].strip().lower())] if name else []
    return found


def environment(caches: Path) -> dict[str, str]:
    """The variables for the unit."""
    return {name: str(caches / below) for name, below in VARIABLES.items()}


def look(caches: Path) -> Warmth:
    """Whether a start will find its kernels compiled."""
    counts = {below: sum(1 for path in (caches / below).rglob("*") if path.is_file()) for below in VARIABLES.values()}
    return Warmth(caches, sum(counts.values()), tuple(name for name, count in counts.items() if count))
