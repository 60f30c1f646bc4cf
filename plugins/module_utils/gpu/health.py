# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU checks in their order: nodes first, because the driver's libraries create those that are missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import cuda, host, kernel_log, load, machine, nodes, nvml, rules
from .child import Report, run_probe
from .expected import Expected, Number
from .inventory import Gpu, gpus
from .probes import cuda as cuda_probe
from .probes import nodes as nodes_probe
from .probes import nvml as nvml_probe

QUICK = "quick"
DEEP = "deep"


@dataclass(frozen=True)
class Request:
    """What the operator asks. Without ``devices`` they follow from ``expected_count``, else from the PCI bus."""

    expected_count: int | None = None
    devices: tuple[str, ...] = ()
    driver: str = nodes.DRIVER_REQUIRED
    level: str = QUICK
    # Fail unless nothing uses the GPUs.
    idle: bool = False
    # Seconds that one question, or one phase of the load, may take.
    timeout: float = 60.0
    # The venv that holds nvidia-ml-py and, for level deep, PyTorch; without it this interpreter.
    venv: str = ""
    # Environment of the load, such as the service's NCCL_* variables.
    environment: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, Number] = field(default_factory=dict)
    # Seconds of the kernel log that count; 0: since the boot.
    xid_window: float = 0.0
    root: Path = host.ROOT

    @property
    def interpreter(self) -> str:
        """The Python that has the libraries."""
        return f"{self.venv}/bin/python" if self.venv else sys.executable


@dataclass(frozen=True)
class Health:
    """The checks and what is known of each GPU."""

    checks: tuple[Check, ...]
    gpus: tuple[dict[str, Any], ...]


def examine(request: Request) -> Health:
    """Look at everything once. Changes nothing and raises nothing for a broken GPU."""
    container = host.container(request.root)
    on_bus = host.pci_gpus(request.root)
    count = request.expected_count if request.expected_count is not None else len(on_bus) or None
    paths = list(request.devices) or nodes.default_nodes(count or 0)
    opened = run_probe(nodes_probe, paths, interpreter=sys.executable, timeout=request.timeout)
    checks = nodes.judge(paths, opened, driver=request.driver, majors=host.majors(request.root), container=container)
    checks.append(_driver(request, container, opened.of("node")))
    venv = _venv(request)
    checks.append(venv)
    reason = _must_not_ask(request, checks, opened.of("node"))
    asked, answers, described = _ask(request, reason, venv, container, on_bus, count)
    checks += asked
    checks += machine.host_only(on_bus, container, request.root)
    checks += machine.everywhere(on_bus, count or len(described), Expected(request.thresholds), request.root)
    checks += _kernel_log(request, container)
    if request.level == DEEP:
        checks += _deep(request, reason, described, answers)
    return Health(tuple(checks), tuple(_facts(request, answers, described)))


def _driver(request: Request, container: str, opened: Sequence[dict[str, Any]]) -> Check:
    expected = "the NVIDIA kernel module is loaded"
    source = "/proc/driver/nvidia/version"
    version = host.kernel_driver(request.root)
    if request.driver == nodes.DRIVER_ABSENT:
        if not version:
            return Check("driver.loaded", SKIPPED, expected, nodes.DECLARED_ABSENT, source=source)
        fix = "declare driver: required, so that this machine's GPUs are checked"
        return Check(
            "driver.loaded", WARN, "no NVIDIA driver (declared absent)", f"version {version} is loaded", fix, source
        )
    if version:
        return Check("driver.loaded", PASS, expected, f"version {version}", source=source)
    if nodes.answered(opened):
        reason = "a driver answers the nodes, but its version cannot be read here"
        return Check("driver.loaded", SKIPPED, expected, reason, source=source)
    where = "on the host of this container" if container else "here"
    fix = f"run role nvidia_driver {where}; on a machine that has no NVIDIA driver declare driver: absent"
    return Check("driver.loaded", FAIL, expected, "no NVIDIA kernel module is loaded", fix, source)


def _venv(request: Request) -> Check:
    expected = "the venv's interpreter can be run"
    if not request.venv:
        return Check("venv.python", SKIPPED, expected, f"no venv was given; {sys.executable} is used")
    if os.access(request.interpreter, os.X_OK):
        return Check("venv.python", PASS, expected, request.interpreter)
    fix = "run role sglang_install, which makes the venv, or correct venv"
    return Check("venv.python", FAIL, expected, f"{request.interpreter} does not exist or cannot be run", fix)


def _must_not_ask(request: Request, checks: Sequence[Check], opened: Sequence[dict[str, Any]]) -> str:
    """Why the driver's libraries are left alone, or an empty string."""
    if request.driver == nodes.DRIVER_ABSENT:
        return nodes.DECLARED_ABSENT
    if any(check.id == "driver.loaded" and check.status == FAIL for check in checks):
        return "no NVIDIA kernel module is loaded; the driver's libraries would try to load it"
    missing = nodes.missing(opened)
    if missing:
        return f"missing {', '.join(missing)}: the driver's libraries would create it and hide the fault until a reboot"
    return ""


def _ask(
    request: Request, reason: str, venv: Check, container: str, on_bus: Sequence[str], count: int | None
) -> tuple[list[Check], Report | None, list[Gpu]]:
    """The checks that ask the driver, CUDA's report and NVML's GPUs; ``reason`` says why it must not be asked."""
    if reason:
        return [*cuda.skipped(reason), *nvml.skipped(reason), *nvml.no_versions(reason)], None, []
    # libcuda needs no package: this interpreter will do, and a missing venv hides nothing.
    answers = run_probe(cuda_probe, interpreter=sys.executable, timeout=request.timeout)
    checks = cuda.judge(answers, expected_count=count)
    if venv.status == FAIL:
        return [*checks, *nvml.skipped(venv.actual, venv.fix), *nvml.no_versions(venv.actual)], answers, []
    told = run_probe(nvml_probe, interpreter=request.interpreter, timeout=request.timeout)
    described = gpus(told)
    expected = Expected(request.thresholds)
    idle = request.idle or request.level == DEEP
    context = rules.Context(expected, len(described), container, idle, request.root)
    checks += nvml.judge(told, context, expected_count=count, on_bus=on_bus)
    libcuda = next((str(record.get("path", "")) for record in answers.of("library")), "")
    checks.append(nvml.versions(host.kernel_driver(request.root), told, libcuda))
    driver_cuda = next((int(record["driver"]) for record in answers.of("count")), None)
    checks.append(nvml.cuda_build(told, driver_cuda))
    return checks, answers, described


def _kernel_log(request: Request, container: str) -> list[Check]:
    unseen = kernel_log.Log((), False, rules.RUN_ON_HOST)
    log = unseen if container else kernel_log.read(request.timeout, request.root)
    return [
        kernel_log.judge_xids(log, request.xid_window),
        kernel_log.judge_sxids(log, request.xid_window, machine.nvswitches(request.root)),
    ]


def _deep(request: Request, reason: str, described: Sequence[Gpu], answers: Report | None) -> list[Check]:
    """The load, only where CUDA works and nothing else would be disturbed."""
    devices = cuda.gpus(answers) if answers else []
    if reason or not devices:
        return load.skipped(reason or "CUDA found no GPU")
    if len(described) != len(devices):
        return load.skipped("NVML did not describe the GPUs that CUDA found: idle ones cannot be told from busy ones")
    limit = Expected(request.thresholds).limit("memory_used_max")
    busy = [str(gpu.index) for gpu in described if gpu.values.get("processes") or gpu.used > limit]
    if busy:
        return load.skipped(f"GPU {', '.join(busy)} in use: level deep needs idle GPUs", "stop what uses the GPUs")
    report = load.work(request.interpreter, len(devices), request.timeout, request.environment)
    return load.judge(report, described, len(devices), Expected(request.thresholds))


def _facts(request: Request, answers: Report | None, described: Sequence[Gpu]) -> list[dict[str, Any]]:
    """Each GPU as NVML described it, else as CUDA did; never mixed, because they may number differently."""
    found = [gpu.facts() for gpu in described] or (cuda.gpus(answers) if answers else [])
    return [{**facts, "numa_node": host.numa_node(str(facts.get("pci", "")), request.root)} for facts in found]


@dataclass(frozen=True)
class Survey:
    """What other roles want to know about the GPUs; ``reason`` says why there are none."""

    gpus: tuple[dict[str, Any], ...]
    driver: str
    # CUDA version of the driver, such as 13.0.
    cuda: str
    container: str
    reason: str


def survey(request: Request) -> Survey:
    """Describe the GPUs without judging them, and without making a node that is missing."""
    container = host.container(request.root)
    driver = host.kernel_driver(request.root)
    paths = list(request.devices) or list(nodes.CONTROL_NODES)
    opened = run_probe(nodes_probe, paths, interpreter=sys.executable, timeout=request.timeout)
    reason = _must_not_ask(request, [_driver(request, container, opened.of("node"))], opened.of("node"))
    if reason:
        return Survey((), driver, "", container, reason)
    told = run_probe(nvml_probe, interpreter=request.interpreter, timeout=request.timeout)
    described = gpus(told)
    answers = None if described else run_probe(cuda_probe, interpreter=sys.executable, timeout=request.timeout)
    counted = answers.of("count") if answers else []
    version = int(nvml.system(told).get("cuda") or next((record["driver"] for record in counted), 0))
    found = _facts(request, answers, described)
    trouble = "" if found else "neither NVML nor CUDA described a GPU: gpu_health tells why"
    return Survey(
        tuple(found), driver, f"{version // 1000}.{version % 1000 // 10}" if version else "", container, trouble
    )
