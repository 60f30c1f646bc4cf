# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pct`: the part of Proxmox VE's command that a deployment uses.

Source of words and exit statuses: pve-container 5.2 (Proxmox VE 8.4), PVE::CLI::pct and PVE::API2::LXC.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import lxc
from .config import GuestConfig, PveError, path_of, vmids


def load(vmid: str) -> GuestConfig:
    config = GuestConfig.parse(vmid, path_of("lxc", vmid).read_text())
    for warning in config.warnings:
        print(warning, file=sys.stderr)
    return config


def save(vmid: str, config: GuestConfig) -> None:
    path = path_of("lxc", vmid)
    partial = path.with_suffix(".tmp")
    partial.write_text(config.format())
    partial.replace(path)


def check_lock(config: GuestConfig) -> None:
    if lock := config.current.options.get("lock"):
        raise PveError(f"CT is locked ({lock})")


def require_running(vmid: str, *, wanted: bool) -> None:
    """PveError if the container runs and should not, or the other way round."""
    if lxc.running(vmid) != wanted:
        raise PveError(f"CT {vmid} not running" if wanted else f"CT {vmid} already running")


def options_of(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Positional arguments, and options in each of the forms --a b, --a=b, -a b."""
    positional = []
    options = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        match = re.fullmatch(r"--?([a-z][a-z0-9-]*)(?:=(.*))?", word, re.DOTALL)
        if not match:
            positional.append(word)
        elif match[2] is not None:
            options[match[1]] = match[2]
        elif words and not words[0].startswith("--"):
            options[match[1]] = words.pop(0)
        else:
            options[match[1]] = "1"
    return positional, options


def one_vmid(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    positional, options = options_of(arguments)
    if not positional:
        raise PveError("400 not enough arguments")
    if len(positional) > 1:
        raise PveError("400 too many arguments")
    return positional[0], options


def pct_list(_arguments: Sequence[str]) -> None:
    ids = vmids("lxc")
    if not ids:
        return
    row = "{:<10} {:<10} {:<12} {:<20}".format
    print(row("VMID", "Status", "Lock", "Name"))
    for vmid in ids:
        options = load(vmid).current.options
        status = "running" if lxc.running(vmid) else "stopped"
        print(row(vmid, status, options.get("lock", ""), options.get("hostname", f"CT{vmid}")))


def pct_config(arguments: Sequence[str]) -> None:
    vmid, options = one_vmid(arguments)
    config = load(vmid)
    shown = config.current.options if options.get("current") == "1" else config.after_start()
    for key, value in sorted(shown.items()):
        print(f"{key}: {value}")
    for key, value in config.current.lxc:
        print(f"{key}: {value}")


def pct_pending(arguments: Sequence[str]) -> None:
    vmid, _ = one_vmid(arguments)
    config = load(vmid)
    now, then = config.current.options, config.after_start()
    for key in sorted({*now, *then}):
        if key in now:
            print(f"{'del' if key not in then else 'cur'} {key}: {now[key]}")
        if key in then and then[key] != now.get(key):
            print(f"new {key}: {then[key]}")


def pct_status(arguments: Sequence[str]) -> None:
    vmid, _ = one_vmid(arguments)
    load(vmid)
    print("status:", "running" if lxc.running(vmid) else "stopped")


def _start(vmid: str) -> None:
    config = load(vmid)
    if config.pending.options:
        config.apply_pending()
        save(vmid, config)
    lxc.start(vmid, config.current.options, config.current.lxc)


def pct_start(arguments: Sequence[str]) -> None:
    vmid, _ = one_vmid(arguments)
    config = load(vmid)
    require_running(vmid, wanted=False)
    check_lock(config)
    _start(vmid)


def pct_stop(arguments: Sequence[str]) -> None:
    vmid, _ = one_vmid(arguments)
    config = load(vmid)
    require_running(vmid, wanted=True)
    check_lock(config)
    lxc.stop(vmid, "--kill")


def pct_shutdown(arguments: Sequence[str]) -> None:
    vmid, options = one_vmid(arguments)
    config = load(vmid)
    require_running(vmid, wanted=True)
    check_lock(config)
    force = [] if options.get("forceStop") == "1" else ["--nokill"]
    lxc.stop(vmid, *force, "--timeout", options.get("timeout", "60"))


def pct_reboot(arguments: Sequence[str]) -> None:
    vmid, options = one_vmid(arguments)
    load(vmid)
    if not lxc.running(vmid):
        raise PveError(f"VM {vmid} not running")
    lxc.stop(vmid, "--timeout", options.get("timeout", "60"))
    _start(vmid)


def pct_exec(arguments: Sequence[str]) -> None:
    vmid, command = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    load(vmid)
    while command and re.match(r"-?-keep-env", command[0]):
        command.pop(0)
    if command and command[0] == "--":
        command.pop(0)
    if not lxc.running(vmid):
        raise PveError(f"container '{vmid}' not running!")
    if not command:
        raise PveError("missing command")
    words = lxc.attach(vmid, command)
    os.execvp(words[0], words)


def pct_push(arguments: Sequence[str]) -> None:
    positional, options = options_of(arguments)
    if len(positional) != 3:
        raise PveError("400 not enough arguments" if len(positional) < 3 else "400 too many arguments")
    vmid, source, target = positional
    load(vmid)
    if not lxc.running(vmid):
        raise PveError("can only push files to a running CT")
    if not Path(source).is_file():
        raise PveError(f"failed to open {source} for reading")
    script = 'cat > "$1" && chmod "$2" "$1" && chown "$3:$4" "$1"'
    words = [target, options.get("perms", "0644"), options.get("user", "0"), options.get("group", "0")]
    with Path(source).open("rb") as content:
        done = subprocess.run(
            lxc.attach(vmid, ["sh", "-c", script, "sh", *words]), stdin=content, capture_output=True, text=True
        )
    if done.returncode != 0:
        raise PveError(f"failed to create file: {target}: {done.stderr.strip()}")


def pct_set(arguments: Sequence[str]) -> None:
    vmid, values = one_vmid(arguments)
    if not values:
        raise PveError("no options specified")
    delete = [key for key in re.split(r"[,; ]+", values.pop("delete", "")) if key]
    for key in (*values, *delete):
        if not re.fullmatch(r"[a-z][a-z_]*\d*", key):
            raise PveError(f"Unknown option: {key}\n400 unable to parse option", 255)
    config = load(vmid)
    check_lock(config)
    for warning in config.change(values, delete, running=lxc.running(vmid)):
        print(warning, file=sys.stderr)
    save(vmid, config)


def pct_unlock(arguments: Sequence[str]) -> None:
    vmid, _ = one_vmid(arguments)
    config = load(vmid)
    if "lock" not in config.current.options:
        raise PveError("no lock found trying to remove lock")
    del config.current.options["lock"]
    save(vmid, config)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "config": pct_config,
    "exec": pct_exec,
    "list": pct_list,
    "pending": pct_pending,
    "push": pct_push,
    "reboot": pct_reboot,
    "set": pct_set,
    "shutdown": pct_shutdown,
    "start": pct_start,
    "status": pct_status,
    "stop": pct_stop,
    "unlock": pct_unlock,
}


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("ERROR: no command specified", file=sys.stderr)
        return 255
    if arguments[0] not in COMMANDS:
        print(f"ERROR: unknown command 'pct {arguments[0]}'", file=sys.stderr)
        return 255
    try:
        COMMANDS[arguments[0]](arguments[1:])
    except PveError as error:
        print(error, file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
