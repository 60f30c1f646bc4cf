# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs as NVML described them, and how the findings about each become one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from .child import Report

# nvml.h, nvmlReturn_t
NVML_CODES = {
    -1: "not known to the installed nvidia-ml-py",
    1: "NVML is not initialised",
    2: "not valid for this GPU",
    3: "not supported by this GPU",
    4: "no permission",
    6: "not found",
    9: "the NVIDIA driver is not loaded",
    10: "timed out",
    11: "the kernel has an interrupt problem with this GPU",
    12: "libnvidia-ml.so.1 was not found",
    13: "not known to this driver",
    14: "the infoROM is corrupted",
    15: "the GPU is lost (it fell off the bus)",
    16: "the GPU needs a reset",
    17: "the operating system refused",
    18: "the libraries and the kernel module have different versions",
    19: "in use",
    23: "not enough resources",
    27: "not ready",
    28: "no GPU was found",
    999: "unknown error",
}
# They mean that the GPU itself is gone.
LOST = (11, 14, 15, 16)

NVML_SOURCE = "NVML API reference (nvml.h)"


def meaning(code: int) -> str:
    """An nvmlReturn_t in words."""
    return f"NVML {code}: {NVML_CODES[code]}" if code in NVML_CODES else f"NVML code {code}"


@dataclass
class Gpu:
    """One GPU: what NVML answered and what it refused, by key (probes/nvml.py)."""

    index: int
    values: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Its name, empty when NVML did not tell."""
        return str(self.values.get("name", ""))

    @property
    def pci(self) -> str:
        """Its PCI address, empty when NVML did not tell."""
        return str(self.values.get("pci", ""))

    @property
    def used(self) -> int:
        """Bytes in use, without what the driver keeps for itself; 0 when NVML did not tell."""
        return int(self.values.get("memory", {}).get("used", 0))

    def facts(self) -> dict[str, Any]:
        """What other roles use: index, name, uuid, pci, minor, capability, vbios, memory and memory_used in bytes."""
        kept: dict[str, Any] = {"index": self.index}
        for key in ("name", "uuid", "pci", "minor", "capability", "vbios"):
            if key in self.values:
                kept[key] = self.values[key]
        if "memory" in self.values:
            kept["memory"] = int(self.values["memory"]["total"])
            kept["memory_used"] = self.used
        return kept

    def why_not(self, key: str) -> str:
        """Why a value is missing."""
        return meaning(self.errors[key]) if key in self.errors else "not read"


@dataclass(frozen=True)
class Finding:
    """What one rule says about one GPU or one pair."""

    status: str
    text: str
    fix: str = ""


def gpus(report: Report) -> list[Gpu]:
    """The GPUs of an NVML report, by index."""
    found: dict[int, Gpu] = {}
    for record in report.records:
        number = record.get("gpu")
        if number is None or record["kind"] not in ("value", "error"):
            continue
        gpu = found.setdefault(int(number), Gpu(int(number)))
        if record["kind"] == "value":
            gpu.values[str(record["key"])] = record["value"]
        else:
            gpu.errors[str(record["key"])] = int(record["code"])
    return [found[number] for number in sorted(found)]


def combine(
    identifier: str,
    expected: str,
    findings: Sequence[tuple[str, Finding]],
    source: str = NVML_SOURCE,
    nothing: str = "",
) -> Check:
    """One check from what was found about each GPU; ``findings`` are (label, finding), labels such as '3' or '0-1'.

    Not looked at on one GPU is not a pass: the worst of fail, warn, skipped, pass is the check's status. ``nothing`` is
    the reason when there is no finding at all.
    """
    if not findings:
        return Check(identifier, SKIPPED, expected, nothing or "no GPU was read", source=source)
    order = (FAIL, WARN, SKIPPED, PASS)
    status = min((finding.status for _label, finding in findings), key=order.index)
    texts: dict[tuple[int, str], list[str]] = {}
    for label, finding in findings:
        texts.setdefault((order.index(finding.status), finding.text), []).append(label)
    told = [f"{_who(labels, len(findings))}: {text}" for (_order, text), labels in sorted(texts.items())]
    fix = next((finding.fix for _label, finding in findings if finding.status == status and finding.fix), "")
    return Check(identifier, status, expected, "; ".join(told), fix, source)


def _who(labels: Sequence[str], count: int) -> str:
    return f"all {count}" if len(labels) == count > 1 else f"GPU {', '.join(labels)}"
