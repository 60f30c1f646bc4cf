# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a checkpoint could not be read, and what to do about it."""

from __future__ import annotations


class CheckpointError(Exception):
    """A checkpoint, or a file of it, is not there, not allowed, not reachable or not what it should be.

    ``expected``, ``found`` and ``fix`` are the three parts of the check that the caller makes of it.
    """

    def __init__(self, expected: str, found: str, fix: str) -> None:
        super().__init__(f"expected {expected}; found {found}; fix: {fix}")
        self.expected = expected
        self.found = found
        self.fix = fix


class NotReadError(CheckpointError):
    """It may well be right, but is not looked into here: a reason to skip, not to fail."""


class BudgetError(NotReadError):
    """Reading on would cost more bytes or requests than was granted."""


class ConfigError(CheckpointError):
    """A key of config.json holds what no engine can use. ``key`` names it."""

    def __init__(self, key: str, expected: str, found: str, fix: str) -> None:
        super().__init__(expected, found, fix)
        self.key = key
