# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import machine
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.expected import Expected

ADDRESSES = ["0000:41:00.0", "0000:42:00.0"]


def config(control: int | None, size: int = 4096) -> bytes:
    """Configuration space of a bridge: one other extended capability, then ACS with this control register."""
    space = bytearray(size)
    if size > 0x100:
        after = 0x140 if control is not None else 0
        struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | after << 20)
        if control is not None:
            struct.pack_into("<IHH", space, 0x140, machine.ACS_CAPABILITY | 1 << 16, 0x1F, control)
    return bytes(space)


def put_behind(root: Path, address: str, bridges: dict[str, bytes]) -> Path:
    """A GPU behind bridges, as sysfs nests them."""
    device = root / "sys/devices/pci0000:40"
    for name, space in bridges.items():
        device = device / name
        device.mkdir(parents=True, exist_ok=True)
        (device / "config").write_bytes(space)
    device = device / address
    device.mkdir(parents=True)
    (device / "config").write_bytes(config(None))
    link = root / "sys/bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device)
    return device


def host_only(root: Path) -> dict[str, Check]:
    return {check.id: check for check in machine.host_only(ADDRESSES, "", root)}


def everywhere(root: Path, **thresholds: float) -> dict[str, Check]:
    checks = machine.everywhere(ADDRESSES, 8, Expected(thresholds), root)
    return {check.id: check for check in checks}


@pytest.mark.parametrize(
    ("space", "status", "text"),
    [
        (config(0x00), "pass", "not redirected"),
        (config(0x01), "pass", "not redirected"),
        (config(None), "pass", "not redirected"),
        (config(0x1D), "warn", "redirected by 0000:40:01.1"),
        (config(0x08), "warn", "redirected by 0000:40:01.1"),
        (config(0x1D, 64), "skipped", "cannot be read whole"),
    ],
)
def test_acs_of_the_bridges_above_a_gpu(tmp_path: Path, space: bytes, status: str, text: str) -> None:
    put_behind(tmp_path, ADDRESSES[0], {"0000:40:00.1": config(0), "0000:40:01.1": space})
    put_behind(tmp_path, ADDRESSES[1], {"0000:40:02.1": config(0)})
    check = host_only(tmp_path)["host.acs"]
    assert check.status == status
    assert text in check.actual


@pytest.mark.parametrize(
    ("kind", "status"), [(None, "pass"), ("identity", "pass"), ("DMA-FQ", "warn"), ("DMA", "warn"), ("", "skipped")]
)
def test_iommu_of_each_gpu(tmp_path: Path, kind: str | None, status: str) -> None:
    for address in ADDRESSES:
        device = put_behind(tmp_path, address, {"0000:40:01.1": config(0)})
        if kind is not None:
            (device / "iommu_group").mkdir()
            (device / "iommu_group/type").write_text(f"{kind}\n")
    assert host_only(tmp_path)["host.iommu"].status == status


@pytest.mark.parametrize(("told", "status"), [("Y\n", "pass"), ("N\n", "warn"), (None, "skipped")])
def test_uvm_disable_hmm(tmp_path: Path, told: str | None, status: str) -> None:
    if told:
        file = tmp_path / "sys/module/nvidia_uvm/parameters/uvm_disable_hmm"
        file.parent.mkdir(parents=True)
        file.write_text(told)
    assert host_only(tmp_path)["host.uvm_hmm"].status == status


def test_a_single_gpu_needs_no_paths_to_peers(tmp_path: Path) -> None:
    checks = machine.host_only(ADDRESSES[:1], "", tmp_path)
    assert {check.status for check in checks} == {"skipped"}


def test_shared_memory(tmp_path: Path) -> None:
    assert everywhere(tmp_path)["host.shm"].status == "fail"
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert everywhere(tmp_path, shm_min=4096)["host.shm"].status == "pass"
    too_small = everywhere(tmp_path, shm_min=2**60)["host.shm"]
    assert too_small.status == "fail"
    assert "lxc.mount.entry" in too_small.fix


@pytest.mark.parametrize(
    ("user", "limit", "status"),
    [(0, 8192, "pass"), (1000, 8192, "warn"), (1000, machine.resource.RLIM_INFINITY, "pass")],
)
def test_locked_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, limit: int, status: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _which: (limit, limit))
    assert everywhere(tmp_path)["host.memlock"].status == status


@pytest.mark.parametrize(
    ("text", "status"),
    [("MemAvailable: 100000000 kB\n", "pass"), ("MemAvailable: 1000000 kB\n", "warn"), ("MemFree: 1 kB\n", "skipped")],
)
def test_available_memory(tmp_path: Path, text: str, status: str) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(text)
    assert everywhere(tmp_path)["host.memory"].status == status


@pytest.mark.parametrize(
    ("node", "cpus", "status", "text"),
    [
        ("0", "0-511", "pass", "node 0"),
        ("-1", "0-511", "warn", "node unknown"),
        ("0", "510-511", "warn", "none of node 0's CPUs"),
    ],
)
def test_numa(tmp_path: Path, node: str, cpus: str, status: str, text: str) -> None:
    for number, told in ((0, cpus), (1, "512-1023")):
        folder = tmp_path / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(told)
    for address in ADDRESSES:
        (put_behind(tmp_path, address, {}) / "numa_node").write_text(node)
    check = everywhere(tmp_path)["host.numa"]
    assert check.status == status
    assert text in check.actual


def test_one_numa_node_needs_no_check(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/node/node0").mkdir(parents=True)
    assert everywhere(tmp_path)["host.numa"].status == "skipped"


def test_nvswitches_are_counted(tmp_path: Path) -> None:
    for address, kind in (("0000:05:00.0", "0x068000"), ("0000:41:00.0", "0x030200")):
        device = tmp_path / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text(f"{kind}\n")
    assert machine.nvswitches(tmp_path) == 1


def test_lists_of_cpus() -> None:
    assert machine.cpus("0-2,8") == {0, 1, 2, 8}
    assert machine.cpus("") == set()
