# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.files.pvelab.config import Device, PveError
from lab.files.pvelab.lxc import Node, render

UVM = Device("c", 511, 0)
OPTIONS = {
    "hostname": "ct200",
    "net0": "name=eth0,bridge=vmbr0,gw=10.64.0.1,hwaddr=02:00:00:00:02:00,ip=10.64.0.200/24,type=veth",
    "rootfs": "local:subvol-200-disk-0,size=64G",
}


def look(path: str) -> Device:
    if path != "/dev/nvidia-uvm":
        raise PveError(f"Device {path} does not exist")
    return UVM


def test_privileged_container() -> None:
    lines, nodes = render("200", OPTIONS, [("lxc.cgroup2.devices.allow", "c 195:* rwm")], look)
    assert "lxc.uts.name = ct200" in lines
    assert "lxc.rootfs.path = overlay:/opt/ct-image:/var/lib/lxc/200/delta" in lines
    assert "lxc.net.0.veth.pair = veth200i0" in lines
    assert "lxc.net.0.ipv4.gateway = 10.64.0.1" in lines
    assert lines[-1] == "lxc.cgroup2.devices.allow = c 195:* rwm"
    assert not any("idmap" in line for line in lines)
    assert nodes == []


def test_container_with_a_root_file_system_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.files.pvelab.lxc.LXC", tmp_path)
    (tmp_path / "200/rootfs").mkdir(parents=True)
    lines, _ = render("200", OPTIONS, [], look)
    assert f"lxc.rootfs.path = dir:{tmp_path}/200/rootfs" in lines
    assert not any("idmap" in line for line in lines)


def test_device_is_allowed_without_mknod_and_bound() -> None:
    lines, nodes = render("200", {**OPTIONS, "dev0": "/dev/nvidia-uvm"}, [], look)
    assert "lxc.cgroup2.devices.allow = c 511:0 rw" in lines
    bound = "/var/lib/lxc/200/passthrough/dev/nvidia-uvm dev/nvidia-uvm none bind,create=file 0 0"
    assert f"lxc.mount.entry = {bound}" in lines
    assert nodes == [Node("dev/nvidia-uvm", UVM, 0o660, 0, 0)]


def test_device_of_an_unprivileged_container_has_a_mapped_owner() -> None:
    options = {**OPTIONS, "unprivileged": "1", "dev0": "path=/dev/nvidia-uvm,mode=0666,uid=5,gid=6,deny-write=1"}
    lines, nodes = render("200", options, [], look)
    assert "lxc.idmap = u 0 100000 65536" in lines
    assert "lxc.include = /usr/share/lxc/config/userns.conf" in lines
    assert "lxc.cgroup2.devices.allow = a" in lines
    assert "lxc.cgroup2.devices.allow = c 511:0 r" in lines
    assert nodes == [Node("dev/nvidia-uvm", UVM, 0o666, 100005, 100006)]


def test_missing_device_stops_the_start() -> None:
    with pytest.raises(PveError, match="Device /dev/nvidia9 does not exist"):
        render("200", {**OPTIONS, "dev0": "/dev/nvidia9"}, [], look)


@pytest.mark.parametrize(
    ("rootfs", "message"),
    [
        ("", "missing 'rootfs' configuration"),
        ("local-lvm:vm-200-disk-0", "unable to parse volume ID 'local-lvm:vm-200-disk-0'"),
        ("local:subvol-201-disk-0", "unable to parse volume ID"),
    ],
)
def test_bad_rootfs(rootfs: str, message: str) -> None:
    with pytest.raises(PveError, match=message):
        render("200", {**OPTIONS, "rootfs": rootfs}, [], look)


def test_bind_mount() -> None:
    lines, _ = render("200", {**OPTIONS, "mp0": "/srv/lab/m,mp=/m,ro=1", "mp1": "/srv/w,mp=/w"}, [], look)
    assert "lxc.mount.entry = /srv/lab/m m none rbind,ro,create=dir 0 0" in lines
    assert "lxc.mount.entry = /srv/w w none rbind,rw,create=dir 0 0" in lines
