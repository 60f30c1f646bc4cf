# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sound GPU server shows: limits for every GPU and values for each model, each with its source. Data only.

Units: bytes, bytes per second, degrees Celsius, MHz; fractions where the name says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

Number = Union[int, float]
GIB = 2**30
MIB = 2**20


@dataclass(frozen=True)
class Value:
    """One expectation and where it comes from."""

    value: Number
    source: str


# Limits that hold for every model; a model may have its own.
GENERAL: Mapping[str, Value] = {
    "ecc_corrected_max": Value(20_000_000, "Azure azurehpc-health-checks, azure_gpu_ecc.nhc: correctable DRAM errors"),
    "ecc_aggregate_uncorrected_max": Value(
        512, "Azure azurehpc-health-checks, azure_gpu_ecc.nhc: uncorrectable errors"
    ),
    "temperature_margin": Value(
        5, "gpuserve: warn when the GPU is this close to the slowdown threshold that it reports"
    ),
    "memory_used_max": Value(
        GIB, "gpuserve: an idle card shows up to 256 MiB; a start with tensor parallelism that failed leaks gigabytes"
    ),
    "shm_min": Value(GIB, "NCCL user guide, Troubleshooting, Sharing Data: --shm-size=1g"),
    "memory_available_per_gpu_min": Value(
        4 * GIB, "gpuserve: each rank is a process of its own with a CUDA context and pinned staging buffers"
    ),
    "clock_under_load_min_fraction": Value(0.5, "gpuserve: a power cap costs less than half of the top clock"),
}

_PCIE5 = "PCI Express Base 5.0: 32 GT/s, 128b/130b, 16 lanes = 63.0e9 bytes/s per direction; 65 % of it"
_RTX_PRO = "NVIDIA RTX PRO 6000 Blackwell datasheets: 96 GB GDDR7, PCIe 5.0 x16, no NVLink"
_RTX_MEMORY = "nvidia-smi of all three editions: 97887 MiB"
_RTX_COPY = "local-inference-lab/rtx6kpro hardware/pcie-bandwidth.md: 1.38e12 to 1.49e12 measured; 85 % of the lowest"
_RTX_RING = (
    "local-inference-lab/rtx6kpro optimization/nccl-tuning.md: 22.2e9 with NCCL's defaults, 37.6e9 tuned, 8 GPUs"
)
_H200 = "NVML of driver 580.159.04 on an H200"
_H200_RING = (
    "docs/evidence/gpu_health-h200.md: 292.3e9 measured with 256 MiB over the NVLinks of two H200; 80 % of it, which"
    " PCIe cannot carry"
)

_RTX_PRO_6000: Mapping[str, Value] = {
    "memory_total": Value(97887 * MIB, _RTX_MEMORY),
    "pcie_generation": Value(5, _RTX_PRO),
    "pcie_width": Value(16, _RTX_PRO),
    "nvlinks": Value(0, _RTX_PRO),
    "host_to_device_min": Value(41e9, _PCIE5),
    "device_to_host_min": Value(41e9, _PCIE5),
    "device_to_device_min": Value(1.17e12, _RTX_COPY),
    "all_reduce_min": Value(18e9, _RTX_RING),
}

# By the name that NVML gives.
MODELS: Mapping[str, Mapping[str, Value]] = {
    "NVIDIA H200": {
        "memory_total": Value(150754820096, _H200),
        "pcie_generation": Value(5, _H200),
        "pcie_width": Value(16, _H200),
        "nvlinks": Value(18, "NVIDIA H200 datasheet: 900 GB/s NVLink, 18 links of 50 GB/s"),
        "ecc": Value(1, _H200),
        "host_to_device_min": Value(41e9, _PCIE5),
        "device_to_host_min": Value(41e9, _PCIE5),
        "device_to_device_min": Value(3.84e12, "NVIDIA H200 datasheet: 4.8e12 bytes/s; 80 % of it, read plus written"),
        "all_reduce_min": Value(234e9, _H200_RING),
    },
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": {
        **_RTX_PRO_6000,
        "ecc": Value(1, "nvidia-smi of the Server Edition: ECC is on as delivered"),
    },
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": _RTX_PRO_6000,
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": _RTX_PRO_6000,
}

# Every name that an operator may set, and the type of its value.
TYPES: Mapping[str, str] = {
    name: type(known.value).__name__ for values in (GENERAL, *MODELS.values()) for name, known in values.items()
}


@dataclass(frozen=True)
class Expected:
    """The expectations of one machine: the operator's values before the model's, those before the general ones."""

    overrides: Mapping[str, Number]

    def value(self, name: str, model: str = "") -> Value | None:
        """None where nothing is known; ``name`` must be one of TYPES."""
        if name not in TYPES:
            raise ValueError(f"{name} is none of {', '.join(sorted(TYPES))}")
        if name in self.overrides:
            return Value(self.overrides[name], "set by the operator")
        return MODELS.get(model, {}).get(name) or GENERAL.get(name)

    def limit(self, name: str) -> Number:
        """A general limit, which is always known."""
        found = self.value(name)
        if found is None:
            raise ValueError(f"{name} has no general value")
        return found.value
