# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab: everything that must differ between two of them derives from the id."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from lab.process import LabError

STATE_ROOT = Path("/var/lib/gpuserve-lab")
DEFAULT_ID = "demo"
# Every lab's /24 lies in here; 16384 of them.
POOL = IPv4Network("10.64.0.0/10")
VMID = 200
# Ids of further containers: each is the last number of its address too.
CLONES = range(VMID + 1, 255)


@dataclass(frozen=True)
class Mount:
    """A folder of this machine, seen read-only in CT 200 and, under /srv/lab, on the Proxmox host; or there alone."""

    source: str
    target: str
    pve_alone: bool = False

    @property
    def on_pve(self) -> str:
        return self.target if self.pve_alone else f"/srv/lab{self.target}"

    def __str__(self) -> str:
        return f"{self.source}:{'pve:' if self.pve_alone else ''}{self.target}"

    @classmethod
    def read(cls, text: str) -> Mount:
        """HOSTDIR:CTDIR or HOSTDIR:pve:DIR."""
        source, _, where = text.partition(":")
        return cls(source, where.removeprefix("pve:"), where.startswith("pve:"))

    @classmethod
    def parse(cls, text: str) -> Mount:
        """As `read`; LabError unless both are absolute. What LXC cannot quote in a mount entry is refused."""
        given = cls.read(text)
        if not all(re.fullmatch(r"/[^\s:,\\]+", path) for path in (given.source, given.target)):
            raise LabError(
                f"--mount {text}: expected HOSTDIR:CTDIR or HOSTDIR:pve:DIR, absolute paths without spaces or commas"
            )
        if ".." in Path(given.target).parts:
            raise LabError(f"--mount {text}: '..' in {given.target}")
        if not Path(given.source).is_dir():
            raise LabError(f"--mount {text}: {given.source} is not a folder on this machine")
        return cls(os.path.realpath(given.source), os.path.normpath(given.target), given.pve_alone)


@dataclass(frozen=True)
class Lab:
    """Names, addresses and paths of the lab called `id`."""

    id: str

    def __post_init__(self) -> None:
        # A bridge's name has at most 15 characters.
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,10}", self.id):
            raise LabError(f"lab id '{self.id}': expected 1 to 11 characters of a-z, 0-9 and '-'")

    @classmethod
    def default(cls) -> str:
        return os.environ.get("GPUSERVE_LAB") or DEFAULT_ID

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self.id.encode()).digest()

    @property
    def bridge(self) -> str:
        return f"lab-{self.id}"

    @property
    def container(self) -> str:
        """The outer LXC container."""
        return f"gpuserve-lab-{self.id}"

    @property
    def table(self) -> str:
        """The nftables table, family ip."""
        return f"gpuserve_lab_{self.id.replace('-', '_')}_{self._digest.hex()[:4]}"

    @property
    def network(self) -> IPv4Network:
        index = int.from_bytes(self._digest[:2], "big") % (1 << (24 - POOL.prefixlen))
        return IPv4Network((int(POOL.network_address) + (index << 8), 24))

    @property
    def gateway(self) -> IPv4Address:
        return self.network[1]

    @property
    def pve_address(self) -> IPv4Address:
        return self.network[10]

    @property
    def ct_address(self) -> IPv4Address:
        return self.guest_address(VMID)

    @property
    def hosts(self) -> dict[str, IPv4Address]:
        return {"pve": self.pve_address, f"ct{VMID}": self.ct_address}

    def hwaddr(self, address: IPv4Address) -> str:
        """A fixed, locally administered one: a new one at each start would leave stale neighbour entries for 30 s."""
        return "02:67:" + ":".join(f"{byte:02x}" for byte in address.packed)

    @property
    def state(self) -> Path:
        return STATE_ROOT / self.id

    @property
    def lxc_path(self) -> Path:
        return self.state / "lxc"

    @property
    def pve_delta(self) -> Path:
        """What the Proxmox host changes on its image."""
        return self.lxc_path / self.container / "delta"

    @property
    def guests(self) -> Path:
        """/var/lib/lxc of the Proxmox host."""
        return self.state / "guests"

    def guest_address(self, vmid: int) -> IPv4Address:
        return self.network[vmid]

    def guest_delta(self, vmid: int) -> Path:
        """What a container changes on the image of CT 200."""
        return self.guests / str(vmid) / "delta"

    def guest_rootfs(self, vmid: int) -> Path:
        """The whole root file system of a container that does not share CT 200's image."""
        return self.guests / str(vmid) / "rootfs"

    @property
    def log(self) -> Path:
        """LXC's log of the outer container."""
        return self.state / "lxc.log"

    @property
    def ssh(self) -> Path:
        return self.state / "ssh"

    @property
    def key(self) -> Path:
        return self.ssh / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.ssh / "known_hosts"

    @property
    def control(self) -> Path:
        """Where ssh keeps its control sockets: with the 40 characters of %C and ssh's own suffix under 108."""
        return self.state / "cp"

    @property
    def record_file(self) -> Path:
        return self.state / "lab.json"

    @property
    def lock_file(self) -> Path:
        return STATE_ROOT / f"{self.id}.lock"

    @property
    def ssh_options(self) -> list[str]:
        """Options by which ssh knows this lab's hosts, and them alone."""
        options = {
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "ControlPath": f"{self.control}/%C",
        }
        return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


@dataclass(frozen=True)
class Record:
    """What lab.json remembers: what cannot be derived from the id."""

    mounts: tuple[Mount, ...]
    images: dict[str, str]
    ready: bool

    def save(self, lab: Lab) -> None:
        data = {
            "id": lab.id,
            "ready": self.ready,
            "network": str(lab.network),
            "hosts": {name: str(address) for name, address in lab.hosts.items()},
            "bridge": lab.bridge,
            "container": lab.container,
            "nft_table": f"ip {lab.table}",
            "private_key": str(lab.key),
            "known_hosts": str(lab.known_hosts),
            "mounts": [str(mount) for mount in self.mounts],
            "images": self.images,
        }
        partial = lab.record_file.with_suffix(".partial")
        partial.write_text(json.dumps(data, indent=2) + "\n")
        partial.replace(lab.record_file)

    @classmethod
    def load(cls, lab: Lab) -> Record | None:
        try:
            data = json.loads(lab.record_file.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise LabError(f"{lab.record_file} is not readable ({error}); run `python3 -m lab down`") from error
        mounts = tuple(Mount.read(text) for text in data["mounts"])
        return cls(mounts, data["images"], data["ready"])


def other_labs(lab: Lab) -> list[Lab]:
    """The labs, up or not, that this machine has state of."""
    if not STATE_ROOT.is_dir():
        return []
    return [Lab(path.name) for path in sorted(STATE_ROOT.iterdir()) if path.is_dir() and path.name != lab.id]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; it is gone afterwards, unless somebody else waits for it."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The holder before us removed the file that we waited on: its name may already be a new file.
        try:
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                break
        except FileNotFoundError:
            pass
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
