# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.files.pvelab import config
from lab.files.pvelab.config import GuestConfig, PveError

TEXT = """\
#a comment
arch: amd64
hostname: ct200
lxc.cgroup2.devices.allow: c 195:* rwm
memory: 8192
lxc.mount.entry = /dev/nvidia0 dev/nvidia0 none bind,optional,create=file
rootfs: local:subvol-200-disk-0,size=64G
nonsense
unprivileged: 0

[pve:pending]
delete: memory
dev0: /dev/nvidia0

[before-upgrade]
arch: amd64
hostname: old
"""


@pytest.fixture
def parsed() -> GuestConfig:
    return GuestConfig.parse("200", TEXT)


def test_parse(parsed: GuestConfig) -> None:
    assert parsed.current.options["hostname"] == "ct200"
    assert parsed.current.lxc == [
        ("lxc.cgroup2.devices.allow", "c 195:* rwm"),
        ("lxc.mount.entry", "/dev/nvidia0 dev/nvidia0 none bind,optional,create=file"),
    ]
    assert parsed.pending.options == {"delete": "memory", "dev0": "/dev/nvidia0"}
    assert parsed.snapshots["before-upgrade"].options["hostname"] == "old"
    assert parsed.warnings == ["vm 200 - unable to parse config: nonsense"]


def test_format_sorts_options_and_puts_lxc_last(parsed: GuestConfig) -> None:
    assert parsed.format().split("\n\n")[0].splitlines() == [
        "#a comment",
        "arch: amd64",
        "hostname: ct200",
        "memory: 8192",
        "rootfs: local:subvol-200-disk-0,size=64G",
        "unprivileged: 0",
        "lxc.cgroup2.devices.allow: c 195:* rwm",
        "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file",
    ]


def test_format_is_stable(parsed: GuestConfig) -> None:
    again = GuestConfig.parse("200", parsed.format())
    assert again.format() == parsed.format()
    assert again.snapshots == parsed.snapshots


def test_pending_is_in_force_after_a_start(parsed: GuestConfig) -> None:
    parsed.apply_pending()
    assert "memory" not in parsed.current.options
    assert parsed.current.options["dev0"] == "/dev/nvidia0"
    assert "[pve:pending]" not in parsed.format()


def test_change_of_a_stopped_container_is_immediate() -> None:
    conf = GuestConfig.parse("200", "arch: amd64\ncores: 2\n")
    assert conf.change({"dev0": "/dev/null"}, ["cores"], running=False) == []
    assert conf.current.options == {"arch": "amd64", "dev0": "/dev/null"}
    assert conf.pending.options == {}


def test_device_waits_while_the_container_runs() -> None:
    conf = GuestConfig.parse("200", "arch: amd64\nonboot: 0\n")
    conf.change({"dev0": "/dev/null", "onboot": "1"}, [], running=True)
    assert conf.current.options == {"arch": "amd64", "onboot": "1"}
    assert conf.pending.options == {"dev0": "/dev/null"}
    conf.change({}, ["dev0"], running=True)
    assert conf.pending.options == {}


def test_delete_waits_while_the_container_runs() -> None:
    conf = GuestConfig.parse("200", "arch: amd64\ndev0: /dev/null\ndev1: /dev/zero\n")
    conf.change({}, ["dev0", "dev1"], running=True)
    assert conf.pending.options == {"delete": "dev0,dev1"}
    conf.change({"dev1": "/dev/zero"}, [], running=True)
    assert conf.pending.options == {"delete": "dev0"}
    conf.apply_pending()
    assert conf.current.options == {"arch": "amd64", "dev1": "/dev/zero"}


@pytest.mark.parametrize(
    ("values", "delete", "message"),
    [
        ({"dev0": "/dev/none-such"}, [], "Device /dev/none-such does not exist"),
        ({"dev0": "/dev/shm"}, [], "/dev/shm is not a device"),
        ({"dev0": "/etc/passwd"}, [], "/etc/passwd is not a valid device path"),
        ({"dev0": "/dev/null,mode=666"}, [], "dev0.mode: value does not match"),
        ({"dev0": "/dev/null,colour=red"}, [], "dev0.colour: property is not defined"),
        ({"unprivileged": "1"}, [], "unable to modify read-only option: 'unprivileged'"),
        ({}, ["rootfs"], "unable to delete required option 'rootfs'"),
        ({}, ["unprivileged"], "unable to delete read-only option: 'unprivileged'"),
    ],
)
def test_refused_change(values: dict[str, str], delete: list[str], message: str) -> None:
    conf = GuestConfig.parse("200", "arch: amd64\n")
    with pytest.raises(PveError, match=message):
        conf.change(values, delete, running=False)


def test_delete_of_nothing_warns() -> None:
    conf = GuestConfig.parse("200", "arch: amd64\n")
    warned = conf.change({}, ["dev0"], running=False)
    assert warned == ["cannot delete 'dev0' - not set in current configuration!"]


def test_container_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "PVE", tmp_path)
    with pytest.raises(PveError, match=r"Configuration file 'nodes/pve/lxc/999\.conf' does not exist") as caught:
        config.path_of("lxc", "999")
    assert caught.value.status == 2
    with pytest.raises(PveError, match="vmid"):
        config.path_of("lxc", "../200")
