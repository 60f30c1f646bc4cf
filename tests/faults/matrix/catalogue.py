# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All faults, in the order of the table, and those that the lab cannot bring about."""

from __future__ import annotations

from tests.faults.matrix import devices, installed, kills, models, service, system
from tests.faults.matrix.faults import Fault, Untested

FAULTS: tuple[Fault, ...] = (
    # First, since they leave a lab that serves to the others.
    *kills.FAULTS,
    *devices.FAULTS,
    *installed.FAULTS,
    *models.FAULTS,
    *service.FAULTS,
    *system.FAULTS,
)

UNTESTED = (
    Untested(
        "driver-on-the-host-only",
        "The driver was upgraded on the host only.",
        "No kernel module can be loaded here. Scenario `driver` does it with packages as NVIDIA's are, and a file "
        "in the place of what the module tells of itself: `make molecule SCENARIO=driver`.",
    ),
    Untested(
        "clock-off",
        "The clock of a host is far off now.",
        "The lab's hosts have the clock of the machine they run on. What a wrong one leaves behind is in the table.",
    ),
)
