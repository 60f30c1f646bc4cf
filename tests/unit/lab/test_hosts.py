# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import stat
from pathlib import Path

import pytest

from lab import hosts
from lab.instance import Lab, Mount

LAB = Lab("demo")
PROC_DEVICES = """\
Character devices:
  1 mem
 10 misc
195 nvidia
203 cpu/cpuid
254 ndctl

Block devices:
  7 loop
259 blkext
"""


def test_devices_are_in_the_kernels_order() -> None:
    text = hosts.proc_devices(PROC_DEVICES)
    characters, blocks = text.split("\nBlock devices:\n")
    assert characters.splitlines() == [
        "Character devices:",
        "  1 mem",
        " 10 misc",
        "195 nvidia",
        "195 nvidia-modeset",
        "195 nvidiactl",
        "203 cpu/cpuid",
        "254 ndctl",
        "508 nvidia-caps",
        "511 nvidia-uvm",
    ]
    assert blocks == "  7 loop\n259 blkext\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("lab.instance.STATE_ROOT", tmp_path)

    def make_key(path: Path, comment: str) -> None:
        path.write_text(f"private {comment}\n")
        path.with_suffix(".pub").write_text(f"ssh-ed25519 AAAA{path.name} {comment}\n")

    monkeypatch.setattr(hosts, "_make_key", make_key)
    return tmp_path


def test_prepare(state: Path) -> None:
    hosts.prepare(LAB, {"base": "/img/base", "pvebase": "/img/pve"}, [Mount("/src", "/srv/models")])
    guest = (LAB.pve_delta / "etc/pve/lxc/200.conf").read_text()
    assert "onboot: 1\n" in guest
    assert "unprivileged: 0\n" in guest
    assert f"ip={LAB.ct_address}/24" in guest
    assert "mp0: /srv/lab/srv/models,mp=/srv/models,ro=1\n" in guest
    outer = (LAB.pve_delta.parent / "config").read_text()
    assert f"lxc.rootfs.path = overlay:/img/pve:{LAB.pve_delta}\n" in outer
    assert "lxc.mount.entry = /src srv/lab/srv/models none rbind,ro,create=dir 0 0\n" in outer
    assert f"gateway {LAB.gateway}\n" in (LAB.pve_delta / "etc/network/interfaces").read_text()
    assert [line.split()[0] for line in LAB.known_hosts.read_text().splitlines()] == [
        str(LAB.pve_address),
        str(LAB.ct_address),
    ]
    assert stat.S_IMODE((LAB.ct_delta / "root").stat().st_mode) == 0o700
    assert stat.S_IMODE((LAB.pve_delta / "usr/sbin/pct").stat().st_mode) == 0o755
    assert stat.S_IMODE((LAB.pve_delta / "etc/ssh/ssh_host_ed25519_key").stat().st_mode) == 0o600
    assert (LAB.pve_delta / "usr/lib/gpuserve-lab/pvelab/pct.py").is_file()
    assert not list(state.rglob("__pycache__"))


def test_prepare_again_leaves_what_the_host_changed(state: Path) -> None:
    images = {"base": "/img/base", "pvebase": "/img/pve"}
    hosts.prepare(LAB, images, [])
    guest = LAB.pve_delta / "etc/pve/lxc/200.conf"
    guest.write_text(guest.read_text() + "lxc.cgroup2.devices.allow: c 195:* rwm\n")
    (LAB.ct_delta / "etc/hosts").write_text("127.0.0.1 mine\n")
    (LAB.pve_delta / "usr/sbin/pct").write_text("old")
    hosts.prepare(LAB, images, [])
    assert guest.read_text().endswith("lxc.cgroup2.devices.allow: c 195:* rwm\n")
    assert (LAB.ct_delta / "etc/hosts").read_text() == "127.0.0.1 mine\n"
    assert "pvelab.pct" in (LAB.pve_delta / "usr/sbin/pct").read_text()


def test_checkouts_umask_does_not_show(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "etc").mkdir(parents=True, mode=0o700)
    (source / "etc/x").write_text("x")
    (source / "etc/x").chmod(0o600)
    hosts.install_tree(source, tmp_path / "target")
    assert stat.S_IMODE((tmp_path / "target/etc/x").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("own", "upstream", "expected"),
    [
        ("nameserver 192.0.2.53\n", "nameserver 192.0.2.1\n", "nameserver 192.0.2.53\n"),
        ("nameserver 127.0.0.53\n", "nameserver 192.0.2.1\n", "nameserver 192.0.2.1\n"),
        ("nameserver 127.0.0.1\n", None, "nameserver 127.0.0.1\n"),
    ],
)
def test_resolver(tmp_path: Path, own: str, upstream: str | None, expected: str) -> None:
    (tmp_path / "own").write_text(own)
    if upstream is not None:
        (tmp_path / "upstream").write_text(upstream)
    assert hosts.resolver(tmp_path / "own", tmp_path / "upstream") == expected
