# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host_part import HostFile, HostPart

from tests.fixtures.systemd import Systemd

UNIT = "nvidia-device-nodes.service"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    made.states("LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\nNeedDaemonReload=no\n")
    return made


@pytest.fixture
def file(tmp_path: Path) -> HostFile:
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return HostFile(str(path), "#!/bin/sh\n", "0755")


def test_all_is_there(systemd: Systemd, file: HostFile) -> None:
    assert HostPart((file,), UNIT).in_place()


def test_a_file_that_is_missing_or_changed(systemd: Systemd, file: HostFile) -> None:
    path = Path(file.path)
    path.chmod(0o700)
    assert not file.in_place()
    path.chmod(0o755)
    path.write_text("#!/bin/sh\nexit 0\n")
    assert not file.in_place()
    assert not HostPart((file,), UNIT).in_place()
    path.unlink()
    assert not file.in_place()
    path.symlink_to("/bin/true")
    assert not file.in_place()


@pytest.mark.parametrize(
    "told",
    [
        "LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n",
        "LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\nNeedDaemonReload=yes\n",
        "LoadState=not-found\nActiveState=inactive\n",
    ],
    ids=["not enabled", "not read by systemd", "not there"],
)
def test_a_unit_that_would_not_run_at_boot(systemd: Systemd, file: HostFile, told: str) -> None:
    systemd.states(told)
    assert not HostPart((file,), UNIT).in_place()
