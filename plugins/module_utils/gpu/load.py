# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what the GPUs did under load (probes/load.py): bandwidths, links, results, temperatures, and a real all_reduce.

The all_reduce is the only proof against the hang of PCIe peer-to-peer traffic: NVML's own matrix says OK there
(NVIDIA/nccl issue 1999).
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import rules
from .child import DONE, Report, run_probe
from .expected import Expected
from .inventory import NVML_SOURCE, Finding, Gpu, combine
from .probes import load as probe

# Bytes of one message: a decode step's, a prefill's, and one that fills the links.
SIZES = (64 * 2**10, 32 * 2**20, 256 * 2**20)
BURN_SECONDS = 10

COPY = (
    ("deep.host_to_device", "host_to_device", "pinned host memory to GPU, one GPU at a time"),
    ("deep.device_to_host", "device_to_host", "GPU to pinned host memory, one GPU at a time"),
    ("deep.device_to_device", "device_to_device", "copy inside the GPU's memory, read plus written"),
)
LINK = ("deep.pcie", "the model's PCIe generation and width while copying")
BURN = ("deep.burn", "a matrix product repeated under load never changes by a bit")
SLOWDOWN = ("deep.slowdown", "no slowdown by the hardware under load")
HEAT = ("deep.temperature", "below the card's own thresholds under load")
ALL_REDUCE = ("deep.all_reduce", "an all_reduce over all GPUs ends with the right sum")
BANDWIDTH = ("deep.all_reduce_bandwidth", "the all_reduce reaches the model's bus bandwidth")
START = ("deep.start", "PyTorch opens every GPU")
NAMES = (START, *((name, words) for name, _key, words in COPY), LINK, BURN, SLOWDOWN, HEAT, ALL_REDUCE, BANDWIDTH)

SIGNATURE_SOURCE = (
    "local-inference-lab/rtx6kpro optimization/nccl-tuning.md: 100 % use, about 140 W, no growth of memory"
)
# The hang burns no power: all the cards seen drew about 140 W of 300 W or 600 W.
SIGNATURE_POWER_FRACTION = 0.5
SIGNATURE_SECONDS = 5.0
FLAT = 64 * 2**20


def skipped(reason: str, fix: str = "") -> list[Check]:
    """Every check of this file when the GPUs were not put under load."""
    return [Check(name, SKIPPED, words, reason, fix, NVML_SOURCE) for name, words in NAMES]


def work(interpreter: str, count: int, timeout: float, environment: Mapping[str, str]) -> Report:
    """Put ``count`` idle GPUs under load; ``timeout`` is the limit of each phase, in seconds."""
    plan = {"count": count, "limit": timeout, "burn": BURN_SECONDS, "sizes": SIZES}
    # The ranks end themselves; this limit is for an orchestrator that hangs with them.
    whole = timeout * (count + 4) + BURN_SECONDS
    return run_probe(probe, [json.dumps(plan)], interpreter=interpreter, timeout=whole, environment=environment)


def judge(report: Report, gpus: Sequence[Gpu], count: int, expected: Expected) -> list[Check]:
    """``gpus`` are NVML's descriptions from before; an empty list means that the thresholds are not known."""
    described = {gpu.index: gpu for gpu in gpus}
    every = [described.get(index, Gpu(index)) for index in range(count)]
    trouble = _trouble(report, count)
    if trouble:
        return trouble
    copies: dict[int, dict[str, float]] = {}
    for record in report.of("copy"):
        copies.setdefault(int(record["rank"]), {})[str(record["key"])] = float(record["value"])
    checks = [Check(*_named(START, PASS), f"{count} processes", source="PyTorch")]
    checks += [
        combine(name, words, [(rules.label(gpu), _rate(gpu, key, copies, expected, report)) for gpu in every])
        for name, key, words in COPY
    ]
    checks.append(combine(*LINK, [(rules.label(gpu), _link(gpu, copies, expected)) for gpu in every]))
    checks.append(combine(*BURN, [(rules.label(gpu), _burn(gpu, report)) for gpu in every]))
    checks.append(combine(*SLOWDOWN, [(rules.label(gpu), _slowdown(gpu, report, expected)) for gpu in every]))
    checks.append(combine(*HEAT, [(rules.label(gpu), _heat(gpu, report, expected)) for gpu in every]))
    checks += _all_reduce(report, every, expected)
    return checks


def _trouble(report: Report, count: int) -> list[Check]:
    """When nothing could be measured at all."""
    errors = [record for record in report.of("error") if record["phase"] == "import"]
    if errors:
        text = str(errors[0]["text"])
        if text.startswith(("ModuleNotFoundError", "ImportError")):
            return skipped(text, "give the engine's venv, which holds PyTorch (venv: /opt/sglang/venv)")
        fix = "mend the checks cuda.* first; else see the text and the host's kernel log"
        return [Check(*_named(START, FAIL), text, fix, "PyTorch"), *skipped("PyTorch did not open every GPU")[1:]]
    if not report.of("phase"):
        text = report.trouble() or "no rank started"
        fix = "check that the venv's interpreter starts and has the memory for a process a GPU"
        return [Check(*_named(START, FAIL), text, fix, "PyTorch"), *skipped("the processes did not start")[1:]]
    stuck = [str(rank) for rank in range(count) if _stuck(rank, "import", report)]
    if stuck:
        text = f"GPU {', '.join(stuck)}: no context within the time limit"
        fix = f"{rules.KERNEL_LOG} and reboot the host"
        return [Check(*_named(START, FAIL), text, fix, "PyTorch"), *skipped("PyTorch did not open every GPU")[1:]]
    return []


def _why_missing(rank: int, phase: str, report: Report) -> Finding:
    """What happened to a rank that did not tell its figure."""
    for record in report.of("error"):
        if record["rank"] == rank and record["phase"] == phase:
            return Finding(
                FAIL, str(record["text"]), "see the text and the host's kernel log (dmesg | grep -i -e nvrm -e xid)"
            )
    if _stuck(rank, phase, report):
        fix = f"{rules.KERNEL_LOG}, stop the work and reboot the host"
        return Finding(FAIL, f"no answer in phase {phase} within its time limit", fix)
    return Finding(SKIPPED, "not reached")


def _stuck(rank: int, phase: str, report: Report) -> bool:
    """Whether a rank was ended by its time limit in this phase."""
    last = [record["phase"] for record in report.of("phase") if record["rank"] == rank][-1:]
    ends = {int(record["rank"]): int(record["code"] or 0) for record in report.of("end")}
    timed_out = ends.get(rank) == -signal.SIGALRM or (report.end != DONE and rank not in ends)
    return last == [phase] and timed_out


def _rate(gpu: Gpu, key: str, copies: Mapping[int, Mapping[str, float]], expected: Expected, report: Report) -> Finding:
    measured = copies.get(gpu.index, {}).get(key)
    if measured is None:
        return _why_missing(gpu.index, "copy", report)
    wanted = expected.value(f"{key}_min", gpu.model)
    text = f"{measured / 1e9:.1f} GB/s"
    if wanted is None:
        return Finding(
            SKIPPED, f"{text} measured; no value is known for {gpu.model or 'this model'} (thresholds: {key}_min)"
        )
    if measured < wanted.value:
        fix = "see gpu.pcie_width and deep.pcie; then host.numa, the BIOS' memory settings and the riser of this card"
        return Finding(FAIL, f"{text}, at least {wanted.value / 1e9:.1f} expected", fix)
    return Finding(PASS, text)


def _link(gpu: Gpu, copies: Mapping[int, Mapping[str, float]], expected: Expected) -> Finding:
    told = copies.get(gpu.index, {})
    if "pcie_generation" not in told:
        return Finding(SKIPPED, "NVML did not tell the link while copying")
    generation, width = int(told["pcie_generation"]), int(told["pcie_width"])
    wanted = [expected.value(name, gpu.model) for name in ("pcie_generation", "pcie_width")]
    target = [
        int(value.value) if value else int(gpu.values.get(key, 0))
        for value, key in zip(wanted, ("pcie_generation_max", "pcie_width_max"))
    ]
    text = f"generation {generation} x{width}"
    if not all(target):
        return Finding(SKIPPED, f"{text}; no value is known for this model")
    if generation < target[0] or width < target[1]:
        fix = "reseat the card and its riser; set the slot's generation in the BIOS; see AER errors in the kernel log"
        return Finding(FAIL, f"{text}, generation {target[0]} x{target[1]} expected", fix)
    return Finding(PASS, text)


def _burn(gpu: Gpu, report: Report) -> Finding:
    for record in report.of("burn"):
        if record["rank"] != gpu.index:
            continue
        text = f"{record['products']} products at {record['flops'] / 1e12:.0f} TFLOP/s"
        if record["mismatches"]:
            fix = "do not serve from this card: it computes wrongly without an error; test it alone and replace it"
            return Finding(FAIL, f"{text}, results differed {record['mismatches']} times", fix)
        return Finding(PASS, text)
    return _why_missing(gpu.index, "burn", report)


def _samples(gpu: Gpu, report: Report, phase: str) -> list[dict[str, Any]]:
    """The samples of a GPU from the moment when its rank entered a phase until it entered the next."""
    moments = [record for record in report.of("phase") if record["rank"] == gpu.index]
    start = next((record["at"] for record in moments if record["phase"] == phase), None)
    if start is None:
        return []
    end = next((record["at"] for record in moments if record["at"] > start), float("inf"))
    return [record for record in report.of("sample") if record["gpu"] == gpu.index and start <= record["at"] <= end]


def _slowdown(gpu: Gpu, report: Report, expected: Expected) -> Finding:
    samples = _samples(gpu, report, "burn")
    reasons = [int(record["clock_reasons"]) for record in samples if record["clock_reasons"] is not None]
    clocks = [
        int(record["clock_sm"]) for record in samples if record["clock_sm"] and (record["utilization"] or 0) >= 90
    ]
    if not reasons:
        return Finding(SKIPPED, "NVML told no clock reasons during the burn")
    if any(reason & (rules.HW_SLOWDOWN | rules.HW_THERMAL | rules.HW_POWER_BRAKE) for reason in reasons):
        fix = "thermal: mend the cooling; power brake: check the power supplies and the cables of this card"
        return Finding(FAIL, "the hardware lowered the clocks", fix)
    most = gpu.values.get("clock_sm_max")
    if not clocks or not most:
        return Finding(SKIPPED, "NVML told no clocks during the burn")
    text = f"{min(clocks)} of {most} MHz"
    if min(clocks) < most * expected.limit("clock_under_load_min_fraction"):
        fix = f"see gpu.clocks and the power limit (nvidia-smi -i {gpu.index} -q -d POWER,CLOCK)"
        return Finding(WARN, text, fix)
    return Finding(PASS, text)


def _heat(gpu: Gpu, report: Report, expected: Expected) -> Finding:
    told = [
        int(record["temperature"])
        for record in report.of("sample")
        if record["gpu"] == gpu.index and record["temperature"]
    ]
    limit = gpu.values.get("temperature_slowdown")
    if not told:
        return Finding(SKIPPED, "NVML told no temperature")
    if limit is None:
        return Finding(SKIPPED, f"{max(told)} C at most; its threshold is not known")
    text = f"{max(told)} C at most, threshold {limit} C"
    if max(told) >= limit:
        return Finding(FAIL, text, "stop the work and mend the cooling of this card")
    if max(told) > limit - expected.limit("temperature_margin"):
        return Finding(WARN, text, "mend the cooling of this card: some seconds of load bring it near its slowdown")
    return Finding(PASS, text)


def _all_reduce(report: Report, gpus: Sequence[Gpu], expected: Expected) -> list[Check]:
    source = "NCCL; NVIDIA/nccl issues 1999 and 2079; NVML says OK where a real all_reduce hangs"
    if len(gpus) < 2:
        return [Check(name, SKIPPED, words, rules.ALONE, source=source) for name, words in (ALL_REDUCE, BANDWIDTH)]
    results = report.of("all_reduce")
    complete = {
        size: [record for record in results if record["bytes"] == size]
        for size in SIZES
        if sum(record["bytes"] == size for record in results) == len(gpus)
    }
    if len(complete) < len(SIZES):
        stuck = [gpu for gpu in gpus if _stuck(gpu.index, "all_reduce", report)]
        findings = [(rules.label(gpu), _why_missing(gpu.index, "all_reduce", report)) for gpu in gpus]
        check = combine(*ALL_REDUCE, findings, source)
        if stuck:
            check = _hang(stuck, report, source)
        elif check.status != FAIL:
            check = Check(
                *_named(ALL_REDUCE, SKIPPED), "not reached, see the other checks of level deep", source=source
            )
        return [check, Check(*_named(BANDWIDTH, SKIPPED), "the all_reduce did not end", source=source)]
    wrong = [record for records in complete.values() for record in records if record["wrong"]]
    text = ", ".join(f"{size // 1024} KiB in {_slowest(records) * 1e6:.0f} us" for size, records in complete.items())
    if wrong:
        fix = (
            "do not serve: peer copies corrupt data; confirm with NCCL_P2P_DISABLE=1, then see host.acs and host.iommu"
        )
        sums = Check(*_named(ALL_REDUCE, FAIL), f"{text}; wrong elements on {len(wrong)} of the results", fix, source)
    else:
        sums = Check(*_named(ALL_REDUCE, PASS), f"{text}; all sums right", source=source)
    return [sums, _bandwidth(complete[SIZES[-1]], gpus, expected)]


def _named(name: tuple[str, str], status: str) -> tuple[str, str, str]:
    return name[0], status, name[1]


def _slowest(records: Sequence[Mapping[str, Any]]) -> float:
    return max(float(record["seconds"]) for record in records)


def _bandwidth(records: Sequence[Mapping[str, Any]], gpus: Sequence[Gpu], expected: Expected) -> Check:
    measured = min(float(record["bandwidth"]) for record in records)
    text = f"{measured / 1e9:.1f} GB/s with {records[0]['bytes'] // 2**20} MiB"
    wanted = expected.value("all_reduce_min", gpus[0].model)
    if wanted is None:
        text += f"; no value is known for {gpus[0].model or 'this model'} (thresholds: all_reduce_min)"
        return Check(*_named(BANDWIDTH, SKIPPED), text, source="NCCL")
    if measured < wanted.value:
        fix = (
            "see gpu.nvlink, gpu.p2p, host.acs and host.iommu; then, over PCIe, NCCL_P2P_LEVEL=SYS and "
            "NCCL_MIN_NCHANNELS=8 in the service"
        )
        return Check(
            *_named(BANDWIDTH, FAIL), f"{text}, at least {wanted.value / 1e9:.1f} expected", fix, wanted.source
        )
    return Check(*_named(BANDWIDTH, PASS), text, source=wanted.source)


def _hang(stuck: Sequence[Gpu], report: Report, source: str) -> Check:
    labels = ", ".join(str(gpu.index) for gpu in stuck)
    told = [_signature(gpu, report) for gpu in stuck]
    if told and all(told):
        fix = (
            "peer-to-peer traffic hangs: confirm with NCCL_P2P_DISABLE=1 (environment), then mend host.acs, host.iommu "
            "and host.uvm_hmm, or serve with NCCL_P2P_DISABLE=1"
        )
        text = f"GPU {labels}: no end within the time limit; {told[0]}: the signature of a hang of peer-to-peer traffic"
        return Check(*_named(ALL_REDUCE, FAIL), text, fix, SIGNATURE_SOURCE)
    fix = "run it with NCCL_DEBUG=INFO (environment) and see what NCCL waits for; then the host's kernel log"
    return Check(*_named(ALL_REDUCE, FAIL), f"GPU {labels}: no end within the time limit", fix, source)


def _signature(gpu: Gpu, report: Report) -> str:
    """The hang's marks in the last seconds, or an empty string."""
    samples = _samples(gpu, report, "all_reduce")
    last = [record for record in samples if record["at"] >= samples[-1]["at"] - SIGNATURE_SECONDS] if samples else []
    limit = gpu.values.get("power_limit")
    if (
        not limit
        or len(last) < 3
        or any(record[key] is None for record in last for key in ("utilization", "power", "memory"))
    ):
        return ""
    memory = [record["memory"] for record in last]
    power = max(record["power"] for record in last)
    if (
        min(record["utilization"] for record in last) < 95
        or power > limit * SIGNATURE_POWER_FRACTION
        or max(memory) - min(memory) > FLAT
    ):
        return ""
    return f"100 % use at {power / 1000:.0f} W of {limit / 1000:.0f} W, flat memory"
