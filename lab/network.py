# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's bridge, its way out, and its separation from other labs."""

from __future__ import annotations

import json
import shutil
from ipaddress import IPv4Network
from pathlib import Path
from string import Template
from typing import Any

from lab.instance import POOL, Lab, locked, other_labs
from lab.machine import remove_tree
from lab.process import FILES, LabError, run

_IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
# One switch for all labs. Its value from before the first one is kept here: gone after a reboot, as the switch is.
_RUN = Path("/run/gpuserve-lab")
_SAVED = _RUN / "ip_forward"
_LOCK = Path("/run/gpuserve-lab.lock")


def is_up(lab: Lab) -> bool:
    return Path("/sys/class/net", lab.bridge).is_dir()


def collision(lab: Lab, routes: list[dict[str, Any]], labs: list[Lab]) -> str | None:
    """What else has the lab's addresses: one line, or None. `routes` as from `ip -json route`."""
    for other in labs:
        if other.network == lab.network:
            return f"lab '{other.id}' has the same network, {lab.network}"
    for route in routes:
        if route["dst"] == "default" or route.get("dev") == lab.bridge:
            continue
        taken = IPv4Network(route["dst"])
        # A route to the whole pool (10.0.0.0/8, say) is met by every id: ours is then the more specific one.
        if taken.overlaps(lab.network) and not taken.supernet_of(POOL):
            device = route.get("dev", "?")
            return f"this machine already has a route to {taken} (dev {device}), and the lab needs {lab.network}"
    return None


def exists(lab: Lab) -> bool:
    """Whether any part of it is there."""
    return is_up(lab) or lab.table in _tables()


def _tables() -> list[str]:
    if not shutil.which("nft"):
        return []
    return run(["nft", "list", "tables", "ip"]).stdout.split()


def up(lab: Lab) -> None:
    """Make the network unless it is there. LabError if something else has its addresses."""
    with locked(_LOCK):
        routes = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all", "type", "unicast"]).stdout)
        if clash := collision(lab, routes, other_labs(lab)):
            raise LabError(f"lab '{lab.id}': {clash}; choose another id (--id or GPUSERVE_LAB)")
        if not _SAVED.exists():
            _RUN.mkdir(exist_ok=True)
            _SAVED.write_text(_IP_FORWARD.read_text())
        _IP_FORWARD.write_text("1\n")
        if not is_up(lab):
            run(["ip", "link", "add", lab.bridge, "type", "bridge"])
        run(["ip", "address", "replace", f"{lab.gateway}/{lab.network.prefixlen}", "dev", lab.bridge])
        run(["ip", "link", "set", lab.bridge, "up"])
        run(["nft", "-f", "-"], stdin=f"table ip {lab.table}\ndelete table ip {lab.table}\n{ruleset(lab)}")


def ruleset(lab: Lab) -> str:
    template = Template((FILES / "templates/nft.conf").read_text())
    return template.substitute(table=lab.table, bridge=lab.bridge, network=lab.network, pool=POOL)


def down(lab: Lab) -> None:
    """Remove it, as far as it is there; the last lab restores ip_forward. To be called before the lab's state goes."""
    with locked(_LOCK):
        if is_up(lab):
            run(["ip", "link", "delete", lab.bridge])
        if lab.table in _tables():
            run(["nft", "delete", "table", "ip", lab.table])
        if _SAVED.exists() and not any(is_up(other) for other in other_labs(lab)):
            _IP_FORWARD.write_text(_SAVED.read_text())
            remove_tree(_RUN)
