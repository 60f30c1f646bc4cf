# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import host


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_container_kinds(tmp_path: Path) -> None:
    assert host.container(tmp_path) == ""
    write(tmp_path, ".dockerenv", "")
    assert host.container(tmp_path) == "docker"
    write(tmp_path, "proc/1/environ", "TERM=linux\0container=lxc\0")
    assert host.container(tmp_path) == "lxc"
    write(tmp_path, "run/systemd/container", "podman\n")
    assert host.container(tmp_path) == "podman"


def test_only_nvidia_gpus_are_counted(tmp_path: Path) -> None:
    devices = (
        ("0000:41:00.0", "0x10de", "0x030200"),
        ("0000:01:00.0", "0x10de", "0x030000"),
        ("0000:01:00.1", "0x10de", "0x040300"),  # its sound device
        ("0000:02:00.0", "0x1a03", "0x030000"),  # the board's own VGA
    )
    for name, vendor, kind in devices:
        write(tmp_path, f"sys/bus/pci/devices/{name}/vendor", f"{vendor}\n")
        write(tmp_path, f"sys/bus/pci/devices/{name}/class", f"{kind}\n")
    assert host.pci_gpus(tmp_path) == ["0000:01:00.0", "0000:41:00.0"]


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)  Thu\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.172.08  Tue Jul  8 18:19:33 UTC 2025\nGCC: 12.2.0\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (OPEN, host.Running("580.159.04", "open")),
        (CLOSED, host.Running("570.172.08", "proprietary")),
        # The whole line is the file in a lab.
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05", host.Running("580.95.05", "open")),
        ("nonsense\n", host.Running()),
    ],
)
def test_the_module_that_runs(tmp_path: Path, text: str, told: host.Running) -> None:
    write(tmp_path, "proc/driver/nvidia/version", text)
    assert host.running(tmp_path / "proc/driver/nvidia/version") == told
    assert host.kernel_driver(tmp_path) == told.version


def test_nothing_runs_without_the_file(tmp_path: Path) -> None:
    assert host.running(tmp_path / "version") == host.Running()
    assert host.kernel_driver(tmp_path) == ""


def test_majors_of_character_devices(tmp_path: Path) -> None:
    text = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n238 nvidia-uvm\n\nBlock devices:\n  8 sd\n"
    write(tmp_path, "proc/devices", text)
    assert host.majors(tmp_path) == {"mem": 1, "nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 238}
