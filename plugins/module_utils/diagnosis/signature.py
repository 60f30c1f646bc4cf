# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One way for an engine to fail, as its log shows it. Named groups of a pattern are words of its cause and fix."""

from __future__ import annotations

from dataclasses import dataclass

# Why the engine ended.
CAUSE = "cause"
# It ended because it was asked to.
STOP = "stop"
# What happened, but not why: gives way to any cause.
GENERAL = "general"
# The engine serves, and something is wrong with it all the same.
HINT = "hint"

SGLANG = "https://github.com/sgl-project/sglang/issues/"
H200 = "seen on an H200 with SGLang 0.5.15"
ALL = "all"


@dataclass(frozen=True)
class Signature:
    """One way to fail.

    ``pattern`` is searched in the whole log, ``^`` and ``$`` matching at each line; ``unless`` is a pattern that rules
    it out wherever it stands. ``versions`` are those of SGLang in which it was seen or whose source has the text.
    """

    id: str
    pattern: str
    cause: str
    fix: str
    source: str
    versions: str = ALL
    kind: str = CAUSE
    unless: str = ""
