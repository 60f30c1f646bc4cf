# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pve-guests.service runs: start the guests that say onboot: 1, shut all down with the host."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import lxc, pct
from .config import PveError, properties, vmids


def start_order(startup: str, vmid: str) -> tuple[int, int]:
    """The place of a guest with this `startup` option: those with an order first, then by id."""
    order = properties(startup, "order").get("order", "") if startup else ""
    return (int(order) if order.isdigit() else sys.maxsize, int(vmid))


def startall() -> int:
    wanted = []
    for vmid in vmids("lxc"):
        options = pct.load(vmid).current.options
        if options.get("onboot") == "1" and not lxc.running(vmid):
            wanted.append((start_order(options.get("startup", ""), vmid), vmid))
    return _each("start", [vmid for _, vmid in sorted(wanted)])


def stopall() -> int:
    return _each("shutdown", [vmid for vmid in reversed(vmids("lxc")) if lxc.running(vmid)])


def _each(command: str, ids: Sequence[str]) -> int:
    failed = 0
    for vmid in ids:
        print(f"{command} CT {vmid}")
        try:
            pct.COMMANDS[command]([vmid])
        except PveError as error:
            # As on Proxmox VE, one guest's failure keeps no other from starting, nor the host from having booted.
            print(f"CT {vmid}: {error}", file=sys.stderr)
            failed += 1
    return failed


def main(arguments: Sequence[str]) -> int:
    {"startall": startall, "stopall": stopall}[arguments[0]]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
