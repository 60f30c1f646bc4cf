# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.files.pvelab import config, guests, lxc, pct, pveversion, qm

CONF = "hostname: ct200\nonboot: 1\nrootfs: local:subvol-200-disk-0\n"


class FakeLxc:
    """Containers that start and stop in a set."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.started: list[str] = []

    def start(self, vmid: str, options: dict[str, str], raw: object) -> None:
        self.running.add(vmid)
        self.started.append(vmid)

    def stop(self, vmid: str, *arguments: str) -> None:
        self.running.discard(vmid)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLxc:
    for kind in ("lxc", "qemu-server"):
        (tmp_path / kind).mkdir()
    (tmp_path / "lxc/200.conf").write_text(CONF)
    made = FakeLxc()
    monkeypatch.setattr(config, "PVE", tmp_path)
    monkeypatch.setattr(lxc, "running", lambda vmid: vmid in made.running)
    monkeypatch.setattr(lxc, "start", made.start)
    monkeypatch.setattr(lxc, "stop", made.stop)
    return made


def test_start_and_stop(fake: FakeLxc, capsys: pytest.CaptureFixture[str]) -> None:
    assert pct.main(["status", "200"]) == 0
    assert pct.main(["start", "200"]) == 0
    assert pct.main(["status", "200"]) == 0
    assert capsys.readouterr().out == "status: stopped\nstatus: running\n"
    assert pct.main(["start", "200"]) == 255
    assert capsys.readouterr().err == "CT 200 already running\n"
    assert pct.main(["stop", "200"]) == 0
    assert pct.main(["shutdown", "200"]) == 255
    assert capsys.readouterr().err == "CT 200 not running\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["status", "999"], 2, "Configuration file 'nodes/pve/lxc/999.conf' does not exist"),
        (["reboot", "200"], 255, "VM 200 not running"),
        (["exec", "200", "--", "true"], 255, "container '200' not running!"),
        (["push", "200", "/etc/hostname", "/x"], 255, "can only push files to a running CT"),
        (["set", "200"], 255, "no options specified"),
        (["unlock", "200"], 255, "no lock found trying to remove lock"),
        (["frobnicate", "200"], 255, "ERROR: unknown command 'pct frobnicate'"),
        ([], 255, "ERROR: no command specified"),
    ],
)
def test_refusals(
    fake: FakeLxc, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    assert pct.main(arguments) == status
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.parametrize("command", [["start", "200"], ["set", "200", "--cores", "4"]])
def test_locked(fake: FakeLxc, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    (tmp_path / "lxc/200.conf").write_text(CONF + "lock: backup\n")
    assert pct.main(command) == 255
    assert capsys.readouterr().err == "CT is locked (backup)\n"
    assert fake.started == []
    assert pct.main(["unlock", "200"]) == 0
    assert pct.main(command) == 0


def test_locked_container_is_not_stopped(fake: FakeLxc, tmp_path: Path) -> None:
    fake.running.add("200")
    (tmp_path / "lxc/200.conf").write_text(CONF + "lock: backup\n")
    assert pct.main(["stop", "200"]) == 255
    assert pct.main(["shutdown", "200"]) == 255
    assert fake.running == {"200"}


def test_list(fake: FakeLxc, capsys: pytest.CaptureFixture[str]) -> None:
    pct.main(["list"])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["VMID", "Status", "Lock", "Name"],
        ["200", "stopped", "ct200"],
    ]


def test_set_waits_for_the_start(fake: FakeLxc, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake.running.add("200")
    assert pct.main(["set", "200", "--dev0", "/dev/null,mode=0666", "-dev1=/dev/zero"]) == 0
    text = (tmp_path / "lxc/200.conf").read_text()
    assert text.endswith("\n[pve:pending]\ndev0: /dev/null,mode=0666\ndev1: /dev/zero\n")
    pct.main(["config", "200", "--current"])
    assert "dev0" not in capsys.readouterr().out
    pct.main(["config", "200"])
    assert "dev0: /dev/null,mode=0666\n" in capsys.readouterr().out
    pct.main(["pending", "200"])
    assert "new dev0: /dev/null,mode=0666\n" in capsys.readouterr().out
    assert pct.main(["reboot", "200"]) == 0
    assert "[pve:pending]" not in (tmp_path / "lxc/200.conf").read_text()


def test_startall_in_order(fake: FakeLxc, tmp_path: Path) -> None:
    (tmp_path / "lxc/200.conf").write_text(CONF)
    (tmp_path / "lxc/105.conf").write_text("hostname: a\n")
    (tmp_path / "lxc/300.conf").write_text("hostname: b\nonboot: 1\nstartup: order=1,up=5\n")
    (tmp_path / "lxc/100.conf").write_text("hostname: c\nonboot: 1\nlock: backup\n")
    assert guests.main(["startall"]) == 0
    assert fake.started == ["300", "200"]
    assert guests.main(["stopall"]) == 0
    assert fake.running == set()


def test_qm(fake: FakeLxc, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert qm.main(["list"]) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "qemu-server/100.conf").write_text("name: vm\nmemory: 4096\nhostpci0: 0000:41:00.0\n")
    assert qm.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["100", "vm", "stopped", "4096", "0.00", "0"]
    assert qm.main(["status", "100"]) == 0
    assert qm.main(["status", "101"]) == 2
    assert "qemu-server/101.conf' does not exist" in capsys.readouterr().err


def test_pveversion(capsys: pytest.CaptureFixture[str]) -> None:
    assert pveversion.main([]) == 0
    assert capsys.readouterr().out.startswith("pve-manager/8.4.1/2a5fa54a8503f96d (running kernel: ")
