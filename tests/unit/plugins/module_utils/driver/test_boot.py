# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import boot


def test_modprobe_s_file() -> None:
    text = boot.modprobe({"nvidia_uvm": {"uvm_disable_hmm": "1"}, "nvidia": {"NVreg_B": "2", "NVreg_A": "1"}, "x": {}})
    assert text.splitlines()[1:] == [
        "blacklist nouveau",
        "options nouveau modeset=0",
        "options nvidia NVreg_A=1 NVreg_B=2",
        "options nvidia_uvm uvm_disable_hmm=1",
    ]


@pytest.mark.parametrize(("found", "words"), [("/usr/sbin/update-initramfs", 4), (None, 0)])
def test_ramdisks_where_there_are_any(monkeypatch: pytest.MonkeyPatch, found: str, words: int) -> None:
    monkeypatch.setattr(boot.shutil, "which", lambda _: found)
    assert len(boot.ramdisks_command()) == words


@pytest.mark.parametrize(
    ("file", "active", "now", "told"),
    [
        ("enabled", "active", True, True),
        ("enabled", "inactive", True, False),
        ("enabled", "inactive", False, True),
        ("disabled", "active", False, False),
        ("", "inactive", False, False),
    ],
)
def test_unit(monkeypatch: pytest.MonkeyPatch, file: str, active: str, now: bool, told: bool) -> None:
    done = subprocess.CompletedProcess([], 0, f"UnitFileState={file}\nActiveState={active}\n", "")
    monkeypatch.setattr(boot.subprocess, "run", lambda *_, **__: done)
    assert boot.runs_at_boot_and_now("x.service", now) is told


def test_no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(boot.subprocess, "run", gone)
    assert boot.runs_at_boot_and_now("x.service", False) is False
