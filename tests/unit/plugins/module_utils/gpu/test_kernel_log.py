# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import health, kernel_log, rules, xid
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.kernel_log import Line, Log

OFF_BUS = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
PAGE_FAULT = "NVRM: Xid (PCI:0000:42:00): 31, pid=4242, name=python3, Ch 00000008, intr 00000000. MMU Fault"
REMAP = "NVRM: Xid (PCI:0000:43:00): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate."
OLD_STYLE = "NVRM: Xid (0000:01:00): 13, 0005 00000000 0000502d 00000104"
FATAL = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 46 LTSSM Fault Up"
NOT_FATAL = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)"


def log(*texts: str, at: float = 1795962197.0) -> Log:
    return Log(tuple(Line(at, text) for text in texts))


@pytest.mark.parametrize(
    ("texts", "status"),
    [
        ((), "pass"),
        (("NVRM: loading NVIDIA UNIX Open Kernel Module",), "pass"),
        ((REMAP,), "pass"),
        ((PAGE_FAULT,), "warn"),
        ((OLD_STYLE,), "warn"),
        ((PAGE_FAULT, OFF_BUS), "fail"),
        (("NVRM: Xid (PCI:0000:41:00): 9999, something new",), "warn"),
    ],
)
def test_the_worst_xid_decides(texts: tuple[str, ...], status: str) -> None:
    assert kernel_log.judge_xids(log(*texts), 0).status == status


def test_an_xid_is_told_with_its_card_its_meaning_and_nvidias_action() -> None:
    check = kernel_log.judge_xids(log(OFF_BUS, OFF_BUS, PAGE_FAULT), 0)
    assert (
        "Xid 79 on 0000:41:00 2 times, last at 2026-11-29 14:23:17 UTC: the GPU has fallen off the bus" in check.actual
    )
    assert check.fix.startswith("Xid 79 on 0000:41:00: reboot the host")
    assert check.source == xid.CATALOG


def test_only_the_window_counts() -> None:
    old = log(OFF_BUS, at=time.time() - 7200)
    assert kernel_log.judge_xids(old, 3600).status == "pass"
    assert kernel_log.judge_xids(old, 0).status == "fail"


@pytest.mark.parametrize(
    ("texts", "switches", "status"),
    [((), 6, "pass"), ((NOT_FATAL,), 6, "warn"), ((NOT_FATAL, FATAL), 6, "fail"), ((), 0, "skipped")],
)
def test_sxids_carry_their_severity(texts: tuple[str, ...], switches: int, status: str) -> None:
    assert kernel_log.judge_sxids(log(*texts), 0, switches).status == status


def test_a_log_that_lost_its_beginning_proves_nothing() -> None:
    assert kernel_log.judge_xids(Log((), whole=False), 0).status == "skipped"
    assert kernel_log.judge_xids(Log((Line(1.0, OFF_BUS),), whole=False), 0).status == "fail"


def test_a_log_that_cannot_be_read_is_not_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = kernel_log.read(5.0, tmp_path)
    check = kernel_log.judge_xids(found, 0)
    assert check.status == "skipped"
    assert "neither the journal nor /dev/kmsg can be read" in check.actual


def journal(folder: Path, body: str) -> None:
    program = folder / "journalctl"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def test_the_journal_is_read_since_the_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    journal(
        tmp_path,
        f"""case "$*" in
        *--lines=1*) echo booted;;
        *--dmesg*--boot*--grep=Xid*) echo "1795962197.70 host kernel: {OFF_BUS}";;
        *) exit 64;;
        esac""",
    )
    found = kernel_log.read(5.0, tmp_path)
    assert (found.whole, found.lines[0].seconds) == (True, 1795962197.70)
    assert kernel_log.judge_xids(found, 0).status == "fail"


def test_a_journal_without_a_match_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    journal(tmp_path, 'case "$*" in *--lines=1*) echo booted;; *) exit 1;; esac')
    assert kernel_log.judge_xids(kernel_log.read(5.0, tmp_path), 0).status == "pass"


@pytest.mark.parametrize(
    "body", ["exit 1", "echo booted; echo 'Compiled without pattern matching support' >&2; exit 1", "sleep 60"]
)
def test_without_a_usable_journal_the_kernels_buffer_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    journal(tmp_path, body)
    (tmp_path / "dev").mkdir()
    # A plain file ends where the device would block; one read takes one record.
    (tmp_path / "dev/kmsg").write_text(f"4,0,5140900,-;{OFF_BUS}\n")
    found = kernel_log.read(1.0, tmp_path)
    assert found.whole
    assert kernel_log.judge_xids(found, 0).status == "fail"


def test_a_buffer_that_wrapped_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("6,812,5140900,-;something else\n")
    assert not kernel_log.read(1.0, tmp_path).whole


def test_a_container_is_sent_to_the_host(tmp_path: Path) -> None:
    (tmp_path / "run/systemd").mkdir(parents=True)
    (tmp_path / "run/systemd/container").write_text("lxc\n")
    asked = health.Request(root=tmp_path, devices=("/dev/null",), driver="absent")
    found = {check.id: check for check in health.examine(asked).checks}
    host_only = ["host.xid", "host.acs", "host.iommu", "host.uvm_hmm"]
    assert {(found[name].status, found[name].actual) for name in host_only} == {("skipped", rules.RUN_ON_HOST)}


def test_every_code_of_the_table_that_fails_has_an_action() -> None:
    assert all(action.fix for _meaning, action in xid.CODES.values() if action.status != "pass")
