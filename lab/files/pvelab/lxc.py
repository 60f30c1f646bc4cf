# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LXC's view of a container: its configuration, made at each start as Proxmox VE does, and LXC's own commands.

Source: pve-container 5.2 (Proxmox VE 8.4), PVE::LXC::update_lxc_config and src/lxc-pve-prestart-hook.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .config import Device, PveError, device, parse_dev, properties

LXC = Path("/var/lib/lxc")
# Storage `local`: each container's volume is what it changed on the image of CT 200, or a whole root file system.
_VOLUME = re.compile(r"local:subvol-(\d+)-disk-\d+")
_IMAGE = "/opt/ct-image"
_IDMAP_START = 100000


@dataclass(frozen=True)
class Node:
    """A device node to be made for a container: where it appears in there, and how."""

    target: str
    device: Device
    mode: int
    uid: int
    gid: int


def render(
    vmid: str, options: dict[str, str], raw: Sequence[tuple[str, str]], look: Callable[[str], Device] = device
) -> tuple[list[str], list[Node]]:
    """The lines of LXC's configuration, and the nodes that they bind. PveError if a device is missing."""
    folder = LXC / vmid
    unprivileged = options.get("unprivileged") == "1"
    shift = _IDMAP_START if unprivileged else 0
    lines = ["lxc.include = /usr/share/lxc/config/common.conf", "lxc.apparmor.profile = unconfined"]
    if unprivileged:
        # Here the device policy is allow-all: a node's owner and mode, seen through the id map, are what counts.
        lines += ["lxc.include = /usr/share/lxc/config/userns.conf", "lxc.mount.auto = sys:mixed"]
        lines += ["lxc.cgroup2.devices.allow = a"]
        lines += [f"lxc.idmap = {kind} 0 {shift} 65536" for kind in "ug"]
        lines += ["lxc.rootfs.options = idmap=container"]
    lines += [f"lxc.uts.name = {options.get('hostname', f'CT{vmid}')}", f"lxc.rootfs.path = {_rootfs(vmid, options)}"]
    lines += [f"lxc.log.file = {folder}/lxc.log", "lxc.log.level = INFO"]
    nodes = []
    for key, value in sorted(options.items()):
        if match := re.fullmatch(r"net(\d+)", key):
            lines += _net(vmid, match[1], properties(value, "name"))
        elif re.fullmatch(r"mp\d+", key):
            mount = properties(value, "volume")
            access = "ro" if mount.get("ro") == "1" else "rw"
            lines.append(
                f"lxc.mount.entry = {mount['volume']} {mount['mp'].lstrip('/')} none rbind,{access},create=dir 0 0"
            )
        elif re.fullmatch(r"dev\d+", key):
            dev = parse_dev(key, value)
            found = look(dev["path"])
            number = f"{found.kind} {found.major}:{found.minor}"
            lines.append(f"lxc.cgroup2.devices.allow = {number} {'r' if dev.get('deny-write') == '1' else 'rw'}")
            target = dev["path"].lstrip("/")
            lines.append(f"lxc.mount.entry = {folder}/passthrough/{target} {target} none bind,create=file 0 0")
            owner = (shift + int(dev.get(name, "0")) for name in ("uid", "gid"))
            nodes.append(Node(target, found, int(dev.get("mode", "0660"), 8), *owner))
    lines += [f"{key} = {value}" for key, value in raw]
    return lines, nodes


def _rootfs(vmid: str, options: dict[str, str]) -> str:
    volume = properties(options.get("rootfs", ""), "volume")["volume"]
    if not volume:
        raise PveError("missing 'rootfs' configuration")
    match = _VOLUME.fullmatch(volume)
    if not match or match[1] != vmid:
        raise PveError(f"unable to parse volume ID '{volume}'")
    whole = LXC / vmid / "rootfs"
    if options.get("unprivileged") == "1" or whole.is_dir():
        return f"dir:{whole}"
    return f"overlay:{_IMAGE}:{LXC / vmid / 'delta'}"


def _net(vmid: str, index: str, net: dict[str, str]) -> list[str]:
    entries = {
        "type": "veth",
        "veth.pair": f"veth{vmid}i{index}",
        "link": net["bridge"],
        "flags": "up",
        "name": net["name"],
        "hwaddr": net.get("hwaddr"),
        "ipv4.address": net.get("ip"),
        "ipv4.gateway": net.get("gw"),
    }
    return [f"lxc.net.{index}.{key} = {value}" for key, value in entries.items() if value]


def start(vmid: str, options: dict[str, str], raw: Sequence[tuple[str, str]]) -> None:
    lines, nodes = render(vmid, options, raw)
    folder = LXC / vmid
    (folder / "delta").mkdir(parents=True, exist_ok=True)
    if options.get("unprivileged") == "1":
        make_copy(folder / "rootfs", folder / "delta")
    make_nodes(folder / "passthrough", nodes)
    (folder / "config").write_text("\n".join(lines) + "\n")
    done = subprocess.run([*_tool("start", vmid), "-d"], capture_output=True, text=True)
    if done.returncode != 0:
        raise PveError(f"{done.stderr.strip()}\nstartup for container '{vmid}' failed")


def make_copy(rootfs: Path, delta: Path) -> None:
    """A whole root file system for an unprivileged container: LXC maps no owners on an overlay."""
    if not rootfs.exists():
        partial = rootfs.with_suffix(".partial")
        subprocess.run(["rm", "-rf", partial], check=True)
        subprocess.run(["cp", "-a", _IMAGE, partial], check=True)
        subprocess.run(["cp", "-a", f"{delta}/.", partial], check=True)
        partial.rename(rootfs)


def make_nodes(folder: Path, nodes: Sequence[Node]) -> None:
    """Make `nodes`, and them alone, in a file system of their own: not on every one may devices be opened."""
    while os.path.ismount(folder):
        subprocess.run(["umount", folder], check=True)
    if not nodes:
        return
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755,size=64k", "none", folder], check=True)
    for node in nodes:
        path = folder / node.target
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = stat.S_IFCHR if node.device.kind == "c" else stat.S_IFBLK
        os.mknod(path, kind | node.mode, os.makedev(node.device.major, node.device.minor))
        path.chmod(node.mode)
        os.chown(path, node.uid, node.gid)


def running(vmid: str) -> bool:
    done = subprocess.run([*_tool("info", vmid), "-s", "-H"], capture_output=True, text=True)
    return done.stdout.strip() not in ("", "STOPPED")


def stop(vmid: str, *arguments: str) -> None:
    done = subprocess.run([*_tool("stop", vmid), *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise PveError(f"{done.stderr.strip()}\ncontainer did not stop")


def attach(vmid: str, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` in the container."""
    return [*_tool("attach", vmid), "--keep-env", "--", *command]


def _tool(name: str, vmid: str) -> list[str]:
    return [f"lxc-{name}", "-P", str(LXC), "-n", vmid]
