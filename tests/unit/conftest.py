# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import settings

# The same examples in each run: a change is to blame for a failure, and not the dice.
settings.register_profile("gpuserve", derandomize=True)
settings.load_profile("gpuserve")
