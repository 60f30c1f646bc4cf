# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device entries in a container's configuration file, edited without touching anything else.

Whose entries are whose
=======================
No marker is kept, for there is no place where one would last. Whenever Proxmox VE writes a configuration, it takes
every comment of a section as the guest's description and puts it at the top, sorts the ``key: value`` lines, and moves
the raw ``lxc.*`` lines, in their order, to the end of the section (pve-container, PVE::LXC::Config, parse_pct_config
and write_pct_config). A marker comment would lose its lines and turn up in the web interface's notes; line numbers
mean nothing; a state file beside the configuration stays behind when the container migrates to another node, and lies
after a restore. What does last is the entry's own content and the order of the raw lines. So an entry is known by what
it is about:

1. ``dev<n>`` and ``lxc.mount.entry`` whose device is ``/dev/nvidia*`` (or one of the wanted devices) are this module's,
   whoever wrote them. Two owners of one node would be two truths, and the older one is what breaks after a reboot.
2. An allow rule directly before such a mount entry is that entry's rule: they are written as pairs, and the order
   lasts. So the rule of a major that has moved since is known as stale, which its number alone could not tell. Both
   must be in the form written here, and the rule must name the minor that the node has by its name and a major of the
   kernel's dynamic ranges: a foreign ``c 226:0 rw`` that happens to stand there is not touched.
3. An allow rule for a major that NVIDIA's modules hold now (195 and what the devices file says) is this module's too.
   A ``c 195:* rwm`` left from a guide would open all GPUs to a container that was given two.
4. In a section that mounts ``/dev/nvidia*`` by hand (a mount entry that is not in the form of rule 2), an allow rule
   for a major of the kernel's dynamic ranges that no driver holds now is what is left of a moved nvidia-uvm: it allows
   nothing today and something unknown tomorrow. It is removed, but only when the devices file shows NVIDIA's driver,
   since without it every dynamic major looks unheld.

All else is foreign and keeps its bytes: other ``dev<n>`` and mount points, rules of other majors, ``deny`` rules,
hooks, comments, blank lines, order, line ends, the missing newline at the end, and every other section (snapshots,
``pve:pending``). An entry that is right already is left where it is, wherever Proxmox VE has moved it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .devices import NODE_PREFIX, NVIDIA_MAJOR, Device, LxcError, fixed_minor, is_dynamic, nvidia_majors

DEV = "dev"
CGROUP = "cgroup"
PROXMOX = "proxmox"
LXC = "lxc"
# pve-container, PVE::LXC::Config: $MAX_DEVICES
MAX_DEV_ENTRIES = 256

_SECTION = re.compile(r"\[(pve:pending|[a-z][a-z0-9_\-]+)\]\s*", re.IGNORECASE)
_OPTION = re.compile(r"([a-z][a-z_]*\d*):\s*(.+?)\s*")
_RAW = {
    PROXMOX: re.compile(r"(lxc\.[a-z0-9_\-.]+)(?::|\s*=)\s*(.*?)\s*"),
    LXC: re.compile(r"\s*(lxc\.[A-Za-z0-9_\-.]+)\s*=\s*(.*?)\s*"),
}
_ALLOW = re.compile(r"lxc\.cgroup2?\.devices\.allow")
_RULE = re.compile(r"c\s+(\d+):(\d+|\*)\s+([rwm]+)")
# Proxmox VE writes it before all other raw lines, so that it cannot stand between the two lines of a pair.
_APART = "lxc.environment.runtime"


@dataclass(frozen=True)
class Line:
    """One line and how it ends: ``\\n``, ``\\r\\n``, or nothing at the end of the file."""

    text: str
    end: str


def split_lines(text: str) -> list[Line]:
    """The lines of a file; joined again they are the same bytes."""
    lines = []
    for piece in text.split("\n"):
        if piece.endswith("\r"):
            lines.append(Line(piece[:-1], "\r\n"))
        else:
            lines.append(Line(piece, "\n"))
    last = text.rpartition("\n")[2]
    lines.pop()
    if last:
        lines.append(Line(last, ""))
    return lines


def join_lines(lines: Sequence[Line]) -> str:
    """The file's text again."""
    return "".join(line.text + line.end for line in lines)


def live_length(lines: Sequence[Line], backend: str) -> int:
    """How many lines belong to the configuration in force: all before the first section header."""
    if backend == LXC:
        return len(lines)
    return next((at for at, line in enumerate(lines) if _SECTION.fullmatch(line.text)), len(lines))


@dataclass(frozen=True)
class Entry:
    """One setting of the live section. ``at`` is its line; ``key`` as it is written (``dev0``, ``lxc.mount.entry``)."""

    at: int
    key: str
    value: str

    @property
    def dev_index(self) -> int | None:
        """n of ``dev<n>``."""
        match = re.fullmatch(r"dev(\d+)", self.key)
        return int(match.group(1)) if match else None


def parse_entries(lines: Sequence[Line], backend: str, start: int = 0, stop: int | None = None) -> list[Entry]:
    """The settings between two lines, as Proxmox VE or LXC itself reads them. What it cannot read is passed over."""
    found = []
    for at, line in enumerate(lines[start:stop], start):
        if line.text.startswith("#"):
            continue
        match = _RAW[backend].fullmatch(line.text)
        if not match and backend == PROXMOX:
            match = _OPTION.fullmatch(line.text)
        if match:
            found.append(Entry(at, match.group(1), match.group(2)))
    return found


def live_options(text: str, backend: str = PROXMOX) -> dict[str, str]:
    """The settings in force, the last one where a key is named several times."""
    lines = split_lines(text)
    return {entry.key: entry.value for entry in parse_entries(lines, backend, 0, live_length(lines, backend))}


def is_unprivileged(text: str, backend: str) -> bool:
    """Does the container run in a user namespace of its own?"""
    options = live_options(text, backend)
    return options.get("unprivileged") == "1" if backend == PROXMOX else "lxc.idmap" in options


def dev_properties(value: str) -> dict[str, str]:
    """``/dev/nvidia0,gid=44`` as {path, gid}, the path being the default key."""
    found = {}
    for part in value.split(","):
        key, sep, rest = part.partition("=")
        found[key.strip() if sep else "path"] = (rest if sep else key).strip()
    return found


def dev_value(device: Device) -> str:
    """The value of a ``dev<n>`` entry, its properties in Proxmox VE's own order."""
    owner = [f"gid={device.gid}"] if device.gid else []
    user = [f"uid={device.uid}"] if device.uid else []
    return ",".join([device.path, *owner, f"mode={device.mode}", *user])


def _same_dev(value: str, device: Device) -> bool:
    found = dev_properties(value)
    if found.get("deny-write", "0") != "0":
        return False
    plain = {"path": found.get("path"), "mode": found.get("mode", "0660")}
    numbers = {"uid": found.get("uid", "0"), "gid": found.get("gid", "0")}
    return {**plain, **numbers} == {
        "path": device.path,
        "mode": device.mode,
        "uid": str(device.uid),
        "gid": str(device.gid),
    }


def mount_value(path: str) -> str:
    """The mount entry for a node. Not optional: a container that starts without its GPU fails later, more quietly."""
    return f"{path} {path.lstrip('/')} none bind,create=file 0 0"


def raw_pair(device: Device, cgroup: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The two raw settings that give a container one node; ``cgroup`` is v1 or v2. Without ``m``: it is mounted."""
    key = "lxc.cgroup.devices.allow" if cgroup == "v1" else "lxc.cgroup2.devices.allow"
    return (key, f"{device.numbers} rw"), ("lxc.mount.entry", mount_value(device.path))


def _about(path: str, wanted: Collection[str]) -> bool:
    return path.startswith(NODE_PREFIX) or path in wanted


def _mount_source(entry: Entry) -> str:
    return entry.value.split()[0] if entry.key == "lxc.mount.entry" and entry.value.split() else ""


def _squeezed(value: str) -> str:
    return " ".join(value.split())


def _is_rule_of(entry: Entry, path: str) -> bool:
    rule = _RULE.fullmatch(entry.value) if _ALLOW.fullmatch(entry.key) else None
    if rule is None or rule.group(3) != "rw":
        return False
    return is_dynamic(int(rule.group(1))) and rule.group(2) == str(fixed_minor(path))


def find_owned(entries: Sequence[Entry], devices: Sequence[Device], majors: Mapping[str, int]) -> list[Entry]:
    """The entries that are this module's, by the four rules above. ``majors``: driver name -> major in force."""
    wanted = {device.path for device in devices}
    held = {NVIDIA_MAJOR, *(device.major for device in devices), *nvidia_majors(majors).values()}
    raw = [entry for entry in entries if entry.key.startswith("lxc.") and entry.key != _APART]
    owned: list[Entry] = []
    by_hand = False
    paired = set()
    for before, entry in zip([None, *raw], raw):
        path = _mount_source(entry)
        if not path or not _about(path, wanted):
            continue
        owned.append(entry)
        if _squeezed(entry.value) != mount_value(path):
            by_hand = True
        elif before and _is_rule_of(before, path):
            paired.add(before.at)
    driver_seen = bool(nvidia_majors(majors))
    for entry in entries:
        if entry.dev_index is not None and _about(dev_properties(entry.value).get("path", ""), wanted):
            owned.append(entry)
        rule = _RULE.fullmatch(entry.value) if _ALLOW.fullmatch(entry.key) else None
        if not rule:
            continue
        major = int(rule.group(1))
        dead = by_hand and driver_seen and is_dynamic(major) and major not in majors.values()
        if entry.at in paired or major in held or dead:
            owned.append(entry)
    return sorted(owned, key=lambda entry: entry.at)


def _keep_dev(owned: Sequence[Entry], devices: Sequence[Device]) -> tuple[set[int], list[Device]]:
    kept: set[int] = set()
    missing = []
    for device in devices:
        hit = next((e for e in owned if e.dev_index is not None and _same_dev(e.value, device)), None)
        if hit:
            kept.add(hit.at)
        else:
            missing.append(device)
    return kept, missing


def _keep_pairs(entries: Sequence[Entry], devices: Sequence[Device], cgroup: str) -> tuple[set[int], list[Device]]:
    raw = [entry for entry in entries if entry.key.startswith("lxc.") and entry.key != _APART]
    kept: set[int] = set()
    missing = []
    for device in devices:
        pair = raw_pair(device, cgroup)
        hit = next(
            (
                (one.at, two.at)
                for one, two in zip(raw, raw[1:])
                if ((one.key, _squeezed(one.value)), (two.key, _squeezed(two.value))) == pair
            ),
            None,
        )
        if hit:
            kept.update(hit)
        else:
            missing.append(device)
    return kept, missing


@dataclass(frozen=True)
class Edit:
    """What a file is to become. ``removed`` and ``added`` are the settings that go and come, as written."""

    text: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


def _free_indices(lines: Sequence[Line], kept: Collection[int], removed: Collection[int]) -> list[int]:
    """Free n for ``dev<n>``: used neither now nor by a change that waits for the next start (``pve:pending``)."""
    live = live_length(lines, PROXMOX)
    stop = live
    if live < len(lines) and lines[live].text.lower().startswith("[pve:pending]"):
        stop = live + 1 + live_length(lines[live + 1 :], PROXMOX)
    used = {
        entry.dev_index
        for entry in parse_entries(lines, PROXMOX, 0, stop)
        if entry.dev_index is not None and (entry.at in kept or entry.at not in removed)
    }
    return [index for index in range(MAX_DEV_ENTRIES) if index not in used]


def _insert(lines: list[Line], at: int, texts: Sequence[str]) -> None:
    """Put lines in before line ``at``, with the line end of their neighbour; a missing last newline stays missing."""
    if not texts:
        return
    if at == len(lines) and lines and not lines[-1].end:
        end = lines[-2].end if len(lines) > 1 else "\n"
        lines[-1] = replace(lines[-1], end=end)
        new = [Line(text, end) for text in texts]
        new[-1] = replace(new[-1], end="")
    else:
        neighbour = lines[at - 1] if at else (lines[0] if lines else Line("", "\n"))
        new = [Line(text, neighbour.end or "\n") for text in texts]
    lines[at:at] = new


def _remove(lines: list[Line], gone: Collection[int]) -> list[Line]:
    left = [line for at, line in enumerate(lines) if at not in gone]
    if left and lines and not lines[-1].end and left[-1].end:
        left[-1] = replace(left[-1], end="")
    return left


def _dev_position(lines: Sequence[Line], stop: int) -> int:
    """Where ``dev<n>`` stands in Proxmox VE's own order: after the last option that sorts before it."""
    options = [e for e in parse_entries(lines, PROXMOX, 0, stop) if not e.key.startswith("lxc.")]
    earlier = [e.at + 1 for e in options if e.key < "dev~"]
    if earlier:
        return earlier[-1]
    return options[0].at if options else _raw_position(lines, stop)


def _raw_position(lines: Sequence[Line], stop: int) -> int:
    """The end of the section, before the blank lines that part it from the next."""
    at = stop
    while at and not lines[at - 1].text.strip():
        at -= 1
    return at


def edit(
    text: str,
    devices: Sequence[Device],
    *,
    backend: str,
    style: str,
    cgroup: str,
    majors: Mapping[str, int],
) -> Edit:
    """The file with entries for exactly ``devices`` (none: all of ours removed), everything else as it was.

    Raises LxcError when ``dev`` entries are asked of plain LXC, or when no ``dev<n>`` is free.
    """
    if backend == LXC and style == DEV:
        raise LxcError("plain LXC knows no dev<n> entries; set style (lxc_gpu_style) to cgroup")
    lines = split_lines(text)
    stop = live_length(lines, backend)
    entries = parse_entries(lines, backend, 0, stop)
    owned = find_owned(entries, devices, majors)
    kept, missing = _keep_dev(owned, devices) if style == DEV else _keep_pairs(entries, devices, cgroup)
    gone = {entry.at for entry in owned} - kept
    removed = [lines[at].text for at in sorted(gone)]
    if style == DEV:
        free = _free_indices(lines, kept, gone)
        if len(free) < len(missing):
            raise LxcError(f"{len(missing)} dev<n> entries are needed and {len(free)} are free; remove unused ones")
        added = [f"dev{index}: {dev_value(device)}" for index, device in zip(free, missing)]
    else:
        sep = " = " if backend == LXC else ": "
        added = [f"{key}{sep}{value}" for device in missing for key, value in raw_pair(device, cgroup)]
    left = _remove(lines, gone)
    stop -= len(gone)
    _insert(left, _dev_position(left, stop) if style == DEV else _raw_position(left, stop), added)
    return Edit(join_lines(left), tuple(removed), tuple(added))


def pending_conflicts(text: str) -> list[str]:
    """Changes that wait for the next start and would undo or double ours: lines of ``[pve:pending]``."""
    lines = split_lines(text)
    start = live_length(lines, PROXMOX)
    if start == len(lines) or not lines[start].text.lower().startswith("[pve:pending]"):
        return []
    stop = start + 1 + live_length(lines[start + 1 :], PROXMOX)
    ours = {
        entry.key
        for entry in parse_entries(lines, PROXMOX, 0, start)
        if entry.dev_index is not None and dev_properties(entry.value).get("path", "").startswith(NODE_PREFIX)
    }
    found = []
    for entry in parse_entries(lines, PROXMOX, start + 1, stop):
        # A leading ! forces the deletion (PVE::AbstractConfig, parse_pending_delete).
        deleted = (
            {name.lstrip("!") for name in re.split(r"[,;\s]+", entry.value)} & ours if entry.key == "delete" else set()
        )
        named = entry.key in ours or (entry.dev_index is not None and NODE_PREFIX in entry.value)
        if deleted or named:
            found.append(lines[entry.at].text)
    return found


def covering_rule(text: str, backend: str, numbers: str) -> str:
    """The line of the live section that allows ``195:1``, however wide it is; empty where there is none."""
    lines = split_lines(text)
    major, minor = numbers.split(":")
    for entry in parse_entries(lines, backend, 0, live_length(lines, backend)):
        if not _ALLOW.fullmatch(entry.key):
            continue
        match = re.fullmatch(r"[ac](?:\s+(\d+|\*):(\d+|\*))?(?:\s+[rwm]+)?", entry.value)
        if match and match.group(1) in (None, "*", major) and match.group(2) in (None, "*", minor):
            return lines[entry.at].text
    return ""


def cgroup_version(root: str = "/sys/fs/cgroup") -> str:
    """``v2`` where the unified hierarchy is mounted alone at ``root``, else ``v1`` (cgroups(7))."""
    return "v2" if Path(root, "cgroup.controllers").exists() else "v1"
