# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import kernel

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)  Thu\n"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def write(root: Path, path: str, data: str | bytes = "") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data.encode() if isinstance(data, str) else data)
    return target


def test_gpu_ids(tmp_path: Path) -> None:
    for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x2bb1\n")):
        write(tmp_path, f"sys/bus/pci/devices/0000:41:00.0/{name}", text)
    assert kernel.gpu_ids(tmp_path) == {"0000:41:00.0": 0x2BB1}


def test_options_are_read_where_the_kernel_shows_them(tmp_path: Path) -> None:
    running = write(tmp_path, "proc/driver/nvidia/version", OPEN)
    write(tmp_path, "proc/driver/nvidia/params", 'EnableMSI: 1\nRegistryDwords: "a=1"\nDeviceFileMode: 0x1b6\n')
    write(tmp_path, "sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n")
    wanted = {
        "nvidia": {"NVreg_EnableMSI": "1", "NVreg_DeviceFileMode": "438", "NVreg_RegistryDwords": "a=2"},
        "nvidia-uvm": {"uvm_disable_hmm": "1", "uvm_unheard_of": "1"},
    }
    differing, unseen = kernel.differing_options(tmp_path, running, wanted)
    assert differing == {"nvidia.NVreg_RegistryDwords": "a=1", "nvidia-uvm.uvm_disable_hmm": "0"}
    assert unseen == ["nvidia-uvm.uvm_unheard_of"]


def test_secure_boot(tmp_path: Path) -> None:
    assert not kernel.secure_boot(tmp_path)
    write(tmp_path, SECURE_BOOT, b"\x06\0\0\0\0")
    assert not kernel.secure_boot(tmp_path)
    write(tmp_path, SECURE_BOOT, b"\x06\0\0\0\x01")
    assert kernel.secure_boot(tmp_path)


def test_key_is_enrolled_only_when_the_list_holds_it(tmp_path: Path) -> None:
    assert not kernel.key_enrolled(tmp_path)
    write(tmp_path, "var/lib/dkms/mok.pub", b"DER-of-the-key")
    assert not kernel.key_enrolled(tmp_path)
    write(tmp_path, "sys/firmware/efi/mok-variables/MokListRT", b"....DER-of-another....")
    assert not kernel.key_enrolled(tmp_path)
    write(tmp_path, "sys/firmware/efi/mok-variables/MokListRT1", b"....DER-of-the-key....")
    assert kernel.key_enrolled(tmp_path)


def test_kernels_and_their_modules(tmp_path: Path) -> None:
    write(tmp_path, "lib/modules/6.8.12-4-pve/build/Makefile")
    write(tmp_path, "lib/modules/6.8.12-4-pve/updates/dkms/nvidia.ko.zst")
    write(tmp_path, "lib/modules/6.14.0-1-pve/kernel/net/tun.ko")
    assert kernel.has_headers(tmp_path, "6.8.12-4-pve")
    assert kernel.has_module(tmp_path, "6.8.12-4-pve")
    assert not kernel.has_headers(tmp_path, "6.14.0-1-pve")
    assert not kernel.has_module(tmp_path, "6.14.0-1-pve")
    assert kernel.other_kernels(tmp_path, "6.8.12-4-pve") == ["6.14.0-1-pve"]


def test_users_are_those_that_hold_a_node_open(tmp_path: Path) -> None:
    for process, name, target in (
        ("10", "python3", "/dev/nvidia0"),
        ("11", "nvidia-persiste", "/dev/nvidiactl"),
        ("12", "bash", "/dev/null"),
    ):
        write(tmp_path, f"proc/{process}/comm", f"{name}\n")
        (tmp_path / "proc" / process / "fd").mkdir()
        (tmp_path / "proc" / process / "fd/3").symlink_to(target)
    assert kernel.users(tmp_path) == {10: "python3"}


def test_libraries_are_told_by_their_files_not_by_links(tmp_path: Path) -> None:
    library = write(tmp_path, "usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05")
    library.with_name("libcuda.so.1").symlink_to(library.name)
    write(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert kernel.libraries(tmp_path) == {str(library): "580.95.05"}
