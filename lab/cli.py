# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from lab import hosts, machine, network
from lab.images import RELEASE, SUITES, images
from lab.instance import STATE_ROOT, Lab, Mount, Record, locked
from lab.inventory import inventory
from lab.process import LabError


def check() -> int:
    """Whether this machine can run a lab: status 3 and a line for each missing thing if not."""
    if lines := machine.missing(machine.gather()):
        for line in lines:
            print(line, file=sys.stderr)
        return 3
    return 0


def up(lab: Lab, wanted: Sequence[Mount] | None) -> None:
    """Make the lab, and start it."""
    record = Record.load(lab)
    mounts = tuple(wanted) if wanted is not None else record.mounts if record else ()
    if record and mounts != record.mounts:
        had = " ".join(f"--mount {mount}" for mount in record.mounts) or "no mounts"
        raise LabError(
            f"lab '{lab.id}' exists with {had}; run `python3 -m lab down --id {lab.id}` before making it anew"
        )
    if record and is_up(lab, record):
        hosts.start_ct(lab)
        print(f"lab '{lab.id}' is up")
        return
    machine.require()
    machine.install_packages()
    lab.state.mkdir(parents=True, exist_ok=True)
    lab.state.chmod(0o700)
    # First, as it is where an id can turn out to be taken.
    network.up(lab)
    paths = record.images if record else {name: str(image.ensure()) for name, image in images().items()}
    if gone := [path for path in paths.values() if not Path(path).is_dir()]:
        raise LabError(f"lab '{lab.id}' was made on {gone[0]}, which is gone; run `python3 -m lab down --id {lab.id}`")
    Record(mounts, paths, ready=False).save(lab)
    if not hosts.running(lab):
        hosts.prepare(lab, paths, mounts)
    hosts.start_pve(lab)
    Record(mounts, paths, ready=True).save(lab)
    hosts.start_ct(lab)
    print(f"lab '{lab.id}' is up: " + ", ".join(f"{name} {address}" for name, address in lab.hosts.items()))


def down(lab: Lab) -> None:
    """Remove every trace of the lab."""
    if not (lab.state.exists() or network.exists(lab)):
        print(f"lab '{lab.id}' is not there")
        return
    hosts.close_connections(lab)
    hosts.kill(lab)
    network.down(lab)
    machine.remove_cgroups(lab)
    machine.remove_tree(lab.state)
    print(f"lab '{lab.id}' is gone")


def reboot(lab: Lab) -> None:
    """Shut the Proxmox host down and start it again."""
    require_up(lab)
    hosts.close_connections(lab)
    hosts.stop(lab)
    hosts.start_pve(lab)
    hosts.start_ct(lab)


def clone(lab: Lab, vmid: int, release: int, *, unprivileged: bool) -> None:
    """Make a further container, stopped."""
    require_up(lab)
    image = None if release == RELEASE else str(images(release)["base"].ensure())
    hosts.clone(lab, vmid, image, unprivileged=unprivileged)
    print(f"lab '{lab.id}' has CT {vmid}: `pct start {vmid}` on pve starts it")


def is_up(lab: Lab, record: Record) -> bool:
    """Whether the Proxmox host has been reached and still runs: CT 200 is the playbook's to look after."""
    return record.ready and network.is_up(lab) and hosts.running(lab)


def require_up(lab: Lab) -> Record:
    record = Record.load(lab)
    if record is None or not is_up(lab, record):
        raise LabError(f"lab '{lab.id}' is not up: run `make sandbox`")
    return record


def status(lab: Lab) -> None:
    record = require_up(lab)
    print(f"lab '{lab.id}' is up; state in {lab.state}")
    for name, address in lab.hosts.items():
        print(f"  {name:<6} {address}  ssh -i {lab.key} -o UserKnownHostsFile={lab.known_hosts} root@{address}")
    for mount in record.mounts:
        in_ct = "" if mount.pve_alone else f"{mount.target} (ct200), "
        print(f"  mount  {mount.source} -> {in_ct}{mount.on_pve} (pve)")


def execute(lab: Lab, host: str, command: Sequence[str]) -> int:
    require_up(lab)
    if not command:
        raise LabError("exec: no command; use `python3 -m lab exec HOST -- COMMAND`")
    return subprocess.run(hosts.host_command(lab, host, command)).returncode


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python3 -m lab", description="A Proxmox-like host and CT 200 on this machine.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, description=summary)
        made.add_argument("--id", default=Lab.default(), help="which lab (default: $GPUSERVE_LAB or demo)")
        return made

    commands.add_parser("check", help="whether this machine can run a lab (status 3 if not)")
    command("up", "make the lab and start it").add_argument(
        "--mount",
        action="append",
        metavar="HOSTDIR:[pve:]DIR",
        help="a folder to show CT 200 (with pve: its host alone), read-only; may be repeated",
    )
    command("down", "remove every trace of the lab")
    command("reboot", "restart the Proxmox host, as its operator would")
    another = command("clone", "make another container beside CT 200, and leave it stopped")
    another.add_argument("vmid", type=int, metavar="VMID", help="its id, which is the last number of its address too")
    another.add_argument("--unprivileged", action="store_true", help="in a user namespace of its own")
    another.add_argument(
        "--debian", type=int, choices=tuple(SUITES), default=RELEASE, help=f"its release (default: {RELEASE})"
    )
    command("status", "say what is up")
    shell = command("shell", "a shell on one of the hosts")
    shell.add_argument("host", nargs="?", default="ct200", choices=("pve", "ct200"))
    run = command("exec", "run a command on one of the hosts")
    run.add_argument("host", choices=("pve", "ct200"))
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    listing = command("inventory", "Ansible's dynamic inventory")
    listing.add_argument("--list", action="store_true", required=True)
    return top


def dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "check":
        return check()
    lab = Lab(arguments.id)
    if arguments.command in ("up", "down", "reboot", "clone"):
        return change(lab, arguments)
    if arguments.command == "shell":
        return execute(lab, arguments.host, ["sh", "-c", "cd && exec bash --login"])
    if arguments.command == "exec":
        words = arguments.words
        return execute(lab, arguments.host, words[1:] if words[:1] == ["--"] else words)
    if arguments.command == "status":
        status(lab)
    else:
        require_up(lab)
        print(json.dumps(inventory(lab), indent=2))
    return 0


def change(lab: Lab, arguments: argparse.Namespace) -> int:
    """The commands that change a lab, one at a time."""
    machine.require_root()
    # Folders made here show in the hosts' overlays.
    os.umask(0o022)
    try:
        with locked(lab.lock_file):
            if arguments.command == "up":
                up(lab, None if arguments.mount is None else [Mount.parse(text) for text in arguments.mount])
            elif arguments.command == "down":
                down(lab)
            elif arguments.command == "clone":
                clone(lab, arguments.vmid, arguments.debian, unprivileged=arguments.unprivileged)
            else:
                reboot(lab)
    except KeyboardInterrupt:
        print(f"run `python3 -m lab down --id {lab.id}` to remove what there is", file=sys.stderr)
        raise
    with suppress(OSError):
        # Refused unless this was the last lab.
        STATE_ROOT.rmdir()
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    # An end asked for by a supervisor cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return dispatch(parser().parse_args())
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        print(f"error: {error.filename}: permission denied; the lab needs root", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
