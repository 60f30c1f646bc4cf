# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU checks in their order: nodes first, because the driver's libraries create those that are missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import cuda, host, nodes
from .child import run_probe
from .probes import cuda as cuda_probe
from .probes import nodes as nodes_probe


@dataclass(frozen=True)
class Request:
    """What the operator asks. Without ``devices`` they follow from ``expected_count``, else from the PCI bus."""

    expected_count: int | None = None
    devices: tuple[str, ...] = ()
    driver: str = nodes.DRIVER_REQUIRED
    # Seconds that one probe may take.
    timeout: float = 60.0
    interpreter: str = sys.executable
    root: Path = host.ROOT


@dataclass(frozen=True)
class Health:
    """The checks and the GPUs found, as cuda.gpus describes them."""

    checks: tuple[Check, ...]
    gpus: tuple[dict[str, Any], ...]


def examine(request: Request) -> Health:
    """Look at everything once. Changes nothing and raises nothing for a broken GPU."""
    on_bus = host.pci_gpus(request.root)
    count = request.expected_count if request.expected_count is not None else len(on_bus) or None
    paths = list(request.devices) or nodes.default_nodes(count or 0)
    container = host.container(request.root)
    opened = run_probe(nodes_probe, paths, interpreter=sys.executable, timeout=request.timeout)
    checks = nodes.judge(paths, opened, driver=request.driver, majors=host.majors(request.root), container=container)
    checks.append(_driver(request, container))
    reason = _must_not_ask(request, checks, opened.of("node"))
    if reason:
        return Health((*checks, *cuda.skipped(reason)), ())
    answered = run_probe(cuda_probe, interpreter=request.interpreter, timeout=request.timeout)
    checks += cuda.judge(answered, expected_count=count)
    return Health(tuple(checks), tuple(cuda.gpus(answered)))


def _driver(request: Request, container: str) -> Check:
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
    where = "on the host of this container" if container else "here"
    fix = f"run role nvidia_driver {where}; on a machine that has no NVIDIA driver declare driver: absent"
    return Check("driver.loaded", FAIL, expected, "no NVIDIA kernel module is loaded", fix, source)


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
