# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis import sources

from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    made.states(made.active(run="3c"))
    made.journal(b"".join(b'{"INVOCATION_ID": "%s"}\n' % run for run in (b"1a", b"2b", b"3c")))
    return made


@pytest.mark.parametrize(("back", "run"), [(0, "3c"), (1, "2b"), (2, "1a")])
def test_a_run_and_those_before_it(systemd: Systemd, back: int, run: str) -> None:
    sources.of_unit(NAME, back)
    synced, asked = systemd.asked()[-2:]
    assert synced == "journalctl --sync"
    assert asked.startswith("journalctl --lines=20000 --output=cat ")
    assert asked.endswith(f" _SYSTEMD_INVOCATION_ID={run} + INVOCATION_ID={run}")


@pytest.mark.parametrize("back", [3, -1])
def test_a_run_that_the_journal_does_not_know(systemd: Systemd, back: int) -> None:
    with pytest.raises(unit.UnitError, match=r"the journal knows 2 runs of .* give a run from 0 to 2"):
        sources.of_unit(NAME, back)
