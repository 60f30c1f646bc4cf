# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`qm`: the list and the status of virtual machines. None can run here: each is stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .config import GuestConfig, PveError, path_of, properties, vmids


def qm_list() -> None:
    ids = vmids("qemu-server")
    if not ids:
        return
    row = "{:>10} {:<20} {:<10} {:<10} {:>12} {:<10}".format
    print(row("VMID", "NAME", "STATUS", "MEM(MB)", "BOOTDISK(GB)", "PID"))
    for vmid in ids:
        options = GuestConfig.parse(vmid, path_of("qemu-server", vmid).read_text()).current.options
        memory = properties(options.get("memory", "512"), "current")["current"]
        print(row(vmid, options.get("name", f"VM {vmid}"), "stopped", memory, "0.00", "0"))


def main(arguments: Sequence[str]) -> int:
    try:
        if not arguments:
            raise PveError("ERROR: no command specified")
        if arguments[0] == "list":
            qm_list()
        elif arguments[0] == "status" and len(arguments) == 2:
            path_of("qemu-server", arguments[1])
            print("status: stopped")
        else:
            raise PveError(f"ERROR: unknown command 'qm {arguments[0]}'")
    except PveError as error:
        print(error, file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
