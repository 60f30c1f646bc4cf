# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps which test of which scenario failed: molecule's recap of all scenarios comes last, and tells none."""

from __future__ import annotations

from pathlib import Path

FAILED = Path(__file__).parents[1] / ".build" / "failed-tests.txt"


def pytest_terminal_summary(terminalreporter):
    with FAILED.open("a", encoding="utf-8") as failed:
        for report in terminalreporter.getreports("failed") + terminalreporter.getreports("error"):
            why = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
            failed.write(f"{report.nodeid}\n    {' '.join(why)[:1500]}\n")
