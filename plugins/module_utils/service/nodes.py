# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups that the service's user needs to open the GPUs' device nodes of this machine.

systemd gives a unit groups by SupplementaryGroups= (systemd.exec(5)), and starts nothing when one of them is not in the
system's database of groups, even if it is written as a number (seen with systemd 252: status 216/GROUP).
"""

from __future__ import annotations

import grp
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checks import FAIL, PASS, WARN, Check
from ..gpu.nodes import CONTROL_NODES
from ..lxc.devices import NODE_PREFIX

# Groups that are nobody's to give: root's own, and what the kernel shows for an id that a container does not have
# (kernel.overflowgid).
_ROOT, _UNMAPPED = 0, 65534
_READ_WRITE = 0o6


@dataclass(frozen=True)
class Node:
    """A device node: ``mode`` are its permission bits, ``gid`` its group, ``group`` that one's name, "" without one."""

    path: str
    mode: int
    gid: int
    group: str

    def __str__(self) -> str:
        return f"{self.path} (group {self.group or self.gid}, mode {self.mode:04o})"

    @property
    def by_group(self) -> bool:
        """Whether its group may do with it what others may not."""
        return bool(self.mode >> 3 & _READ_WRITE & ~self.mode) and self.gid not in (_ROOT, _UNMAPPED)

    @property
    def closed(self) -> bool:
        """Whether only root may use it."""
        bits = self.mode | (self.mode >> 3 if self.by_group else 0)
        return bits & _READ_WRITE != _READ_WRITE

    @property
    def needed(self) -> bool:
        """Whether CUDA opens it; MIG's are for root by default, and those of profilers and displays may be."""
        return self.path in CONTROL_NODES or re.fullmatch(rf"{NODE_PREFIX}\d+", self.path) is not None


def look(prefix: str = NODE_PREFIX) -> list[Node]:
    """The nodes of this machine, those in folders such as nvidia-caps as well."""
    found = Path(prefix).parent.glob(f"{Path(prefix).name}*")
    paths = [path for one in found for path in (one.iterdir() if one.is_dir() else [one])]
    nodes = []
    for path in sorted(paths):
        try:
            seen = path.stat()
        except OSError:
            # A node may go while the driver is taken out.
            continue
        if stat.S_ISCHR(seen.st_mode):
            nodes.append(Node(str(path), stat.S_IMODE(seen.st_mode), seen.st_gid, _name(seen.st_gid)))
    return nodes


def _name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def groups(nodes: Sequence[Node]) -> Mapping[str, int]:
    """The groups to give, by name."""
    return {node.group: node.gid for node in sorted(nodes, key=lambda one: one.group) if node.by_group and node.group}


def check(nodes: Sequence[Node]) -> Check | None:
    """Whether the service's user will get at them; None where there are none, which others judge."""
    if not nodes:
        return None
    identity, expected = "service.nodes", "device nodes that everybody may use, or a group that has a name here"
    source = "systemd.exec(5), SupplementaryGroups="
    gid = next((node.gid for node in nodes if node.by_group and not node.group), None)
    if gid is not None:
        concerned = ", ".join(str(node) for node in nodes if node.by_group and node.gid == gid)
        found = f"{concerned}: no group of this machine has the id {gid}, so that the service cannot be given it"
        return Check(identity, FAIL, expected, found, f"groupadd --gid {gid} nvidia", source)
    closed = [node for node in nodes if node.closed and node.needed]
    if closed:
        fix = "give them a group or mode 0666 (role lxc_gpu sets gid and mode of a node inside the container)"
        return Check(identity, WARN, expected, f"{', '.join(map(str, closed))}: only root may use them", fix, source)
    given = ", ".join(groups(nodes))
    return Check(
        identity, PASS, expected, f"{len(nodes)} nodes, {f'the unit gets {given}' if given else 'open to all'}"
    )
