# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All known failures: the data of the diagnosis, and of docs/failures.md.

Tables in Python, since no target need have a reader of YAML.
"""

from __future__ import annotations

from .families import drafter, flags, gpu, install, memory, model, parallel, service

# A log is held against them in this order.
SIGNATURES = (
    *flags.SIGNATURES,
    *drafter.SIGNATURES,
    *model.SIGNATURES,
    *memory.SIGNATURES,
    *gpu.SIGNATURES,
    *parallel.SIGNATURES,
    *install.SIGNATURES,
    *service.SIGNATURES,
)
