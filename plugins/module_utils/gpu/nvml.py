# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what NVML answered as a whole: that it answers, which versions meet, and how the GPUs stand to each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import rules
from .child import DONE, Report
from .inventory import NVML_SOURCE, Finding, Gpu, combine, gpus, meaning

VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
INSTALL = "install nvidia-ml-py into the engine's venv and give that venv (venv: /opt/sglang/venv)"

# Every check of this file and of rules.py, so that none is lost when NVML cannot be asked.
ABOUT_ALL = (
    ("nvml.library", "nvidia-ml-py can be imported"),
    ("nvml.init", "NVML initialises"),
    ("nvml.answers", "every call returns"),
    ("gpu.count", "NVML counts the expected GPUs"),
    ("gpu.on_bus", "NVML lists every NVIDIA GPU on the PCI bus"),
    ("gpu.same_model", "all GPUs are of one model and one VBIOS"),
    ("gpu.p2p", "every two GPUs reach each other's memory"),
)


def skipped(reason: str, fix: str = "", first: int = 0) -> list[Check]:
    """The checks of this file, from the ``first``, and of rules.py when NVML was not asked."""
    about_each = [Check(rule.id, SKIPPED, rule.expected, reason, fix, rule.source) for rule in rules.RULES]
    return [
        Check(name, SKIPPED, expected, reason, fix, NVML_SOURCE) for name, expected in ABOUT_ALL[first:]
    ] + about_each


def judge(report: Report, context: rules.Context, *, expected_count: int | None, on_bus: Sequence[str]) -> list[Check]:
    """``on_bus`` are the PCI addresses of the GPUs that the kernel sees."""
    library = _library(report)
    if library.status != PASS:
        return [library, *skipped("nvidia-ml-py was not loaded", library.fix, first=1)]
    init = _init(report)
    if init.status != PASS:
        return [library, init, *skipped("NVML did not initialise", first=2)]
    found = gpus(report)
    return [
        library,
        init,
        _answers(report),
        _count(report, expected_count),
        _on_bus(found, on_bus, report, context.container, expected_count),
        _same_model(found),
        _p2p(report, found),
        *rules.judge(found, context),
    ]


def system(report: Report) -> dict[str, Any]:
    """driver, nvml, cuda (1000 * major + 10 * minor) and count, as far as NVML told them."""
    return {str(record["key"]): record["value"] for record in report.of("system")}


def _library(report: Report) -> Check:
    identifier, expected = ABOUT_ALL[0]
    told = report.of("library")
    if not told:
        fix = "check that this venv's interpreter starts"
        return Check(identifier, FAIL, expected, report.trouble() or "the probe said nothing", fix, NVML_SOURCE)
    if "error" in told[0]:
        return Check(identifier, SKIPPED, expected, str(told[0]["error"]), INSTALL, NVML_SOURCE)
    return Check(identifier, PASS, expected, f"nvidia-ml-py {told[0]['version']}", source=NVML_SOURCE)


def _init(report: Report) -> Check:
    identifier, expected = ABOUT_ALL[1]
    told = report.of("init")
    if not told:
        fix = f"the driver hangs or crashes: {rules.KERNEL_LOG} and reboot the host"
        return Check(identifier, FAIL, expected, f"nvmlInit: {report.trouble()}", fix, NVML_SOURCE)
    code = int(told[0]["code"])
    if not code:
        return Check(identifier, PASS, expected, "it does", source=NVML_SOURCE)
    fix = {
        9: "load the driver on the host (role nvidia_driver)",
        12: "install the driver's user-space libraries in the version of the host's kernel module (role nvidia_driver)",
        18: "install the libraries in the version of the host's kernel module (/proc/driver/nvidia/version)",
        4: "see the checks node.* here: a device node is not open to us",
    }.get(code, f"{rules.KERNEL_LOG} and reboot the host")
    return Check(identifier, FAIL, expected, meaning(code), fix, NVML_SOURCE)


def _answers(report: Report) -> Check:
    identifier, expected = ABOUT_ALL[2]
    calls = report.of("call")
    if report.end == DONE:
        return Check(identifier, PASS, expected, f"{len(calls)} calls in {report.seconds:.2f} s", source=NVML_SOURCE)
    last = calls[-1]
    where = f"{last['name']} on GPU {last['gpu']}" if last["gpu"] is not None else str(last["name"])
    fix = f"the driver hangs or crashes at this GPU: {rules.KERNEL_LOG}, stop the work and reboot the host"
    return Check(identifier, FAIL, expected, f"{where}: {report.trouble()}", fix, NVML_SOURCE)


def _count(report: Report, expected_count: int | None) -> Check:
    identifier, _words = ABOUT_ALL[3]
    expected = "at least 1 GPU" if expected_count is None else f"{expected_count} GPUs"
    count = system(report).get("count")
    if count is None:
        return Check(identifier, SKIPPED, expected, report.trouble() or "NVML did not tell", source=NVML_SOURCE)
    if count == 0 or expected_count not in (None, count):
        fix = f"{rules.KERNEL_LOG} for the missing GPU; else correct expected_count"
        return Check(identifier, FAIL, expected, f"{count} GPUs", fix, NVML_SOURCE)
    return Check(identifier, PASS, expected, f"{count} GPUs", source=NVML_SOURCE)


def _on_bus(
    found: Sequence[Gpu], on_bus: Sequence[str], report: Report, container: str, expected_count: int | None
) -> Check:
    identifier, expected = ABOUT_ALL[4]
    source = "sysfs: /sys/bus/pci/devices"
    listed = {gpu.pci for gpu in found}
    if not on_bus:
        return Check(identifier, SKIPPED, expected, "the kernel shows no NVIDIA GPU on a PCI bus here", source=source)
    if report.end != DONE:
        return Check(identifier, SKIPPED, expected, "NVML did not come to an end", source=source)
    missing = [address for address in on_bus if address not in listed]
    gone = [gpu.pci for gpu in found if gpu.pci and gpu.pci not in on_bus]
    if missing and not gone and container and len(found) == expected_count:
        text = f"{len(found)} as expected; {len(missing)} more on the bus are not granted to this container"
        return Check(identifier, PASS, expected, text, source=source)
    if missing or gone:
        told = [f"not in NVML: {', '.join(missing)}"] if missing else []
        told += [f"not on the bus: {', '.join(gone)}"] if gone else []
        fix = (
            f"{rules.KERNEL_LOG}: the GPU fell off the bus (Xid 79), has another driver (vfio-pci), or its node is not "
            "granted here; a GPU that fell off needs a reboot of the host"
        )
        return Check(identifier, FAIL, expected, "; ".join(told), fix, source)
    return Check(identifier, PASS, expected, f"{len(on_bus)} on the bus, all listed", source=source)


def _same_model(found: Sequence[Gpu]) -> Check:
    identifier, expected = ABOUT_ALL[5]
    kinds: dict[tuple[str, str], list[str]] = {}
    for gpu in found:
        kinds.setdefault((gpu.model or "unnamed", str(gpu.values.get("vbios", "VBIOS unknown"))), []).append(
            str(gpu.index)
        )
    told = "; ".join(f"GPU {', '.join(numbers)}: {model}, {vbios}" for (model, vbios), numbers in sorted(kinds.items()))
    if not kinds:
        return Check(identifier, SKIPPED, expected, "no GPU was read", source=NVML_SOURCE)
    if len(kinds) > 1:
        fix = "use GPUs of one model with one VBIOS: tensor parallelism runs at the pace of the slowest"
        return Check(identifier, WARN, expected, told, fix, NVML_SOURCE)
    return Check(identifier, PASS, expected, told, source=NVML_SOURCE)


def _p2p(report: Report, found: Sequence[Gpu]) -> Check:
    """NVML's word only: it says OK on machines where a real all_reduce hangs (level deep proves it)."""
    identifier, expected = ABOUT_ALL[6]
    if len(found) < 2:
        return Check(identifier, SKIPPED, expected, rules.ALONE if found else "no GPU", source=NVML_SOURCE)
    pairs: dict[tuple[int, int], dict[str, int]] = {}
    for record in report.of("pair"):
        pairs.setdefault((int(record["a"]), int(record["b"])), {})[str(record["key"])] = int(record["value"])
    refused = {tuple(record["pair"]): int(record["code"]) for record in report.of("error") if "pair" in record}
    findings = []
    for position, first in enumerate(found):
        for second in found[position + 1 :]:
            pair = (first.index, second.index)
            findings.append((f"{pair[0]}-{pair[1]}", _pair(pairs.get(pair, {}), refused.get(pair))))
    return combine(identifier, expected, findings)


def _pair(values: dict[str, int], code: int | None) -> Finding:
    path = rules.LEVELS.get(values.get("ancestor", -1), "path unknown")
    if "p2p_read" not in values or "p2p_write" not in values:
        return Finding(SKIPPED, meaning(code) if code is not None else "not read")
    states = {values["p2p_read"], values["p2p_write"]} - {0}
    if states:
        fix = (
            "NCCL will go through host memory: switch off ACS on the bridges and the IOMMU's translation, see host.acs"
        )
        return Finding(WARN, f"{', '.join(rules.P2P.get(state, str(state)) for state in sorted(states))} ({path})", fix)
    return Finding(PASS, f"OK ({path})")


VERSIONS = ("driver.versions", "kernel module, NVML and libcuda have one version")
BUILD = ("driver.cuda_build", "the driver supports the CUDA of the venv's PyTorch")


def no_versions(reason: str) -> list[Check]:
    """The two checks below when the libraries were not asked."""
    return [Check(name, SKIPPED, expected, reason, source=NVML_SOURCE) for name, expected in (VERSIONS, BUILD)]


def versions(kernel: str, report: Report, libcuda: str) -> Check:
    """Kernel module, NVML and libcuda must be of one version; ``libcuda`` is the file that the loader chose."""
    identifier, expected = VERSIONS
    source = "/proc/driver/nvidia/version, nvmlSystemGetNVMLVersion, the file behind libcuda.so.1"
    told = str(system(report).get("nvml", ""))
    found = {
        "kernel module": kernel,
        # 13.580.159.04: NVML puts the CUDA version in front.
        "NVML": told.partition(".")[2] if told.count(".") > 1 else told,
        "libcuda": _version_of(libcuda),
    }
    text = ", ".join(f"{name} {version or 'unknown'}" for name, version in found.items())
    known = {version for version in found.values() if version}
    if len(known) > 1:
        fix = "install the user-space libraries in the version of the host's kernel module and restart what uses them"
        return Check(identifier, FAIL, expected, text, fix, source)
    if not all(found.values()):
        return Check(identifier, SKIPPED, expected, text, source=source)
    return Check(identifier, PASS, expected, text, source=source)


def _version_of(library: str) -> str:
    match = VERSION.search(PurePosixPath(library).name.partition(".so.")[2])
    return match.group(0) if match else ""


def cuda_build(report: Report, driver_cuda: int | None) -> Check:
    """The driver must know the CUDA that PyTorch was built for; ``driver_cuda`` is 1000 * major + 10 * minor."""
    identifier, expected = BUILD
    source = "CUDA Toolkit release notes: CUDA driver compatibility, minor version compatibility"
    told = report.of("build")[:1]
    build = str(told[0]["cuda"]) if told else ""
    if not re.fullmatch(r"\d+\.\d+", build):
        reason = "no PyTorch for CUDA in this interpreter's packages (give the engine's venv)"
        return Check(identifier, SKIPPED, expected, reason, source=source)
    if not driver_cuda:
        return Check(identifier, SKIPPED, expected, "the driver did not tell its CUDA version", source=source)
    major, minor = (int(part) for part in build.split("."))
    has = (driver_cuda // 1000, driver_cuda % 1000 // 10)
    text = f"PyTorch {told[0]['torch']} for CUDA {build}, driver for CUDA {has[0]}.{has[1]}"
    if has[0] < major:
        fix = f"install a driver for CUDA {major} or newer (role nvidia_driver), or a PyTorch built for CUDA {has[0]}"
        return Check(identifier, FAIL, expected, text, fix, source)
    if has < (major, minor):
        fix = f"install a driver for CUDA {build}: with this one, code that is compiled at run time (PTX) does not load"
        return Check(identifier, WARN, expected, text, fix, source)
    return Check(identifier, PASS, expected, text, source=source)
