# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the machine around the GPUs must have: PCIe paths, IOMMU, shared memory, limits, memory, NUMA."""

from __future__ import annotations

import os
import resource
import struct
from collections.abc import Sequence
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from .expected import Expected
from .host import NVIDIA_VENDOR, ROOT, numa_node, read
from .inventory import Finding, combine
from .rules import ALONE, RUN_ON_HOST

NCCL = "NCCL user guide, Troubleshooting: GPU Direct, PCI Access Control Services (ACS)"
# PCI Express Base: extended capability ACS; the bits of its control register that send peer traffic to the root.
ACS_CAPABILITY = 0x000D
ACS_REQUEST_REDIRECT, ACS_COMPLETION_REDIRECT = 0x04, 0x08
EXTENDED = 0x100


def host_only(addresses: Sequence[str], container: str, root: Path = ROOT) -> list[Check]:
    """The checks that only a host can make; ``addresses`` are the GPUs' PCI addresses."""
    rules = (
        ("host.acs", "no PCIe bridge above a GPU redirects peer-to-peer traffic", _acs, NCCL),
        ("host.iommu", "the IOMMU is off or passes the GPUs' addresses through", _iommu, NCCL),
    )
    checks = []
    for identifier, expected, judge, source in rules:
        if container or len(addresses) < 2:
            checks.append(Check(identifier, SKIPPED, expected, _not_here(addresses, container), source=source))
            continue
        checks.append(combine(identifier, expected, [(address, judge(root, address)) for address in addresses], source))
    checks.append(_uvm_hmm(addresses, container, root))
    return checks


def _not_here(addresses: Sequence[str], container: str) -> str:
    return RUN_ON_HOST if container else ALONE if addresses else "no NVIDIA GPU on a PCI bus"


def everywhere(addresses: Sequence[str], count: int, expected: Expected, root: Path = ROOT) -> list[Check]:
    """The checks that mean something in a container too; ``count`` is the number of GPUs that will be used."""
    return [_shm(expected, root), _memlock(), _memory(count, expected, root), _numa(addresses, root)]


def nvswitches(root: Path = ROOT) -> int:
    """NVSwitches on the PCI bus: NVIDIA's bridges of class 0x0680."""
    devices = (root / "sys/bus/pci/devices").glob("*")
    return sum(
        read(device / "vendor") == NVIDIA_VENDOR and read(device / "class").startswith("0x0680") for device in devices
    )


def _acs(root: Path, address: str) -> Finding:
    device = (root / "sys/bus/pci/devices" / address).resolve()
    redirecting, unread = [], []
    for bridge in device.parents:
        config = bridge / "config"
        if not config.exists():
            break
        try:
            control = _acs_control(config.read_bytes())
        except (OSError, ValueError):
            unread.append(bridge.name)
            continue
        if control & (ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT):
            redirecting.append(bridge.name)
    if redirecting:
        fix = (
            "switch ACS off for these bridges (in the BIOS, or with setpci at each boot) unless virtual machines need "
            "it: with it peer-to-peer copies are slow, or hang"
        )
        return Finding(WARN, f"redirected by {', '.join(redirecting)}", fix)
    if unread:
        return Finding(SKIPPED, f"the configuration of {', '.join(unread)} cannot be read whole (needs root)")
    return Finding(PASS, "not redirected")


def _acs_control(config: bytes) -> int:
    """The ACS control register, 0 for a bridge without it. Raises ValueError without the extended space."""
    if len(config) <= EXTENDED:
        raise ValueError("no extended configuration space")
    offset = EXTENDED
    seen = set()
    while offset and offset not in seen and offset + 8 <= len(config):
        seen.add(offset)
        (header,) = struct.unpack_from("<I", config, offset)
        if header & 0xFFFF == ACS_CAPABILITY:
            (control,) = struct.unpack_from("<H", config, offset + 6)
            return int(control)
        offset = header >> 20 & 0xFFC
    return 0


def _iommu(root: Path, address: str) -> Finding:
    group = root / "sys/bus/pci/devices" / address / "iommu_group"
    if not group.exists():
        return Finding(PASS, "off")
    kind = read(group / "type")
    if kind == "identity":
        return Finding(PASS, "passed through")
    if not kind:
        return Finding(SKIPPED, "the kernel does not tell the type of its group")
    fix = (
        "boot with iommu=pt (keeps the passthrough of other devices) or, where no virtual machine needs it, iommu=off: "
        "translated peer-to-peer traffic makes NCCL slow, or hang"
    )
    return Finding(WARN, f"translated ({kind})", fix)


def _uvm_hmm(addresses: Sequence[str], container: str, root: Path) -> Check:
    expected = "nvidia_uvm is loaded with uvm_disable_hmm=1"
    source = "local-inference-lab/rtx6kpro hardware/pcie-bandwidth.md, Modprobe Configuration: NCCL locks up without it"
    if container or len(addresses) < 2:
        return Check("host.uvm_hmm", SKIPPED, expected, _not_here(addresses, container), source=source)
    told = read(root / "sys/module/nvidia_uvm/parameters/uvm_disable_hmm")
    if not told:
        return Check("host.uvm_hmm", SKIPPED, expected, "nvidia_uvm does not tell", source=source)
    if told in ("Y", "1"):
        return Check("host.uvm_hmm", PASS, expected, told, source=source)
    fix = "write 'options nvidia_uvm uvm_disable_hmm=1' to a file in /etc/modprobe.d (role nvidia_driver) and reboot"
    return Check("host.uvm_hmm", WARN, expected, f"uvm_disable_hmm={told}", fix, source)


def _shm(expected: Expected, root: Path) -> Check:
    limit = int(expected.limit("shm_min"))
    words = f"/dev/shm of {limit // 2**20} MiB or more"
    source = "NCCL user guide, Troubleshooting, Sharing Data"
    try:
        found = os.statvfs(root / "dev/shm")
    except OSError as error:
        fix = "mount a tmpfs on /dev/shm"
        return Check("host.shm", FAIL, words, f"{error.strerror}", fix, source)
    size, free = found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
    text = f"{size // 2**20} MiB, {free // 2**20} MiB free"
    if free < limit:
        fix = (
            "mount a larger tmpfs on /dev/shm, or remove what fills it (LXC: lxc.mount.entry = tmpfs dev/shm tmpfs "
            "rw,nosuid,nodev,size=16G,create=dir 0 0)"
        )
        return Check("host.shm", FAIL, words, text, fix, source)
    return Check("host.shm", PASS, words, text, source=source)


def _memlock() -> Check:
    words = "no limit on locked memory"
    source = "NCCL user guide, Troubleshooting, Sharing Data: --ulimit memlock=-1"
    _soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if hard == resource.RLIM_INFINITY:
        return Check("host.memlock", PASS, words, "none", source=source)
    if os.geteuid() == 0:
        return Check("host.memlock", PASS, words, f"{hard // 1024} KiB, which does not bind root", source=source)
    fix = "set LimitMEMLOCK=infinity in the service's unit (role sglang_server); this is the limit of this login"
    return Check("host.memlock", WARN, words, f"{hard // 1024} KiB", fix, source)


def _memory(count: int, expected: Expected, root: Path) -> Check:
    limit = int(expected.limit("memory_available_per_gpu_min")) * max(count, 1)
    found = expected.value("memory_available_per_gpu_min")
    source = found.source if found else ""
    words = f"{limit // 2**20} MiB of memory available for {max(count, 1)} ranks"
    for line in read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
            text = f"{available // 2**20} MiB available"
            if available < limit:
                fix = "stop what uses the memory or give this container more: a rank that is killed hangs the others"
                return Check("host.memory", WARN, words, text, fix, source)
            return Check("host.memory", PASS, words, text, source=source)
    return Check("host.memory", SKIPPED, words, "/proc/meminfo does not tell MemAvailable", source=source)


def _numa(addresses: Sequence[str], root: Path) -> Check:
    words = "each GPU's NUMA node is known and its CPUs may be used here"
    source = "sysfs: numa_node of the GPU; sched_getaffinity(2)"
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    if not addresses or len(nodes) < 2:
        reason = "this machine has one NUMA node" if addresses else "no NVIDIA GPU on a PCI bus"
        return Check("host.numa", SKIPPED, words, reason, source=source)
    allowed = os.sched_getaffinity(0)
    findings = []
    for address in addresses:
        node = numa_node(address, root)
        if node is None:
            fix = "set NUMA (NPS1, ACPI SRAT) in the BIOS so that the firmware reports the GPUs' nodes"
            findings.append((address, Finding(WARN, "node unknown", fix)))
            continue
        if not cpus(read(root / f"sys/devices/system/node/node{node}/cpulist")) & allowed:
            fix = f"allow CPUs of node {node} here (the container's cpuset): else every copy crosses the sockets"
            findings.append((address, Finding(WARN, f"none of node {node}'s CPUs may be used here", fix)))
            continue
        findings.append((address, Finding(PASS, f"node {node}")))
    return combine("host.numa", words, findings, source)


def cpus(text: str) -> set[int]:
    """The numbers of '0-3,8': a list as the kernel writes it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
