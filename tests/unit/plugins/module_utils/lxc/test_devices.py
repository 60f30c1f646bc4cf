# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import (
    Cap,
    Device,
    Extras,
    Gpu,
    LxcError,
    choose_gpus,
    control_devices,
    find_caps,
    find_gpus,
    fixed_minor,
    gpu_device,
    is_dynamic,
    missing_drivers,
    node_state,
    parse_devices,
    read_devices,
)

PROC_DEVICES = """Character devices:
  1 mem
 10 misc
195 nvidia
195 nvidiactl
226 drm
508 nvidia-caps
511 nvidia-uvm

Block devices:
  8 sd
511 nvidia-uvm-block
"""
GPUS = [
    Gpu(0, 1, "GPU-aaaa", "0000:01:00.0"),
    Gpu(1, 0, "GPU-bbbb", "0000:c1:00.0"),
]


def information(folder: Path, address: str, minor: str, uuid: str) -> None:
    path = folder / "gpus" / address
    path.mkdir(parents=True)
    (path / "information").write_text(
        f"Model: \t\t NVIDIA RTX PRO 6000\nIRQ:   \t\t 100\nGPU UUID: \t {uuid}\nBus Location: \t {address}\n"
        f"Device Minor: \t {minor}\nGPU Excluded:\t No\n"
    )


def test_majors_are_those_of_character_devices() -> None:
    majors = parse_devices(PROC_DEVICES)
    assert (majors["nvidia"], majors["nvidia-uvm"], majors["drm"]) == (195, 511, 226)
    assert "sd" not in majors
    assert "nvidia-uvm-block" not in majors


def test_devices_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(LxcError, match="set lxc_gpu_devices_file to the kernel's list"):
        read_devices(str(tmp_path / "devices"))


def test_index_follows_the_bus_and_not_the_minor(tmp_path: Path) -> None:
    information(tmp_path, "0000:C1:00.0", "0", "GPU-bbbb")
    information(tmp_path, "0000:01:00.0", "1", "GPU-aaaa")
    assert find_gpus(str(tmp_path)) == GPUS


def test_a_gpu_whose_minor_is_unknown_is_left_out(tmp_path: Path) -> None:
    information(tmp_path, "0000:01:00.0", "Unknown", "GPU-aaaa")
    (tmp_path / "gpus" / "0000:02:00.0").mkdir()
    assert find_gpus(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("wanted", "minors"),
    [
        ("all", [1, 0]),
        ([0], [1]),
        (["1", 0], [0, 1]),
        (["GPU-bbbb"], [0]),
        (["gpu-BBBB"], [0]),
        (["0000:c1:00.0"], [0]),
        (["00000000:C1:00.0"], [0]),
        (["c1:00.0"], [0]),
        ([1, "GPU-bbbb", "c1:00.0"], [0]),
    ],
)
def test_gpus_are_chosen_by_index_uuid_and_address(wanted: object, minors: list[int]) -> None:
    assert [gpu.minor for gpu in choose_gpus(wanted, GPUS)] == minors


@pytest.mark.parametrize("wanted", [[7], ["GPU-cccc"], ["02:00.0"], ["nonsense"]])
def test_a_gpu_that_is_not_there_is_told_with_those_that_are(wanted: list[object]) -> None:
    message = "this host has 0 GPU-aaaa 0000:01:00.0, 1 GPU-bbbb 0000:c1:00.0; use one of those, or all"
    with pytest.raises(LxcError, match=message):
        choose_gpus(wanted, GPUS)


@pytest.mark.parametrize("wanted", [[], "0", None, 0])
def test_gpus_of_another_shape_are_told(wanted: object) -> None:
    with pytest.raises(LxcError, match="give all, or a list of indices, UUIDs or PCI addresses"):
        choose_gpus(wanted, GPUS)


def test_cuda_needs_three_nodes_beside_the_gpus() -> None:
    majors = parse_devices(PROC_DEVICES)
    found = control_devices(majors, Extras())
    assert [(d.path, d.numbers) for d in [gpu_device(majors, GPUS[0]), *found]] == [
        ("/dev/nvidia1", "c 195:1"),
        ("/dev/nvidiactl", "c 195:255"),
        ("/dev/nvidia-uvm", "c 511:0"),
        ("/dev/nvidia-uvm-tools", "c 511:1"),
    ]


def test_modeset_and_caps_come_when_asked_for() -> None:
    caps = [Cap(1, "0400"), Cap(2, "0444")]
    found = control_devices(parse_devices(PROC_DEVICES), Extras(modeset=True, caps=True), caps)
    assert [(d.path, d.numbers, d.mode) for d in found[3:]] == [
        ("/dev/nvidia-modeset", "c 195:254", "0666"),
        ("/dev/nvidia-caps/nvidia-cap1", "c 508:1", "0400"),
        ("/dev/nvidia-caps/nvidia-cap2", "c 508:2", "0444"),
    ]


def test_minor_and_mode_of_a_capability_are_the_drivers_own(tmp_path: Path) -> None:
    mig = tmp_path / "capabilities" / "mig"
    mig.mkdir(parents=True)
    (mig / "config").write_text("DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n")
    (mig / "monitor").write_text("DeviceFileMinor: 2\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    assert find_caps(str(tmp_path)) == [Cap(1, "0400"), Cap(2, "0444")]


@pytest.mark.parametrize(
    ("majors", "missing"),
    [
        ({"nvidia": 195, "nvidia-uvm": 511}, []),
        ({"nvidia-frontend": 195, "nvidia-uvm": 511}, []),
        ({"nvidia": 195}, ["nvidia-uvm"]),
        ({"mem": 1}, ["nvidia", "nvidia-uvm"]),
    ],
)
def test_drivers_that_are_not_loaded(majors: dict[str, int], missing: list[str]) -> None:
    assert missing_drivers(majors, Extras()) == missing


def test_mig_needs_its_driver_too() -> None:
    assert missing_drivers({"nvidia": 195, "nvidia-uvm": 511}, Extras(caps=True)) == ["nvidia-caps"]


@pytest.mark.parametrize(
    ("path", "minor"),
    [
        ("/dev/nvidia7", 7),
        ("/dev/nvidiactl", 255),
        ("/dev/nvidia-modeset", 254),
        ("/dev/nvidia-uvm", 0),
        ("/dev/nvidia-uvm-tools", 1),
        ("/dev/nvidia-caps/nvidia-cap2", 2),
        ("/dev/nvidia-nvswitchctl", None),
        ("/dev/dri/card0", None),
    ],
)
def test_minors_that_a_name_fixes(path: str, minor: int | None) -> None:
    assert fixed_minor(path) == minor


@pytest.mark.parametrize(
    ("major", "dynamic"), [(511, True), (384, True), (234, True), (254, True), (226, False), (195, False)]
)
def test_dynamic_majors(major: int, dynamic: bool) -> None:
    assert is_dynamic(major) is dynamic


def test_node_state_tells_missing_wrong_and_right(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    assert node_state(Device(str(tmp_path / "gone"), 1, 3)) == "missing"
    assert node_state(Device(str(plain), 1, 3)) == "not a character device"
    assert node_state(Device("/dev/null", 1, 5)) == "c 1:3 instead of c 1:5"
    assert node_state(Device("/dev/null", 1, 3)) == ""
