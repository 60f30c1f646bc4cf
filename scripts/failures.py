#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes docs/failures.md out of the catalogue of the diagnosis."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / ".build" / "collections"))

from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.catalogue import SIGNATURES  # noqa: E402
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.signature import (  # noqa: E402
    CAUSE,
    GENERAL,
    HINT,
    STOP,
    Signature,
)

DOCUMENT = ROOT / "docs" / "failures.md"
_HEAD = """\
# How engines fail

<!-- Written by scripts/failures.py out of plugins/module_utils/diagnosis/families: change that instead. -->

`sglang_diagnose` and `sglang_ready` look for these failures in the journal of the engine, or in a log file:

    ansible ct200 -i inventories/ct200 -b -m gpuserve.sglang.sglang_diagnose -a unit=sglang@main.service
    ansible localhost -m gpuserve.sglang.sglang_diagnose -a log=/tmp/sglang.log

The earliest cause in the log counts, since what comes later often follows from it. What the engine advises itself is
not believed: it advises to lower `mem_fraction_static` after every failed graph capture, also when the drafter does not
fit. A failure that is not listed here is told by its first exception and the last lines without noise.

Words in angle brackets come from the log. Versions are those of SGLang; none named means all.
"""
_ABOUT = {
    "flags": "Arguments",
    "drafter": "The drafter",
    "model": "The model's files",
    "memory": "Memory",
    "gpu": "GPU and driver",
    "nccl": "Several GPUs",
    "install": "The engine's venv",
    "service": "The service",
}
_KINDS = {
    CAUSE: "",
    STOP: "It is no failure.",
    GENERAL: "It says what happened, not why, and counts only when no cause is found.",
    HINT: "The server serves all the same.",
}


def _shown(text: str) -> str:
    told = re.sub(r"\{(\w+)\}", r"<\1>", text)
    return told.replace("<", "\\<")


def entry(signature: Signature) -> str:
    """One failure as Markdown."""
    first, dummy, rest = signature.cause.partition(" ")
    # The name of an argument keeps its small letters.
    cause = f"{first if '_' in first else first.capitalize()} {rest}."
    lines = [f"### {signature.id}", "", " ".join(filter(None, [_shown(cause), _KINDS[signature.kind]])), ""]
    lines.append(f"- Fix: {_shown(signature.fix)}")
    if signature.versions != "all":
        lines.append(f"- Versions: {signature.versions}")
    return "\n".join([*lines, f"- Source: {signature.source}", ""])


def document() -> str:
    """The whole of it."""
    parts = [_HEAD]
    for area, signatures in groupby(SIGNATURES, key=lambda signature: signature.id.partition(".")[0]):
        parts += [f"## {_ABOUT[area]}\n", *(entry(signature) for signature in signatures)]
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
