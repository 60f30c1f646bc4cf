# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab's engine needs besides the engine: tiny models and stand-ins for two packages."""
