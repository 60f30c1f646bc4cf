# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says: the options of the module that runs, and whether a new one could be built and loaded.

Each function takes the root of the file system, so that a test can lay out its own. Files only: nothing is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..gpu.host import pci_gpus, read

# PCI device ids grow with the generation: Turing begins at TU102's 1e00, Blackwell at GB100's 2900 (Ada ends in 28xx).
# Source: NVIDIA driver README, "Supported NVIDIA GPU Products".
FIRST_TURING = 0x1E00
FIRST_BLACKWELL = 0x2900
_EFI = "sys/firmware/efi"
_EFI_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"


def read_or_none(path: Path) -> str | None:
    """The text of a file as it is, None when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def nouveau(root: Path) -> bool:
    """Whether nouveau holds the GPUs."""
    return (root / "sys/module/nouveau").exists()


def gpu_ids(root: Path) -> dict[str, int]:
    """PCI device ids of the NVIDIA GPUs on the bus, by address."""
    ids = {}
    for address in pci_gpus(root):
        told = read(root / "sys/bus/pci/devices" / address / "device")
        if re.fullmatch(r"0x[0-9a-fA-F]+", told):
            ids[address] = int(told, 16)
    return ids


def _value(told: str) -> str:
    """A module parameter's value in one spelling: the kernel shows a bool as Y or N."""
    told = told.strip().strip('"')
    if re.fullmatch(r"0x[0-9a-fA-F]+", told):
        return str(int(told, 16))
    return {"Y": "1", "N": "0", "y": "1", "n": "0"}.get(told, told)


def option_in_effect(root: Path, running_file: Path, module: str, option: str) -> str | None:
    """The value that the loaded module has; None when the kernel does not show it.

    The nvidia module shows its own in the ``params`` beside its version, without the prefix NVreg_.
    """
    if module == "nvidia" and option.startswith("NVreg_"):
        found = re.search(
            rf"^{re.escape(option[len('NVreg_') :])}:(.*)$", read(running_file.with_name("params")), re.MULTILINE
        )
        return None if found is None else _value(found[1])
    path = root / "sys/module" / module.replace("-", "_") / "parameters" / option
    return _value(read(path)) if path.is_file() else None


def option_differs(wanted: str, effective: str) -> bool:
    """Whether a loaded module's value is another than the wanted one."""
    return _value(wanted) != effective


def secure_boot(root: Path) -> bool:
    """Whether the firmware enforces signatures. Four bytes of attributes precede the value (UEFI 2.10, 3.3)."""
    try:
        return (root / _EFI / "efivars" / f"SecureBoot-{_EFI_GLOBAL}").read_bytes()[4:5] == b"\x01"
    except OSError:
        return False


def key_enrolled(root: Path) -> bool:
    """Whether the key that DKMS signs with is one that the kernel trusts.

    DKMS keeps it as DER in /var/lib/dkms/mok.pub, and shim's list holds certificates as they are.
    """
    try:
        key = (root / "var/lib/dkms/mok.pub").read_bytes()
    except OSError:
        return False
    lists = [*(root / _EFI / "mok-variables").glob("MokListRT*"), *(root / _EFI / "efivars").glob("MokListRT*")]
    return bool(key) and any(key in path.read_bytes() for path in lists)


def has_headers(root: Path, release: str) -> bool:
    """Whether modules can be built for a kernel."""
    return (root / "lib/modules" / release / "build").exists()


def has_module(root: Path, release: str) -> bool:
    """Whether DKMS left an NVIDIA module for a kernel."""
    return any((root / "lib/modules" / release / "updates").rglob("nvidia*.ko*"))


def other_kernels(root: Path, release: str) -> list[str]:
    """The installed kernels beside the one that runs: each may be the next to boot."""
    return sorted(
        path.name for path in (root / "lib/modules").glob("*") if path.name != release and (path / "kernel").is_dir()
    )


def users(root: Path) -> dict[int, str]:
    """Processes that hold a GPU open, by id with their names, without the persistence daemon."""
    found = {}
    for process in (root / "proc").glob("[0-9]*"):
        try:
            holds = any(str(link.readlink()).startswith("/dev/nvidia") for link in (process / "fd").iterdir())
        except OSError:
            continue
        name = read(process / "comm")
        if holds and not name.startswith("nvidia-persist"):
            found[int(process.name)] = name
    return found


def libraries(root: Path) -> dict[str, str]:
    """Versions of the driver's user-space libraries on the disk, by path, whoever put them there."""
    found = {}
    for pattern in ("usr/lib/*-linux-gnu/libcuda.so.*", "usr/lib/*-linux-gnu/libnvidia-ml.so.*"):
        for path in sorted(root.glob(pattern)):
            version = path.name.partition(".so.")[2]
            if not path.is_symlink() and re.fullmatch(r"\d{3}\.\d+(?:\.\d+)?", version):
                found[str(path)] = version
    return found


def differing_options(
    root: Path, running_file: Path, options: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, str], list[str]]:
    """Wanted module options against those in effect.

    Returns:
        What differs (``nvidia.NVreg_X`` to the value in effect), and the options that the kernel does not show.
    """
    differing, unseen = {}, []
    for module, wanted in sorted(options.items()):
        for option, value in sorted(wanted.items()):
            name = f"{module}.{option}"
            effective = option_in_effect(root, running_file, module, option)
            if effective is None:
                unseen.append(name)
            elif option_differs(value, effective):
                differing[name] = effective
    return differing, unseen
