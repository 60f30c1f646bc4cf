# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task runs it: options in, JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host import State
from ansible_collections.gpuserve.sglang.plugins.modules import lxc_gpu_config

from tests.fixtures.modules import in_process

BEFORE = "arch: amd64\nhostname: ct200\n"
DEVICES = [
    {"path": "/dev/nvidia0", "major": 195, "minor": 0},
    {"path": "/dev/nvidia-uvm", "major": 511, "minor": 0},
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lxc" / "200.conf"
    path.parent.mkdir()
    path.write_text(BEFORE)
    (tmp_path / "devices").write_text("Character devices:\n195 nvidia\n511 nvidia-uvm\n")
    return path


def run(capsys: pytest.CaptureFixture[str], config: Path, **options: Any) -> dict[str, Any]:
    defaults = {
        "path": str(config),
        "backend": "proxmox",
        "style": "dev",
        "devices": DEVICES,
        "devices_file": str(config.parents[1] / "devices"),
        "backup_dir": str(config.parents[1] / "kept"),
    }
    given = {name: value for name, value in {**defaults, **options}.items() if value is not None}
    return in_process(capsys, lxc_gpu_config, **given)


def test_present_writes_once(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    first = run(capsys, config)
    assert first["changed"] is True
    assert first["added"] == ["dev0: /dev/nvidia0,mode=0666", "dev1: /dev/nvidia-uvm,mode=0666"]
    assert config.read_text() == first["diff"]["after"] != BEFORE
    assert Path(first["backup_file"]).read_text() == first["diff"]["before"] == BEFORE
    second = run(capsys, config)
    assert (second["changed"], second["added"], "backup_file" in second) == (False, [], False)


def test_check_mode_says_and_does_nothing(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    result = run(capsys, config, _ansible_check_mode=True)
    assert (result["changed"], config.read_text()) == (True, BEFORE)
    assert not (config.parents[1] / "kept").exists()


def test_absent_restores(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    run(capsys, config)
    result = run(capsys, config, state="absent", devices=[], style="auto")
    assert (result["changed"], config.read_text()) == (True, BEFORE)


def test_a_backup_is_optional(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert "backup_file" not in run(capsys, config, backup=False)
    assert not (config.parents[1] / "kept").exists()


def test_cgroup_v1(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    result = run(capsys, config, style="cgroup", cgroup="v1")
    assert result["added"][0] == "lxc.cgroup.devices.allow: c 195:0 rw"


@pytest.mark.parametrize("running", [True, False])
def test_restart_is_required_where_it_runs(
    capsys: pytest.CaptureFixture[str], config: Path, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    monkeypatch.setattr(lxc_gpu_config, "config_path", lambda vmid, backend: str(config))
    monkeypatch.setattr(lxc_gpu_config, "guest_state", lambda vmid: State(running, 7 if running else 0))
    options = {"path": None, "vmid": "200", "backend": "lxc", "style": "auto"}
    assert run(capsys, config, **options)["restart_required"] is running
    assert run(capsys, config, **options)["restart_required"] is False


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    result = run(capsys, config, path=str(config.parent / "999.conf"))
    assert result["failed"] is True
    assert "999.conf cannot be read: No such file or directory" in result["msg"]


def test_dev_entries_on_plain_lxc(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert "plain LXC knows no dev<n> entries" in run(capsys, config, backend="lxc")["msg"]


def test_a_path_or_an_id(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert "mutually exclusive" in run(capsys, config, vmid="200")["msg"]
    assert "one of the following is required: vmid, path" in run(capsys, config, path=None)["msg"]


def test_bytes_that_are_not_utf8(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    config.write_bytes(b"#caf\xe9\n" + BEFORE.encode())
    result = run(capsys, config)
    assert result["changed"] is True
    assert config.read_bytes().startswith(b"#caf\xe9\n")
