# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine: whether it can run a lab, the packages that it takes, and LXC on its cgroups."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.instance import STATE_ROOT, Lab
from lab.process import FILES, LabError, run

# What the lab itself runs; util-linux and mount are essential packages.
PACKAGES = ("iproute2", "lxc", "mmdebstrap", "nftables", "openssh-client")

# linux/capability.h
_CAPABILITIES = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12, "CAP_MKNOD": 27}
_MACHINE = "take a virtual machine, a bare host, or a container started with --privileged"
_FIXES = {
    "namespaces": ("new namespaces", f"containers are made of them; {_MACHINE}"),
    "cgroup2": ("a mountable, writable cgroup v2", f"needs Linux 5.8 or newer with CONFIG_CGROUPS; {_MACHINE}"),
    "overlay": (
        "overlay mounts",
        f"needs {STATE_ROOT.parent} on a file system that can be an overlay's upper layer (ext4, xfs)",
    ),
    "devices": ("device nodes that can be made and opened", f"a device cgroup is in the way; {_MACHINE}"),
}


@dataclass(frozen=True)
class Facts:
    """What is known of this machine. `probes` maps a probe's name to None (works) or the reason why it does not."""

    uid: int
    capabilities: int
    whole_uid_map: bool
    filesystems: frozenset[str]
    apt: bool
    probes: dict[str, str | None] = field(default_factory=dict)


def missing(facts: Facts) -> list[str]:
    """One line for each thing that a lab needs and this machine lacks, with the fix. Empty: it can run one."""
    lines = []
    if not facts.apt:
        lines.append("apt-get: not found; the lab installs what it needs with apt: take a Debian 12 machine")
    if facts.uid != 0:
        lines.append(f"root: running as uid {facts.uid}; run it as root (sudo -i)")
        # Whatever else is missing follows from this.
        return lines
    if not facts.whole_uid_map:
        lines.append(f"root: of a user namespace only (rootless container), which cannot own devices; {_MACHINE}")
    lines += [f"{name}: not held; {_MACHINE}" for name in _lacking(facts.capabilities)]
    for name, reason in facts.probes.items():
        if reason is None:
            continue
        what, fix = _FIXES[name]
        if name == "overlay" and name not in facts.filesystems:
            # Mounting one would have loaded the module.
            what, fix = "overlay mounts", "run `modprobe overlay`, or take a kernel with CONFIG_OVERLAY_FS"
        lines.append(f"{name}: this machine refuses {what} ({reason}); {fix}")
    return lines


def gather() -> Facts:
    """Look at this machine; the probes run only where they can succeed."""
    uid = os.geteuid()
    status = Path("/proc/self/status").read_text()
    capabilities = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    whole_uid_map = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    able = uid == 0 and whole_uid_map and not _lacking(capabilities)
    probes = _probe() if able else {}
    filesystems = frozenset(line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines())
    return Facts(uid, capabilities, whole_uid_map, filesystems, shutil.which("apt-get") is not None, probes)


def _lacking(capabilities: int) -> list[str]:
    return [name for name, bit in _CAPABILITIES.items() if not capabilities >> bit & 1]


def _probe() -> dict[str, str | None]:
    command = ["unshare", "--mount", "--propagation", "private", "sh", str(FILES / "machine/probe.sh")]
    try:
        with tempfile.TemporaryDirectory(dir=STATE_ROOT.parent, prefix=".gpuserve-probe-") as folder:
            done = subprocess.run([*command, folder], capture_output=True, text=True)
    except OSError as error:
        return {"overlay": str(error)}
    if not done.stdout:
        return {"namespaces": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "unshare failed"}
    probes: dict[str, str | None] = {}
    for line in done.stdout.splitlines():
        name, verdict, *reason = line.split(" ", 2)
        probes[name] = None if verdict == "ok" else " ".join(reason)
    return probes


def install_packages() -> None:
    """Install what is not there yet of PACKAGES."""
    absent = [name for name in PACKAGES if not _installed(name)]
    if not absent:
        return
    print(f"installing {' '.join(absent)}", flush=True)
    apt_get("update")
    apt_get("install", "--yes", "--no-install-recommends", *absent)


def _installed(package: str) -> bool:
    done = run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], check=False)
    return done.stdout == "installed"


def apt_get(*arguments: str) -> None:
    run(
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )


def with_cgroup2(command: Sequence[str]) -> list[str]:
    """`command`, to be run where /sys/fs/cgroup is cgroup v2 alone."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[4] == "/sys/fs/cgroup" and fields[fields.index("-") + 1] == "cgroup2":
            return list(command)
    return ["unshare", "--mount", "--propagation", "private", "sh", str(FILES / "machine/v2.sh"), *command]


def remove_cgroups(lab: Lab) -> None:
    run(with_cgroup2(["sh", str(FILES / "machine/remove-cgroups.sh"), lab.container]))


def mount_points(folder: Path) -> list[str]:
    """Mount points at or below `folder`, the deepest first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((p for p in points if p == str(folder) or p.startswith(f"{folder}/")), key=len, reverse=True)


def remove_tree(folder: Path) -> None:
    """Remove `folder`, never descending into what may be mounted below it."""
    for point in mount_points(folder):
        run(["umount", point])
    if folder.exists():
        run(["rm", "-rf", "--one-file-system", str(folder)])


def require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the lab needs root; run it as root (sudo -i)")


def require() -> None:
    """LabError naming everything that is missing, if this machine cannot run a lab."""
    if lines := missing(gather()):
        raise LabError("this machine cannot run containers:\n" + "\n".join(f"  {line}" for line in lines))
