# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Proxmox host `pve` and its containers, CT 200 above all: their files, their start, their end."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from string import Template

from lab.instance import CLONES, VMID, Lab, Mount
from lab.machine import with_cgroup2
from lab.process import FILES, LabError, run

_CT = f"ct{VMID}"
_ANSWER_TIMEOUT = 120.0
_BOOTED = "timeout 60 systemctl is-system-running --wait"
_FAILED = "systemctl --failed --plain --no-legend"
_SSH_FAILED = 255
# Character devices as an NVIDIA driver of release 550 or newer registers them; uvm's and caps' numbers are dynamic.
_NVIDIA_DEVICES = (
    (195, "nvidia"),
    (195, "nvidia-modeset"),
    (195, "nvidiactl"),
    (508, "nvidia-caps"),
    (511, "nvidia-uvm"),
)


def install_tree(source: Path, target: Path) -> None:
    """Copy files, whatever this checkout's umask was: 0755 for what is executable, 0644 for the rest."""
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            executable = os.access(path, os.X_OK)
            install(target, path.relative_to(source), path.read_text(), 0o755 if executable else 0o644)


def install(root: Path, name: Path | str, text: str, mode: int = 0o644) -> None:
    """Write a file below `root`, anew: a link that a host made of it is not followed."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    path.chmod(mode)


def install_once(root: Path, name: str, text: str, mode: int = 0o644) -> None:
    """As `install`, unless it is there: from its first boot on the file is the host's."""
    if not (root / name).exists():
        install(root, name, text, mode)


def symlink(path: Path, target: str) -> None:
    if not path.is_symlink():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def prepare(lab: Lab, images: dict[str, str], mounts: Sequence[Mount]) -> None:
    """Everything that the hosts find on their disks at their first boot, and what they are told at each."""
    deltas = {"pve": lab.pve_delta, _CT: lab.guest_delta(VMID)}
    for folder in (lab.lxc_path, lab.guests, lab.ssh, lab.control):
        folder.mkdir(parents=True, exist_ok=True)
    _make_key(lab.key, f"root@{lab.container}")
    known = [f"{lab.hosts[name]} {_furnish(lab, name, lab.hosts[name], delta)}" for name, delta in deltas.items()]
    lab.known_hosts.write_text("".join(known))
    install_tree(FILES / "pve", lab.pve_delta)
    install_tree(FILES / "pvelab", lab.pve_delta / "usr/lib/gpuserve-lab/pvelab")
    values = template_values(lab, images)
    install_once(lab.pve_delta, "etc/network/interfaces", _fill("interfaces", values))
    install(lab.pve_delta, "etc/gpuserve-lab/devices", proc_devices(Path("/proc/devices").read_text()))
    install(lab.pve_delta, "usr/lib/gpuserve-lab/hub.py", (FILES.parent / "hub.py").read_text())
    for unit in ("lab-hub.service", "pve-guests.service"):
        symlink(lab.pve_delta / "etc/systemd/system/multi-user.target.wants" / unit, f"../{unit}")
    (lab.pve_delta / "etc/pve/nodes/pve/qemu-server").mkdir(parents=True, exist_ok=True)
    shown = [mount for mount in mounts if not mount.pve_alone]
    lines = [f"mp{n}: {mount.on_pve},mp={mount.target},ro=1\n" for n, mount in enumerate(shown)]
    guest = guest_config(lab, VMID, unprivileged=False) + "".join(lines)
    install_once(lab.pve_delta, f"etc/pve/nodes/pve/lxc/{VMID}.conf", guest, 0o640)
    for kind in ("lxc", "qemu-server"):
        symlink(lab.pve_delta / "etc/pve" / kind, f"nodes/pve/{kind}")
    (lab.pve_delta.parent / "config").write_text(_fill("outer.conf", values) + _mount_entries(mounts))


def _furnish(lab: Lab, name: str, address: IPv4Address, root: Path) -> str:
    """What makes a host of an image: its name, its resolver, its ssh keys. Returns the public host key."""
    root.mkdir(parents=True, exist_ok=True)
    host_key = lab.ssh / f"{name}_host_key"
    _make_key(host_key, f"root@{name}")
    host_public = host_key.with_suffix(".pub").read_text()
    install_tree(FILES / "common", root)
    install_once(root, "etc/hostname", f"{name}\n")
    install_once(root, "etc/hosts", _hosts_file(lab, name, address))
    install(root, "etc/resolv.conf", resolver(Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")))
    install(root, "etc/ssh/ssh_host_ed25519_key", host_key.read_text(), 0o600)
    install(root, "etc/ssh/ssh_host_ed25519_key.pub", host_public)
    install(root, "root/.ssh/authorized_keys", lab.key.with_suffix(".pub").read_text(), 0o600)
    for private in ("root", "root/.ssh"):
        (root / private).chmod(0o700)
    return host_public


def guest_config(lab: Lab, vmid: int, *, unprivileged: bool) -> str:
    """A container's configuration as it is before any playbook."""
    address = lab.guest_address(vmid)
    values = {
        "vmid": str(vmid),
        "gateway": str(lab.gateway),
        "prefix": str(lab.network.prefixlen),
        "address": str(address),
        "hwaddr": lab.hwaddr(address),
        "unprivileged": "1" if unprivileged else "0",
    }
    return _fill("guest.conf", values)


def clone(lab: Lab, vmid: int, image: str | None, *, unprivileged: bool) -> None:
    """Make another container, stopped: CT 200 as it was made, without its mounts. `image`: of another release."""
    if vmid not in CLONES:
        raise LabError(f"clone {vmid}: expected an id from {CLONES[0]} to {CLONES[-1]}")
    path = f"/etc/pve/lxc/{vmid}.conf"
    if run(pve_command(lab, ["test", "-e", path]), check=False).returncode == 0:
        raise LabError(f"clone {vmid}: lab '{lab.id}' has a CT {vmid} already; choose another id")
    root = lab.guest_delta(vmid)
    if image:
        root = lab.guest_rootfs(vmid)
        root.parent.mkdir(parents=True, exist_ok=True)
        run(["cp", "-a", "--no-target-directory", image, str(root)])
    _furnish(lab, f"ct{vmid}", lab.guest_address(vmid), root)
    # The host runs: its files are changed by itself alone. Last, since with it the container is there.
    run(
        pve_command(lab, ["sh", "-c", 'umask 027; cat > "$1"', "sh", path]),
        stdin=guest_config(lab, vmid, unprivileged=unprivileged),
    )


def template_values(lab: Lab, images: dict[str, str]) -> dict[str, str]:
    return {
        "pve_image": images["pvebase"],
        "ct_image": images["base"],
        "pve_delta": str(lab.pve_delta),
        "guests": str(lab.guests),
        "bridge": lab.bridge,
        "log": str(lab.log),
        "gateway": str(lab.gateway),
        "prefix": str(lab.network.prefixlen),
        "pve_address": str(lab.pve_address),
        "pve_hwaddr": lab.hwaddr(lab.pve_address),
    }


def _fill(template: str, values: dict[str, str]) -> str:
    return Template((FILES / "templates" / template).read_text()).substitute(values)


def _mount_entries(mounts: Sequence[Mount]) -> str:
    return "".join(
        f"lxc.mount.entry = {mount.source} {mount.on_pve.lstrip('/')} none rbind,ro,create=dir 0 0\n"
        for mount in mounts
    )


def _make_key(path: Path, comment: str) -> None:
    if not path.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def _hosts_file(lab: Lab, own: str, own_address: IPv4Address) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", f"{own_address} {own}"]
    lines += [f"{address} {name}" for name, address in lab.hosts.items() if name != own]
    return "\n".join(lines) + "\n"


def resolver(configured: Path, upstream: Path) -> str:
    """This machine's resolver for the hosts: a stub on its loopback is no use to them, its upstream is."""
    text = configured.read_text() if configured.exists() else ""
    if not re.search(r"^nameserver\s+(127\.|::1)", text, re.MULTILINE):
        return text
    if upstream.exists():
        return upstream.read_text()
    print(f"note: {configured} names a server on this machine's loopback; the lab's hosts cannot resolve names with it")
    return text


def proc_devices(real: str) -> str:
    """/proc/devices of this machine with the NVIDIA driver's lines, in the kernel's order."""
    characters, separator, blocks = real.partition("\nBlock devices:")
    head, *lines = characters.rstrip("\n").splitlines()
    # A driver that this machine has itself is not the lab's.
    entries = [(int(line.split(None, 1)[0]), line) for line in lines if "nvidia" not in line]
    entries += [(major, f"{major:3d} {name}") for major, name in _NVIDIA_DEVICES]
    ordered = [line for _, line in sorted(entries, key=lambda entry: entry[0])]
    return "\n".join([head, *ordered]) + "\n" + (separator and f"{separator}{blocks}")


def running(lab: Lab) -> bool:
    try:
        done = subprocess.run([*_tool(lab, "info"), "-s", "-H"], capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return done.stdout.strip() not in ("", "STOPPED")


def start_pve(lab: Lab) -> None:
    """Start the Proxmox host unless it runs. Returns once it has booted, its guests started with it, and answers."""
    if not running(lab):
        done = run(with_cgroup2([*_tool(lab, "start"), "-d"]), check=False)
        if done.returncode != 0:
            raise LabError(f"pve does not start: {done.stderr.strip()}\nsee {lab.log}")
    wait_booted(lab, "pve")


def start_ct(lab: Lab) -> None:
    """Start CT 200 unless its host has done so. Returns once it answers."""
    if run(pve_command(lab, ["pct", "status", str(VMID)])).stdout.strip() != "status: running":
        done = run(pve_command(lab, ["pct", "start", str(VMID)]), check=False)
        if done.returncode != 0:
            raise LabError(
                f"CT {VMID} does not start: {done.stderr.strip()}\n"
                f"pve is up: see /var/lib/lxc/{VMID}/lxc.log there (`python3 -m lab shell pve --id {lab.id}`)"
            )
    wait_booted(lab, _CT)


def wait_booted(lab: Lab, name: str) -> None:
    """Wait until the host is reached as Ansible reaches it, and then, for a while, until all its units have started."""
    deadline = time.monotonic() + _ANSWER_TIMEOUT
    command = ssh_command(lab, lab.hosts[name], f"{_BOOTED} || {_FAILED}")
    while True:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != _SSH_FAILED:
            break
        if time.monotonic() > deadline:
            where = f"{name} ({lab.hosts[name]})"
            raise LabError(f"{where} did not answer in {_ANSWER_TIMEOUT:.0f} s: {done.stderr.strip()}; see {lab.log}")
        time.sleep(0.1)
    state, *units = done.stdout.splitlines() or ["still starting"]
    if state != "running":
        print(f"{name} answers, but is {state}" + "".join(f"\n  {unit.strip()}" for unit in units), flush=True)


def ssh_command(lab: Lab, address: IPv4Address, script: str) -> list[str]:
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=2", "-o", "LogLevel=ERROR", "-i", str(lab.key)]
    return ["ssh", *options, *lab.ssh_options, f"root@{address}", script]


def pve_command(lab: Lab, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` on the Proxmox host, whatever became of its network."""
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    keep = ["--keep-var", "TERM"] if "TERM" in os.environ else []
    return [*_tool(lab, "attach"), "--clear-env", *keep, "--set-var", path, "--set-var", "HOME=/root", "--", *command]


def host_command(lab: Lab, name: str, command: Sequence[str]) -> list[str]:
    if name == "pve":
        return pve_command(lab, command)
    return pve_command(lab, ["pct", "exec", str(VMID), "--", *command])


def stop(lab: Lab) -> None:
    """Shut the Proxmox host down, as its power button would."""
    if running(lab):
        run([*_tool(lab, "stop"), "--timeout", "90"])


def kill(lab: Lab) -> None:
    """End both at once; with the host's processes go its guest's."""
    if running(lab):
        run([*_tool(lab, "stop"), "--kill"])


def close_connections(lab: Lab) -> None:
    """End the ssh connections that Ansible keeps open."""
    for socket in lab.control.glob("*") if lab.control.is_dir() else ():
        subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "lab"], capture_output=True)


def _tool(lab: Lab, name: str) -> list[str]:
    return [f"lxc-{name}", "-P", str(lab.lxc_path), "-n", lab.container]
