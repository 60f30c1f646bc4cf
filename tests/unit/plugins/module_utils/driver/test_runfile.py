# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import runfile
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.runfile import Runfile, RunfileError

HEAD = b'#!/bin/sh\nlabel="NVIDIA Accelerated Graphics Driver for Linux-x86_64 580.95.05"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "driver.run"
    path.write_bytes(HEAD + b"x" * 3_000_000)
    return path


def checksum(file: Path) -> str:
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def told(asked: Runfile, version: str = "580.95.05") -> dict[str, str]:
    return {check.id: check.status for check in runfile.judge(asked, version)}


def test_the_right_file_passes(file: Path) -> None:
    assert told(Runfile(file, checksum(file), ())) == {"runfile.checksum": "pass", "runfile.version": "pass"}


def test_a_file_of_another_version_fails(file: Path) -> None:
    assert told(Runfile(file, checksum(file), ()), "590.44.01")["runfile.version"] == "fail"


@pytest.mark.parametrize("given", ["", "md5:abc", f"sha256:{'0' * 64}"])
def test_a_wrong_checksum_fails_before_anything_else(file: Path, given: str) -> None:
    assert told(Runfile(file, given, ())) == {"runfile.checksum": "fail"}


def test_a_file_that_is_not_there_fails(tmp_path: Path) -> None:
    assert told(Runfile(tmp_path / "gone.run", f"sha256:{'0' * 64}", ())) == {"runfile.checksum": "fail"}


def test_installer_gets_its_arguments_and_its_failure_is_told(tmp_path: Path) -> None:
    file = tmp_path / "driver.run"
    file.write_text(f'echo "$@" > {tmp_path}/said; [ "$1" != --fail ] || {{ echo because; exit 3; }}\n')
    runfile.install(Runfile(file, "", ("--silent", "--no-kernel-modules")))
    assert (tmp_path / "said").read_text() == "--silent --no-kernel-modules\n"
    with pytest.raises(RunfileError, match="ended with 3: because"):
        runfile.install(Runfile(file, "", ("--fail",)))


def test_uninstaller_counts_unless_a_package_brought_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runfile.uninstaller(tmp_path) == ""
    path = tmp_path / runfile.UNINSTALLER.lstrip("/")
    path.parent.mkdir(parents=True)
    path.touch()
    for code, expected in ((1, runfile.UNINSTALLER), (0, "")):
        done = subprocess.CompletedProcess([], code)
        monkeypatch.setattr(runfile.dpkg.subprocess, "run", lambda *_, done=done, **__: done)
        assert runfile.uninstaller(tmp_path) == expected
