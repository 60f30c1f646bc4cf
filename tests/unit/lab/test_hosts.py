# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from lab import hosts
from lab.instance import Lab, Mount
from lab.process import LabError

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
    mounts = [Mount("/hub", "/srv/hub", pve_alone=True), Mount("/src", "/srv/models")]
    hosts.prepare(LAB, {"base": "/img/base", "pvebase": "/img/pve"}, mounts)
    guest = (LAB.pve_delta / "etc/pve/lxc/200.conf").read_text()
    assert "onboot: 1\n" in guest
    assert "unprivileged: 0\n" in guest
    assert f"ip={LAB.ct_address}/24" in guest
    assert "mp0: /srv/lab/srv/models,mp=/srv/models,ro=1\n" in guest
    assert "hub" not in guest
    outer = (LAB.pve_delta.parent / "config").read_text()
    assert f"lxc.rootfs.path = overlay:/img/pve:{LAB.pve_delta}\n" in outer
    assert "lxc.mount.entry = /src srv/lab/srv/models none rbind,ro,create=dir 0 0\n" in outer
    assert "lxc.mount.entry = /hub srv/hub none rbind,ro,create=dir 0 0\n" in outer
    assert f"gateway {LAB.gateway}\n" in (LAB.pve_delta / "etc/network/interfaces").read_text()
    assert [line.split()[0] for line in LAB.known_hosts.read_text().splitlines()] == [
        str(LAB.pve_address),
        str(LAB.ct_address),
    ]
    assert stat.S_IMODE((LAB.guest_delta(200) / "root").stat().st_mode) == 0o700
    assert stat.S_IMODE((LAB.pve_delta / "usr/sbin/pct").stat().st_mode) == 0o755
    assert stat.S_IMODE((LAB.pve_delta / "etc/ssh/ssh_host_ed25519_key").stat().st_mode) == 0o600
    assert (LAB.pve_delta / "usr/lib/gpuserve-lab/pvelab/pct.py").is_file()
    assert not list(state.rglob("__pycache__"))
    system = LAB.pve_delta / "etc/systemd/system"
    for unit in ("lab-hub.service", "pve-guests.service"):
        assert (system / "multi-user.target.wants" / unit).resolve() == system / unit
        assert (system / unit).is_file()
    started = re.search(r"^ExecStart=\S+ (\S+) /srv/hub ", (system / "lab-hub.service").read_text(), re.MULTILINE)
    assert started is not None
    assert (LAB.pve_delta / started[1].lstrip("/")).is_file()


def test_prepare_again_leaves_what_the_host_changed(state: Path) -> None:
    images = {"base": "/img/base", "pvebase": "/img/pve"}
    hosts.prepare(LAB, images, [])
    guest = LAB.pve_delta / "etc/pve/lxc/200.conf"
    guest.write_text(guest.read_text() + "lxc.cgroup2.devices.allow: c 195:* rwm\n")
    (LAB.guest_delta(200) / "etc/hosts").write_text("127.0.0.1 mine\n")
    (LAB.pve_delta / "usr/sbin/pct").write_text("old")
    hosts.prepare(LAB, images, [])
    assert guest.read_text().endswith("lxc.cgroup2.devices.allow: c 195:* rwm\n")
    assert (LAB.guest_delta(200) / "etc/hosts").read_text() == "127.0.0.1 mine\n"
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


class Host:
    """What a running Proxmox host is told, and the configurations that it has."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def run(self, command: list[str], *, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        if command[0] == "cp":
            shutil.copytree(command[-2], command[-1])
            return subprocess.CompletedProcess(command, 0)
        words = command[command.index("--") + 1 :]
        if words[0] == "test":
            return subprocess.CompletedProcess(command, 0 if words[-1] in self.told else 1)
        self.told[words[-1]] = stdin
        return subprocess.CompletedProcess(command, 0)


@pytest.fixture
def host(state: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    hosts.prepare(LAB, {"base": "/img/base", "pvebase": "/img/pve"}, [Mount("/src", "/srv/models")])
    made = Host()
    monkeypatch.setattr(hosts, "run", made.run)
    return made


def test_clone_differs_from_ct_200_in_what_it_must(host: Host) -> None:
    hosts.clone(LAB, 201, None, unprivileged=False)
    first, second = hosts.guest_config(LAB, 200, unprivileged=False), host.told["/etc/pve/lxc/201.conf"]
    assert second == first.replace("200", "201").replace(LAB.hwaddr(LAB.network[200]), LAB.hwaddr(LAB.network[201]))
    delta = LAB.guest_delta(201)
    assert (delta / "etc/hostname").read_text() == "ct201\n"
    assert f"{LAB.network[201]} ct201\n" in (delta / "etc/hosts").read_text()
    keys = [(LAB.guest_delta(vmid) / "etc/ssh/ssh_host_ed25519_key").read_text() for vmid in (200, 201)]
    assert keys[0] != keys[1]


def test_clone_of_another_release_is_a_copy_of_its_image(host: Host, tmp_path: Path) -> None:
    image = tmp_path / "trixie"
    (image / "etc").mkdir(parents=True)
    (image / "etc/debian_version").write_text("13.1\n")
    hosts.clone(LAB, 202, str(image), unprivileged=True)
    assert "unprivileged: 1\n" in host.told["/etc/pve/lxc/202.conf"]
    assert (LAB.guest_rootfs(202) / "etc/debian_version").read_text() == "13.1\n"
    assert (LAB.guest_rootfs(202) / "etc/hostname").read_text() == "ct202\n"
    assert not (image / "etc/hostname").exists()


@pytest.mark.parametrize(("vmid", "words"), [(200, "from 201 to 254"), (255, "from 201 to 254"), (203, "already")])
def test_clone_that_cannot_be(host: Host, vmid: int, words: str) -> None:
    host.told["/etc/pve/lxc/203.conf"] = ""
    with pytest.raises(LabError, match=words):
        hosts.clone(LAB, vmid, None, unprivileged=False)
    assert list(host.told) == ["/etc/pve/lxc/203.conf"]
