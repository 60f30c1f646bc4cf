# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules about each GPU, on what NVML answered. A value that NVML refused is never a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from .expected import Expected
from .host import process_state
from .inventory import LOST, NVML_SOURCE, Finding, Gpu, combine, meaning

# nvml.h: nvmlClocksEventReason*
IDLE = 0x1
SW_POWER_CAP = 0x4
HW_SLOWDOWN, HW_THERMAL, HW_POWER_BRAKE = 0x8, 0x40, 0x80
SW_THERMAL = 0x20
# nvml.h: nvmlPstates_t; P0 to P4 are those of work.
IDLE_STATE = 5
# nvml.h: nvmlDeviceGpuRecoveryAction_t
RECOVERY = {
    0: "nothing",
    1: "reset the GPU (nvidia-smi --gpu-reset -i N)",
    2: "reboot the host",
    3: "drain the work that uses peer-to-peer access",
    4: "drain the work and reset the GPU (nvidia-smi --gpu-reset -i N)",
    5: "recover the IMEX domain",
    6: "reset the GPU's bus, or reboot the host",
    7: "power-cycle the host",
}
# nvml.h: nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t
P2P = {
    0: "OK",
    1: "not supported by the chipset",
    2: "not supported by the GPU",
    3: "not supported across these I/O hubs",
    4: "disabled by a registry key",
    5: "not supported",
    6: "unknown",
}
LEVELS = {
    0: "same board",
    10: "one PCIe switch",
    20: "several PCIe switches",
    30: "one host bridge",
    40: "one NUMA node",
    50: "across NUMA nodes",
}
COMPUTE_MODES = {0: "Default", 1: "Exclusive thread", 2: "Prohibited", 3: "Exclusive process"}
FABRIC_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}

ALONE = "a single GPU has no peer"
RUN_ON_HOST = "run on the host"
KERNEL_LOG = "read the host's kernel log (dmesg | grep -i -e nvrm -e xid)"


@dataclass(frozen=True)
class Context:
    """What a rule must know besides its GPU. ``container`` is empty on a host; ``idle``: nothing may use the GPUs."""

    expected: Expected
    count: int
    container: str = ""
    idle: bool = False
    root: Path = Path("/")


@dataclass(frozen=True)
class Rule:
    """One rule about one GPU."""

    id: str
    expected: str
    judge: Callable[[Gpu, Context], Finding]
    source: str = NVML_SOURCE


def judge(found: Sequence[Gpu], context: Context) -> list[Check]:
    """Every rule on every GPU that gave a handle."""
    usable = [gpu for gpu in found if "handle" not in gpu.errors]
    return [
        combine(rule.id, rule.expected, [(label(gpu), rule.judge(gpu, context)) for gpu in usable], rule.source)
        for rule in RULES
    ]


def label(gpu: Gpu) -> str:
    """Index and, where known, PCI address: a slot is what a hand can find."""
    return f"{gpu.index} ({gpu.pci})" if gpu.pci else str(gpu.index)


def _missing(gpu: Gpu, *keys: str) -> Finding | None:
    """The finding when one of the values is not there."""
    for key in keys:
        if key in gpu.values:
            continue
        if gpu.errors.get(key) in LOST:
            return Finding(FAIL, meaning(gpu.errors[key]), f"{KERNEL_LOG} for an Xid of this GPU and reboot the host")
        return Finding(SKIPPED, gpu.why_not(key))
    return None


def _lost(gpu: Gpu, _context: Context) -> Finding:
    lost = sorted({code for code in gpu.errors.values() if code in LOST})
    if lost:
        fix = f"{KERNEL_LOG} for an Xid of this GPU, reboot the host, and reseat or replace the card if it comes back"
        return Finding(FAIL, ", ".join(meaning(code) for code in lost), fix)
    return Finding(PASS, "it answers") if gpu.values else Finding(SKIPPED, "nothing was read")


def _recovery(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "recovery_action")
    if missing:
        return missing
    action = int(gpu.values["recovery_action"])
    text = RECOVERY.get(action, f"action {action}")
    return Finding(FAIL, f"the driver asks: {text}", text) if action else Finding(PASS, "none")


def _memory_total(gpu: Gpu, context: Context) -> Finding:
    missing = _missing(gpu, "memory")
    if missing:
        return missing
    total = int(gpu.values["memory"]["total"])
    wanted = context.expected.value("memory_total", gpu.model)
    if wanted is None:
        return Finding(SKIPPED, f"{_mib(total)}; no value is known for {gpu.model or 'this model'}")
    if total < wanted.value:
        fix = "see whether MIG or a vGPU profile takes a part of it, and the remapped rows; else replace the card"
        return Finding(FAIL, f"{_mib(total)}, {_mib(int(wanted.value))} expected", fix)
    return Finding(PASS, _mib(total))


def _leaked(gpu: Gpu, context: Context) -> Finding:
    """Memory that no process owns up to; the processes themselves are another rule's."""
    missing = _missing(gpu, "memory", "processes")
    if missing:
        return missing
    used, limit = int(gpu.values["memory"]["used"]), int(context.expected.limit("memory_used_max"))
    if gpu.values["processes"]:
        return Finding(PASS, f"{_mib(used)} used by {len(gpu.values['processes'])} processes")
    if used <= limit:
        return Finding(PASS, f"{_mib(used)} used, no process")
    if context.container:
        return Finding(SKIPPED, f"{_mib(used)} used; {RUN_ON_HOST}, where every process is seen")
    fix = "stop who holds it (fuser -v /dev/nvidia*); if nobody does, reset the GPU (nvidia-smi --gpu-reset -i N)"
    return Finding(FAIL, f"{_mib(used)} used and no process listed", fix)


def _processes(gpu: Gpu, context: Context) -> Finding:
    """Processes that hold the GPU and no longer live: they are gone, defunct, or wait inside the kernel."""
    missing = _missing(gpu, "processes")
    if missing:
        return missing
    if context.container:
        return Finding(SKIPPED, RUN_ON_HOST)
    stray = []
    for process in gpu.values["processes"]:
        state = process_state(int(process["pid"]), context.root)
        if state in ("gone", "Z", "D"):
            words = {"gone": "is gone", "Z": "is defunct", "D": "waits inside the kernel"}
            stray.append(f"process {process['pid']} {words[state]}")
    if stray:
        fix = "end the parent of a defunct process; if the GPU stays held, reset it (nvidia-smi --gpu-reset -i N)"
        return Finding(FAIL, ", ".join(stray), fix)
    return Finding(PASS, f"{len(gpu.values['processes'])} processes, all alive")


def _idle(gpu: Gpu, context: Context) -> Finding:
    """Only where it was asked for: before a start, and before the tests of level deep."""
    if not context.idle:
        return Finding(SKIPPED, "not asked for (idle: true)")
    missing = _missing(gpu, "memory")
    if missing:
        return missing
    used, limit = int(gpu.values["memory"]["used"]), int(context.expected.limit("memory_used_max"))
    processes = gpu.values.get("processes", [])
    text = f"{_mib(used)} used, processes: {', '.join(str(entry['pid']) for entry in processes) or 'none seen'}"
    if processes or used > limit:
        return Finding(
            FAIL, text, "stop what uses the GPUs; a server that was just stopped needs some seconds to let go"
        )
    return Finding(PASS, text)


def _ecc_mode(gpu: Gpu, context: Context) -> Finding:
    missing = _missing(gpu, "ecc_mode")
    if missing:
        return missing
    current, pending = gpu.values["ecc_mode"]
    wanted = context.expected.value("ecc", gpu.model)
    if current != pending:
        return Finding(WARN, f"{_on(current)}, {_on(pending)} after the next reset", "reset the GPU or reboot the host")
    if wanted is not None and bool(current) != bool(wanted.value):
        flag = int(bool(wanted.value))
        return Finding(
            WARN, f"{_on(current)}, {_on(wanted.value)} expected", f"run nvidia-smi -e {flag} on the host and reboot it"
        )
    return Finding(PASS, _on(current))


def _ecc_volatile(gpu: Gpu, context: Context) -> Finding:
    missing = _missing(gpu, "ecc_volatile_corrected", "ecc_volatile_uncorrected")
    if missing:
        return missing
    corrected, uncorrected = int(gpu.values["ecc_volatile_corrected"]), int(gpu.values["ecc_volatile_uncorrected"])
    text = f"{uncorrected} uncorrected, {corrected} corrected"
    if uncorrected:
        return Finding(FAIL, text, "stop the work, reset the GPU, and replace it if errors come back")
    if corrected > context.expected.limit("ecc_corrected_max"):
        return Finding(WARN, text, "plan a replacement: this many corrected errors come before uncorrected ones")
    return Finding(PASS, text)


def _ecc_aggregate(gpu: Gpu, context: Context) -> Finding:
    missing = _missing(gpu, "ecc_aggregate_corrected", "ecc_aggregate_uncorrected")
    if missing:
        return missing
    corrected, uncorrected = int(gpu.values["ecc_aggregate_corrected"]), int(gpu.values["ecc_aggregate_uncorrected"])
    text = f"{uncorrected} uncorrected, {corrected} corrected in its life"
    if uncorrected > context.expected.limit("ecc_aggregate_uncorrected_max"):
        return Finding(FAIL, text, "replace the card")
    if uncorrected or corrected > context.expected.limit("ecc_corrected_max"):
        return Finding(WARN, text, "watch this card: compare the number with the next run's")
    return Finding(PASS, text)


def _remapped_rows(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "remapped_rows")
    if missing:
        return missing
    corrected, uncorrected, pending, failed = gpu.values["remapped_rows"]
    text = f"{uncorrected} for uncorrected and {corrected} for corrected errors"
    if failed:
        return Finding(
            FAIL, f"{text}, a remapping failed", "replace the card: it has no spare rows left where it needs them"
        )
    if pending:
        return Finding(
            FAIL, f"{text}, one is pending", "reset the GPU (nvidia-smi --gpu-reset -i N) or reboot the host"
        )
    return Finding(PASS, text)


def _retired_pages(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "retired_pages_single", "retired_pages_double", "retired_pages_pending")
    if missing:
        return missing
    single, double = int(gpu.values["retired_pages_single"]), int(gpu.values["retired_pages_double"])
    text = f"{single} for single-bit and {double} for double-bit errors"
    if gpu.values["retired_pages_pending"]:
        return Finding(FAIL, f"{text}, one is pending", "reset the GPU or reboot the host")
    if single + double >= 60:
        return Finding(FAIL, text, "replace the card: NVIDIA takes 60 retired pages as a reason")
    return Finding(PASS, text)


def _repair(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "repair")
    if missing:
        return missing
    told = [name for name, pending in zip(("a channel", "a TPC"), gpu.values["repair"]) if pending]
    if told:
        return Finding(WARN, f"repair of {' and '.join(told)} is pending", "reset the GPU or reboot the host")
    return Finding(PASS, "none is pending")


def _pcie_width(gpu: Gpu, context: Context) -> Finding:
    wanted = context.expected.value("pcie_width", gpu.model)
    missing = _missing(gpu, "pcie_width", *(() if wanted else ("pcie_width_max",)))
    if missing:
        return missing
    width = int(gpu.values["pcie_width"])
    target = int(wanted.value if wanted else gpu.values["pcie_width_max"])
    if width < target:
        fix = "reseat the card and its riser; check the slot's lanes in the BIOS"
        return Finding(FAIL, f"x{width}, x{target} expected", fix)
    return Finding(PASS, f"x{width}")


def _pcie_generation(gpu: Gpu, context: Context) -> Finding:
    """A link slows down while the GPU is idle: that is no fault, and no proof of its speed either."""
    missing = _missing(gpu, "pcie_generation", "pcie_generation_max")
    if missing:
        return missing
    current, most = int(gpu.values["pcie_generation"]), int(gpu.values["pcie_generation_max"])
    wanted = context.expected.value("pcie_generation", gpu.model)
    target = int(wanted.value) if wanted else most
    if most < target:
        fix = "set the slot's PCIe generation in the BIOS"
        return Finding(WARN, f"the slot allows generation {most}, {target} expected", fix)
    if current >= target:
        return Finding(PASS, f"generation {current}")
    missing = _missing(gpu, "clock_reasons", "performance_state")
    if missing:
        return Finding(SKIPPED, f"generation {current}, and whether it is idle: {missing.text}")
    if int(gpu.values["clock_reasons"]) & IDLE or int(gpu.values["performance_state"]) >= IDLE_STATE:
        return Finding(SKIPPED, f"generation {current} while idle, which is no fault; level: deep reads it under load")
    fix = "reseat the card and its riser; look for AER errors of its slot in the kernel log"
    return Finding(FAIL, f"generation {current} while working, {target} expected", fix)


def _hw_slowdown(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "clock_reasons")
    if missing:
        return missing
    reasons = int(gpu.values["clock_reasons"])
    told = [
        name
        for bit, name in ((HW_THERMAL, "thermal"), (HW_POWER_BRAKE, "power brake"), (HW_SLOWDOWN, "slowdown"))
        if reasons & bit
    ]
    if told:
        fix = "thermal: mend the cooling; power brake: check the power supplies and the cables of this card"
        return Finding(FAIL, f"hardware {', '.join(told)}", fix)
    return Finding(PASS, "none")


def _sw_slowdown(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "clock_reasons")
    if missing:
        return missing
    reasons = int(gpu.values["clock_reasons"])
    if reasons & SW_THERMAL:
        return Finding(WARN, "the driver lowers the clocks for heat", "mend the cooling of this card")
    return Finding(PASS, "the power cap holds the clocks" if reasons & SW_POWER_CAP else "none")


def _temperature(gpu: Gpu, context: Context) -> Finding:
    """Against the thresholds of the card itself: as temperatures, else as the margin that newer cards give."""
    missing = _missing(gpu, "temperature")
    if missing:
        return missing
    margin = int(context.expected.limit("temperature_margin"))
    if "temperature_slowdown" in gpu.values:
        left = int(gpu.values["temperature_slowdown"]) - int(gpu.values["temperature"])
    elif "temperature_margin" in gpu.values:
        left = int(gpu.values["temperature_margin"])
    else:
        return Finding(SKIPPED, f"{gpu.values['temperature']} C; its thresholds: {gpu.why_not('temperature_slowdown')}")
    text = f"{gpu.values['temperature']} C, {left} below its threshold"
    if left <= 0:
        return Finding(FAIL, text, "stop the work and mend the cooling of this card")
    if left <= margin:
        return Finding(WARN, text, "mend the cooling of this card before it lowers its clocks")
    return Finding(PASS, text)


def _persistence(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "persistence")
    if missing:
        return missing
    if gpu.values["persistence"]:
        return Finding(PASS, "on")
    return Finding(
        WARN, "off", "start nvidia-persistenced on the host (role nvidia_driver): each start waits for the GPUs"
    )


def _compute_mode(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "compute_mode")
    if missing:
        return missing
    mode = int(gpu.values["compute_mode"])
    text = COMPUTE_MODES.get(mode, f"mode {mode}")
    if mode == 0:
        return Finding(PASS, text)
    return Finding(FAIL if mode == 2 else WARN, text, "run nvidia-smi -c 0 on the host")


def _mig(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "mig")
    if missing:
        return missing
    current, pending = gpu.values["mig"]
    if current or pending:
        text = _on(current) if current == pending else f"{_on(current)}, {_on(pending)} after the next reset"
        return Finding(
            FAIL, text, f"run nvidia-smi -i {gpu.index} -mig 0 on the host: tensor parallelism needs whole GPUs"
        )
    return Finding(PASS, "off")


def _clocks(gpu: Gpu, _context: Context) -> Finding:
    """Clocks that somebody lowered for good; what they do from moment to moment is no fault."""
    missing = _missing(gpu, "clock_sm_application", "clock_sm_application_default")
    if missing:
        return missing
    now, default = int(gpu.values["clock_sm_application"]), int(gpu.values["clock_sm_application_default"])
    if now < default:
        fix = f"run nvidia-smi -i {gpu.index} -rac on the host, unless the clock was lowered on purpose"
        return Finding(WARN, f"applications run at {now} MHz, {default} MHz by default", fix)
    return Finding(PASS, f"{now} MHz")


def _bar1(gpu: Gpu, context: Context) -> Finding:
    missing = _missing(gpu, "bar1", "memory")
    if missing:
        return missing
    mapped, total = int(gpu.values["bar1"]), int(gpu.values["memory"]["total"])
    if context.count > 1 and mapped < total:
        fix = "enable Resizable BAR and Above 4G Decoding in the BIOS: peers reach only what the BAR maps"
        return Finding(WARN, f"{_mib(mapped)}, less than its {_mib(total)} of memory", fix)
    return Finding(PASS, _mib(mapped))


def _nvlink(gpu: Gpu, context: Context) -> Finding:
    wanted = context.expected.value("nvlinks", gpu.model)
    if wanted is not None and not wanted.value:
        return Finding(SKIPPED, f"{gpu.model} has no NVLink")
    if context.count == 1:
        return Finding(SKIPPED, ALONE)
    missing = _missing(gpu, "nvlinks")
    if missing and wanted is None:
        return missing
    if missing:
        fix = "see NvLinkDisable in /proc/driver/nvidia/params; without NVLink the GPUs talk over PCIe"
        return Finding(WARN, f"{missing.text}, {wanted.value if wanted else 0} links expected", fix)
    active = sum(gpu.values["nvlinks"])
    target = int(wanted.value) if wanted else len(gpu.values["nvlinks"])
    if active < target:
        return Finding(
            FAIL, f"{active} of {target} links are active", f"{KERNEL_LOG} for Xid 74 and restart the fabric manager"
        )
    return Finding(PASS, f"{active} links are active")


def _fabric(gpu: Gpu, _context: Context) -> Finding:
    missing = _missing(gpu, "fabric")
    if missing:
        return missing
    state, status = gpu.values["fabric"]
    if state == 0:
        return Finding(SKIPPED, "no NVSwitch fabric")
    text = FABRIC_STATES.get(state, f"state {state}")
    if state == 3 and status == 0:
        return Finding(PASS, text)
    fix = "start nvidia-fabricmanager on the host in the driver's version; while it is not ready cuInit answers 802"
    return Finding(FAIL, text if status == 0 else f"{text}, {meaning(status)}", fix)


RULES: Sequence[Rule] = (
    Rule("gpu.lost", "every GPU answers", _lost),
    Rule("gpu.recovery_action", "the driver asks for no action", _recovery),
    Rule("gpu.memory_total", "the model's memory", _memory_total),
    Rule("gpu.memory_leaked", "no memory is held without a process", _leaked),
    Rule("gpu.processes", "every process that holds a GPU lives", _processes),
    Rule("gpu.idle", "nothing uses the GPUs", _idle),
    Rule("gpu.ecc_mode", "ECC as the model is delivered, nothing pending", _ecc_mode),
    Rule("gpu.ecc_volatile", "no uncorrected memory error since the driver was loaded", _ecc_volatile),
    Rule("gpu.ecc_aggregate", "few memory errors in the card's life", _ecc_aggregate),
    Rule(
        "gpu.remapped_rows",
        "no row remapping pending or failed",
        _remapped_rows,
        "NVIDIA GPU Memory Error Management: row remapping",
    ),
    Rule("gpu.retired_pages", "fewer than 60, none pending", _retired_pages, "NVIDIA Dynamic Page Retirement"),
    Rule("gpu.repair", "no repair is pending", _repair),
    Rule("gpu.pcie_width", "the model's PCIe width", _pcie_width),
    Rule("gpu.pcie_generation", "the model's PCIe generation while it works", _pcie_generation),
    Rule("gpu.hw_slowdown", "no slowdown by the hardware", _hw_slowdown),
    Rule("gpu.sw_slowdown", "no slowdown for heat by the driver", _sw_slowdown),
    Rule("gpu.temperature", "below the card's own thresholds", _temperature),
    Rule("gpu.persistence", "persistence is on", _persistence),
    Rule("gpu.compute_mode", "compute mode Default", _compute_mode),
    Rule("gpu.mig", "MIG is off", _mig),
    Rule("gpu.clocks", "the clock limit is not lowered", _clocks),
    Rule(
        "gpu.bar1",
        "all of the memory is mapped for peers",
        _bar1,
        "local-inference-lab/rtx6kpro hardware/pcie-bandwidth.md, BAR1 Configuration",
    ),
    Rule("gpu.nvlink", "every NVLink of the model is active", _nvlink),
    Rule("gpu.fabric", "the NVSwitch fabric is complete", _fabric),
)


def _mib(value: int) -> str:
    return f"{value // 2**20} MiB"


def _on(state: object) -> str:
    return "on" if state else "off"
