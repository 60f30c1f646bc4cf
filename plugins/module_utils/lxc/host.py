# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of containers and its guests: what they are, whether they run, and one way to run a command in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .config import CGROUP, DEV, LXC, PROXMOX
from .devices import LxcError

PVE_FOLDER = "/etc/pve"
LXC_FOLDER = "/var/lib/lxc"
# pve-container 5.0.7, "allow passing raw device nodes through to containers", came with Proxmox VE 8.1.
FIRST_WITH_DEV = (8, 1)
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(argv: Sequence[str], seconds: float = 30.0) -> subprocess.CompletedProcess[str]:
    """Run a command without a shell; its output as text. Raises LxcError when it is not there or does not end."""
    try:
        return subprocess.run(
            list(argv), capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except FileNotFoundError as error:
        raise LxcError(f"{argv[0]} is not on this host; run this on the host of the containers") from error
    except subprocess.TimeoutExpired as error:
        raise LxcError(
            f"{' '.join(argv)} did not end within {seconds:.0f} s; look at the container's console"
        ) from error


def detect_backend() -> str:
    """``proxmox`` where Proxmox VE's pct is, ``lxc`` where LXC's own tools are. Raises LxcError where neither is."""
    if shutil.which("pct"):
        return PROXMOX
    if shutil.which("lxc-info"):
        return LXC
    raise LxcError("this host has neither pct nor lxc-info; run lxc_gpu on the host of the containers, not inside one")


def proxmox_version() -> tuple[int, ...]:
    """(8, 4, 1) of this host, from ``pveversion`` (``pve-manager/8.4.1/2a5fa54a8503f96d ...``). Raises LxcError."""
    if not shutil.which("pveversion"):
        raise LxcError(
            "the version of Proxmox VE is not known (no pveversion here); set lxc_gpu_style to dev or cgroup"
        )
    text = run(["pveversion"]).stdout
    match = re.search(r"pve-manager/(\d+(?:\.\d+)*)", text)
    if not match:
        raise LxcError(f"pveversion says {text.strip()!r}, which names no version; set lxc_gpu_style to dev or cgroup")
    return tuple(int(part) for part in match.group(1).split("."))


def choose_style(style: str, backend: str) -> str:
    """``auto`` as dev or cgroup. Raises LxcError when the version of Proxmox VE cannot be told."""
    if style != "auto":
        return style
    if backend == LXC:
        return CGROUP
    return DEV if proxmox_version()[:2] >= FIRST_WITH_DEV else CGROUP


@dataclass(frozen=True)
class Guest:
    """One id of this host or cluster. ``kind`` is lxc or qemu; ``node`` is empty on a plain host."""

    vmid: str
    kind: str
    node: str
    path: str


@dataclass(frozen=True)
class Guests:
    """All ids that the host knows, and which node it is itself."""

    node: str
    all: dict[str, Guest] = field(default_factory=dict)

    def containers_here(self) -> list[str]:
        """The ids of the containers that this node holds."""
        return sorted(
            (guest.vmid for guest in self.all.values() if guest.kind == "lxc" and guest.node == self.node), key=_order
        )


def _order(vmid: str) -> tuple[int, str]:
    return (int(vmid), "") if vmid.isdigit() else (0, vmid)


def find_guests(backend: str, folder: str = "") -> Guests:
    """The guests by their configuration files: on Proxmox VE those of all nodes of the cluster, else plain LXC's.

    Raises LxcError when Proxmox VE's own file system is not there to be read.
    """
    found: dict[str, Guest] = {}
    if backend == LXC:
        for path in Path(folder or LXC_FOLDER).glob("*/config"):
            found[path.parent.name] = Guest(path.parent.name, "lxc", "", str(path))
        return Guests("", found)
    top = Path(folder or PVE_FOLDER)
    # /etc/pve/lxc is a link to this node's own folder (pve-cluster, src/pmxcfs/cfs-plug-link.c).
    node = (top / "lxc").resolve().parent.name
    if not (top / "nodes" / node / "lxc").is_dir():
        raise LxcError(f"{top} holds no node's configurations; start its file system: systemctl restart pve-cluster")
    for name, kind in (("lxc", "lxc"), ("qemu-server", "qemu")):
        for path in top.glob(f"nodes/*/{name}/*.conf"):
            if path.stem.isdigit():
                own = path.parts[-3] == node
                shown = str(top / name / path.name) if own else str(path)
                found[path.stem] = Guest(path.stem, kind, path.parts[-3], shown)
    return Guests(node, found)


@dataclass(frozen=True)
class State:
    """Whether a container runs, and its init's process id on the host (0 when it does not)."""

    running: bool
    pid: int = 0


def guest_state(vmid: str) -> State:
    """Ask LXC itself, which knows for both backends."""
    answer = run(["lxc-info", "-n", vmid, "-s", "-p", "-H"])
    words = answer.stdout.split()
    pid = next((int(word) for word in words if word.isdigit()), 0)
    return State("RUNNING" in words and pid > 0, pid)


def guest_run(vmid: str, argv: Sequence[str], seconds: float = 30.0) -> subprocess.CompletedProcess[str]:
    """Run a command in a running container, in its namespaces and its cgroup, so that its device rules hold.

    (nsenter would not join the cgroup and so would pass by the rules.)
    """
    return run(
        ["lxc-attach", "-n", vmid, "--clear-env", "-v", f"PATH={GUEST_PATH}", "-v", "LC_ALL=C", "--", *argv], seconds
    )


def guest_groups(vmid: str) -> dict[int, str]:
    """The groups of a running container: gid -> name. Raises LxcError when the container does not answer."""
    done = guest_run(vmid, ["cat", "/etc/group"])
    if done.returncode != 0:
        raise LxcError(f"container {vmid} could not be asked for its groups: {done.stderr.strip() or 'no answer'}")
    fields = [line.split(":") for line in done.stdout.splitlines()]
    return {int(parts[2]): parts[0] for parts in fields if len(parts) >= 3 and parts[2].isdigit()}


def config_path(vmid: str, backend: str) -> str:
    """Where a container's configuration is on this host."""
    return f"{PVE_FOLDER}/lxc/{vmid}.conf" if backend == PROXMOX else f"{LXC_FOLDER}/{vmid}/config"
