# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is everything there that a grant of GPUs to containers needs, and did it arrive: lists of checks, nothing changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from .config import (
    CGROUP,
    DEV,
    dev_properties,
    dev_value,
    live_length,
    live_options,
    parse_entries,
    pending_conflicts,
    raw_pair,
    split_lines,
)
from .devices import (
    CAPS_FOLDER,
    Cap,
    Device,
    Extras,
    Gpu,
    LxcError,
    choose_gpus,
    control_devices,
    gpu_device,
    missing_drivers,
    node_state,
)
from .host import Guests, State
from .probe import ABSENT, OPENS, Answer, permitted

_SOURCE_LOCK = "pve-container, PVE::LXC::Config, check_lock"
_SOURCE_NODE = "pve-container, PVE::LXC::Tools, get_device_mode_and_rdev: a start dies when a dev<n> node is missing"
_SOURCE_MODE = "pve-container, PVE::LXC::Config: the pattern of mode in dev[n]"
_SOURCE_MKNOD = "mknod(2): CAP_MKNOD counts in the initial user namespace only"
_SOURCE_OPEN = "Linux, devices cgroup: EPERM without a rule; ENXIO where no driver holds the number"


@dataclass(frozen=True)
class Grant:
    """What one container is to get. ``gpus`` is ``all`` or a list; ``mode``, ``uid`` and ``gid`` are the guest's."""

    vmid: str
    gpus: object = "all"
    mode: str = "0666"
    uid: int = 0
    gid: int = 0
    state: str = "present"


def check_guest(grant: Grant, guests: Guests, text: str | None) -> list[Check]:
    """May this id be given a GPU on this node? ``text`` is its Proxmox VE configuration, None where there is none."""
    name = f"lxc_gpu.{grant.vmid}"
    guest = guests.all.get(grant.vmid)
    here = ", ".join(guests.containers_here()) or "none"
    expected = f"a container with id {grant.vmid} on this host"
    if guest is None:
        found = f"no such id; containers here: {here}"
        return [Check(f"{name}.exists", FAIL, expected, found, "correct vmid in lxc_gpu_containers")]
    if guest.kind != "lxc":
        fix = "use a container's id in lxc_gpu_containers; a virtual machine gets GPUs by PCI passthrough"
        return [Check(f"{name}.exists", FAIL, expected, f"a virtual machine; containers here: {here}", fix)]
    if guest.node != guests.node:
        fix = f"run this against node {guest.node}, or correct vmid in lxc_gpu_containers"
        found = f"it is on node {guest.node}; containers here, on {guests.node}: {here}"
        return [Check(f"{name}.exists", FAIL, expected, found, fix)]
    checks = [Check(f"{name}.exists", PASS, expected, guest.path)]
    if text is None:
        return checks
    options = live_options(text)
    lock = options.get("lock", "")
    if lock:
        fix = f"wait until the {lock} has ended; if none runs any more: pct unlock {grant.vmid}"
        checks.append(Check(f"{name}.unlocked", FAIL, "no lock", f"lock: {lock}", fix, _SOURCE_LOCK))
    else:
        checks.append(Check(f"{name}.unlocked", PASS, "no lock", "none", "", _SOURCE_LOCK))
    if options.get("template") == "1":
        fix = "clone the template and name the clone's id in lxc_gpu_containers"
        checks.append(Check(f"{name}.starts", FAIL, "a container that can be started", "a template", fix))
    waiting = pending_conflicts(text)
    if waiting:
        keys = ",".join(line.partition(":")[0] for line in waiting)
        fix = f"drop what waits: pct set {grant.vmid} --revert {keys}; or apply it by a restart of the container"
        found = f"in [pve:pending]: {'; '.join(waiting)}"
        checks.append(Check(f"{name}.pending", FAIL, "no waiting change of the NVIDIA devices", found, fix))
    return checks


def check_owner(grant: Grant, style: str, groups: Mapping[int, str] | None) -> list[Check]:
    """Can mode, uid and gid be what is asked? ``groups`` are the guest's, None while it does not run."""
    name = f"lxc_gpu.{grant.vmid}"
    if not re.fullmatch(r"0[0-7]{3}", grant.mode):
        fix = 'write mode in quotes, as "0666" or "0660": an unquoted one is read as another number'
        return [Check(f"{name}.mode", FAIL, "four octal digits", grant.mode, fix, _SOURCE_MODE)]
    asked = f"mode {grant.mode}, uid {grant.uid}, gid {grant.gid}"
    if style == CGROUP and (grant.mode, grant.uid, grant.gid) != ("0666", 0, 0):
        fix = "use lxc_gpu_style: dev, or drop mode, uid and gid of this vmid"
        found = f"{asked} with style cgroup, whose bind mounts show the host's node with the host's owner"
        return [Check(f"{name}.mode", FAIL, "an owner that can be set", found, fix, "mount(2), MS_BIND")]
    if not grant.gid:
        return []
    expected = f"a group {grant.gid} in the container"
    if groups is None:
        return [Check(f"{name}.gid", SKIPPED, expected, "the container does not run and was not asked")]
    if grant.gid in groups:
        return [Check(f"{name}.gid", PASS, expected, groups[grant.gid])]
    have = ", ".join(f"{group} {gid}" for gid, group in sorted(groups.items()) if group in ("video", "render"))
    fix = f"set gid of this vmid in lxc_gpu_containers to a group of the container ({have or 'see its /etc/group'})"
    return [Check(f"{name}.gid", FAIL, expected, "no such group in there", fix)]


def check_unique(grants: Sequence[Grant]) -> list[Check]:
    """An id named twice would be written twice, each time undoing the other."""
    twice = [vmid for vmid, count in Counter(grant.vmid for grant in grants).items() if count > 1]
    if not twice:
        return []
    fix = "merge the entries of lxc_gpu_containers that have the same vmid"
    return [Check("lxc_gpu.containers", FAIL, "each vmid once", f"twice: {', '.join(twice)}", fix)]


def check_driver(majors: Mapping[str, int], extras: Extras, devices_file: str, required: bool) -> Check:
    """Does the kernel list NVIDIA's majors? Before the driver's own step (``required`` false) they need not be."""
    missing = missing_drivers(majors, extras)
    expected = f"NVIDIA's majors in {devices_file}"
    if not missing:
        told = ", ".join(f"{name} {major}" for name, major in sorted(majors.items()) if name.startswith("nvidia"))
        return Check("lxc_gpu.driver", PASS, expected, told)
    found = f"none of {', '.join(missing)}: the driver is not loaded"
    if not required:
        return Check("lxc_gpu.driver", SKIPPED, expected, f"{found}; the nvidia_driver step comes before lxc_gpu")
    fix = "run the nvidia_driver step first (--tags nvidia_driver), or load it: modprobe nvidia nvidia-uvm"
    return Check("lxc_gpu.driver", FAIL, expected, found, fix)


@dataclass(frozen=True)
class Plan:
    """Which nodes this host has to have, and which of them each container gets."""

    nodes: tuple[Device, ...]
    grants: Mapping[str, tuple[Device, ...]]
    checks: tuple[Check, ...]


def host_nodes(nodes: Sequence[Device], folder: str = "/dev") -> list[str]:
    """All NVIDIA nodes of the host that are there, those that the plan does not know included."""
    known = {device.path for device in nodes if not node_state(device)}
    here = [*Path(folder).glob("nvidia*"), *Path(folder).glob("nvidia-caps/*")]
    return sorted(known | {str(path) for path in here if path.is_char_device()})


def plan(
    grants: Sequence[Grant], gpus: Sequence[Gpu], majors: Mapping[str, int], extras: Extras, caps: Sequence[Cap]
) -> Plan:
    """Turn grants into nodes. The majors of the drivers must be there."""
    control = control_devices(majors, extras, caps)
    nodes = [gpu_device(majors, gpu) for gpu in gpus] + control
    granted: dict[str, tuple[Device, ...]] = {}
    checks = []
    for grant in grants:
        name = f"lxc_gpu.{grant.vmid}.gpus"
        if grant.state == "absent":
            granted[grant.vmid] = ()
            continue
        try:
            chosen = choose_gpus(grant.gpus, gpus)
        except LxcError as error:
            fix = "correct gpus of this vmid in lxc_gpu_containers"
            checks.append(Check(name, FAIL, "GPUs of this host", str(error), fix))
            continue
        if not chosen:
            fix = "look at the driver's log (dmesg | grep NVRM), or declare the GPUs in lxc_gpu_gpus"
            checks.append(Check(name, FAIL, "at least one GPU", "the driver lists none on this host", fix))
            continue
        wanted = [gpu_device(majors, gpu) for gpu in chosen] + control
        granted[grant.vmid] = tuple(
            # Who may open a capability may partition the GPU: the driver's mode for it is not widened.
            replace(
                device,
                mode=device.mode if device.path.startswith(CAPS_FOLDER) else grant.mode,
                uid=grant.uid,
                gid=grant.gid,
            )
            for device in wanted
        )
        told = ", ".join(device.path for device in granted[grant.vmid])
        checks.append(Check(name, PASS, "GPUs of this host", told))
    return Plan(tuple(nodes), granted, tuple(checks))


def check_nodes(nodes: Sequence[Device]) -> list[Check]:
    """Are the host's nodes there with the kernel's numbers? Looked at, never created."""
    checks = []
    for device in nodes:
        wrong = node_state(device)
        name = f"lxc_gpu.node.{device.path}"
        if wrong:
            fix = "systemctl start nvidia-device-nodes.service"
            checks.append(Check(name, WARN, device.numbers, wrong, fix, _SOURCE_NODE))
        else:
            checks.append(Check(name, PASS, device.numbers, device.numbers, "", _SOURCE_NODE))
    return checks


def written_rule(text: str, device: Device, backend: str, style: str, cgroup: str) -> tuple[str, bool]:
    """The rule that gives ``device``, as it is or would be written, and whether the configuration has it."""
    lines = split_lines(text)
    entries = parse_entries(lines, backend, 0, live_length(lines, backend))
    if style == DEV:
        for entry in entries:
            if entry.dev_index is not None and dev_properties(entry.value).get("path") == device.path:
                return f"{entry.key}: {entry.value}", True
        return f"dev<n>: {dev_value(device)}", False
    pair = raw_pair(device, cgroup)
    there = {(entry.key, " ".join(entry.value.split())) for entry in entries}
    missing = [f"{key}: {value}" for key, value in pair if (key, value) not in there]
    if missing:
        return " and ".join(missing), False
    return " and ".join(f"{key}: {value}" for key, value in pair), True


@dataclass(frozen=True)
class Verdict:
    """A check of the proof, and whether a restart of the container is what it lacks."""

    check: Check
    restart: bool = False


def judge_granted(
    vmid: str,
    device: Device,
    answer: Answer,
    rule: tuple[str, bool],
    *,
    own_node: bool,
    unprivileged: bool,
    driver_answers: bool,
) -> Verdict:
    """One granted node, as open(2) answered inside.

    ``rule`` is the rule and whether the configuration has it; ``own_node`` says that the container has a node of its
    own, with the owner and mode that were asked for (style dev), and not the host's; ``driver_answers`` is false where
    no driver is declared to be.
    """
    text, written = rule
    name = f"lxc_gpu.{vmid}.open.{device.path}"
    expected = f"open() succeeds by {text}"

    def fails(found: str, fix: str, restart: bool = False) -> Verdict:
        return Verdict(Check(name, FAIL, expected, found, fix, _SOURCE_OPEN), restart)

    seen = f"c {answer.numbers}, mode {answer.mode}, owner {answer.owner}"
    asked = f"{device.numbers}, mode {device.mode}, owner {device.uid}:{device.gid}"
    if not written:
        return fails(f"{answer.said}; no such rule in the configuration of {vmid}", "run lxc_gpu (--tags lxc_gpu)")
    if answer.numbers and (f"c {answer.numbers}" != device.numbers or (own_node and seen != asked)):
        fix = f"restart container {vmid}: it has a node of an earlier boot or configuration"
        return fails(f"{answer.said}; {seen} instead of {asked}", fix, restart=True)
    if answer.said == OPENS:
        return Verdict(Check(name, PASS, expected, OPENS, "", _SOURCE_OPEN))
    if answer.said == "ENXIO" and not driver_answers:
        found = "ENXIO: permitted; no driver answers, as lxc_gpu_load_modules: false declares"
        return Verdict(Check(name, PASS, expected, found, "", _SOURCE_OPEN))
    if permitted(answer):
        fix = "look at the driver on the host (nvidia-smi there, dmesg | grep NVRM)"
        return fails(f"{answer.said}: permitted, but the driver does not open it", fix)
    if answer.said == "EACCES":
        why = "owner and mode decide in an unprivileged container" if unprivileged else "owner and mode refuse"
        fix = "set lxc_gpu_style to dev, which gives the container a node of its own with mode, uid and gid"
        return fails(f"EACCES: {why}; {seen} in there", fix)
    return fails(answer.said, f"the rule is written but not in force; restart container {vmid}", restart=True)


def judge_denied(vmid: str, path: str, answer: Answer, inside: Answer | None, cover: str) -> Verdict:
    """One node of the host that this container was not given, as open(2) answered under the container's rules.

    ``inside`` is what the container itself says of that path, None where the rules alone decide (a privileged one).
    ``cover`` is the line of its configuration that allows the node, empty where none does.
    """
    name = f"lxc_gpu.{vmid}.refused.{path}"
    expected = "open() is refused (EPERM): it was not granted"
    if answer.said == "EPERM":
        return Verdict(Check(name, PASS, expected, "EPERM", "", _SOURCE_OPEN))
    if inside is not None and inside.said == ABSENT:
        found = "no node in there, and an unprivileged container cannot make one; its device rules allow all"
        return Verdict(Check(name, PASS, "out of reach: it was not granted", found, "", _SOURCE_MKNOD))
    if cover:
        fix = f"remove the line `{cover}` from the configuration of {vmid} and restart the container"
    else:
        fix = f"restart container {vmid}: the rules of an earlier configuration are still in force"
    found = f"{answer.said}: permitted"
    return Verdict(Check(name, FAIL, expected, found, fix, _SOURCE_OPEN), restart=not cover)


def check_running(vmid: str, state: State) -> Check:
    """Nothing can be asked of a container that does not run."""
    if state.running:
        return Check(f"lxc_gpu.{vmid}.running", PASS, "running", "running")
    fix = f"pct start {vmid}"
    return Check(f"lxc_gpu.{vmid}.running", WARN, "running", "stopped", fix)
