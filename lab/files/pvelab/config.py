# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guest configuration files, as Proxmox VE reads and writes them.

Source: pve-container 5.2 (Proxmox VE 8.4), PVE::LXC::Config: parse_pct_config, write_pct_config, update_pct_config.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PVE = Path("/etc/pve")

# Take effect without a restart; everything else waits in [pve:pending] while the container runs.
FASTPLUG = frozenset(
    ["cores", "description", "hookscript", "hostname", "lock", "onboot", "protection", "startup", "tags"]
)
REQUIRED = frozenset(("memory", "ostype", "rootfs"))


class PveError(Exception):
    """What the real command prints before it exits with `status`."""

    def __init__(self, message: str, status: int = 255) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Section:
    """Options and raw lxc.* lines of one section of a file, and its comment."""

    options: dict[str, str] = field(default_factory=dict)
    lxc: list[tuple[str, str]] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)

    def lines(self) -> Iterable[str]:
        yield from self.comment
        yield from (f"{key}: {value}" for key, value in sorted(self.options.items()))
        yield from (f"{key}: {value}" for key, value in self.lxc)


@dataclass
class GuestConfig:
    """One container's file: what is in force, what waits for its next start, and its snapshots."""

    current: Section = field(default_factory=Section)
    pending: Section = field(default_factory=Section)
    snapshots: dict[str, Section] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, vmid: str, text: str) -> GuestConfig:
        """Read a file; what Proxmox VE would warn of is in `warnings`."""
        config = cls()
        section = config.current
        for line in text.splitlines():
            if not line.strip():
                continue
            if header := re.fullmatch(r"\[([a-z][a-z0-9_-]+|pve:pending)\]\s*", line, re.IGNORECASE):
                name = header[1]
                section = config.pending if name.lower() == "pve:pending" else Section()
                if section is not config.pending:
                    config.snapshots[name] = section
            elif line.startswith("#"):
                section.comment.append(line)
            elif match := re.fullmatch(r"(lxc\.[a-z0-9_.-]+)(?::|\s*=)\s*(.*?)\s*", line):
                section.lxc.append((match[1], match[2]))
            elif match := re.fullmatch(r"([a-z][a-z_]*\d*):\s*(.+?)\s*", line):
                section.options[match[1]] = match[2]
            else:
                config.warnings.append(f"vm {vmid} - unable to parse config: {line}")
        return config

    def format(self) -> str:
        blocks = ["".join(f"{line}\n" for line in self.current.lines())]
        named = [("pve:pending", self.pending)] if self.pending.options else []
        for name, section in [*named, *sorted(self.snapshots.items())]:
            blocks.append("".join(f"{line}\n" for line in (f"[{name}]", *section.lines())))
        return "\n".join(blocks)

    @property
    def pending_delete(self) -> list[str]:
        return [name.lstrip("!") for name in re.split(r"[,; ]+", self.pending.options.get("delete", "")) if name]

    def after_start(self) -> dict[str, str]:
        """The options that will be in force after the next start."""
        kept = {key: value for key, value in self.current.options.items() if key not in self.pending_delete}
        return {**kept, **{key: value for key, value in self.pending.options.items() if key != "delete"}}

    def apply_pending(self) -> None:
        self.current.options = self.after_start()
        self.pending = Section()

    def change(self, values: Mapping[str, str], delete: Iterable[str], *, running: bool) -> list[str]:
        """`pct set`: change options, at once or at the next start. Returns warnings; PveError if it is refused."""
        warnings = []
        deleted = set(self.pending_delete)
        for key in delete:
            if key in REQUIRED:
                raise PveError(f"unable to delete required option '{key}'")
            if key == "unprivileged":
                raise PveError(f"unable to delete read-only option: '{key}'")
            if key not in self.current.options and key not in self.pending.options:
                warnings.append(f"cannot delete '{key}' - not set in current configuration!")
                continue
            self.pending.options.pop(key, None)
            deleted.add(key)
        for key, value in values.items():
            if key == "unprivileged":
                raise PveError(f"unable to modify read-only option: '{key}'")
            if re.fullmatch(r"dev\d+", key):
                device(parse_dev(key, value)["path"])
            deleted.discard(key)
            self.pending.options[key] = value
        for key in list(self.pending.options):
            if key != "delete" and self.current.options.get(key) == self.pending.options[key]:
                del self.pending.options[key]
        deleted &= set(self.current.options)
        for key in sorted(deleted):
            if not running or key in FASTPLUG:
                self.current.options.pop(key)
                deleted.discard(key)
        for key in sorted(set(self.pending.options) - {"delete"}):
            if not running or key in FASTPLUG:
                self.current.options[key] = self.pending.options.pop(key)
        self.pending.options.pop("delete", None)
        if deleted:
            self.pending.options["delete"] = ",".join(sorted(deleted))
        return warnings


def path_of(kind: str, vmid: str) -> Path:
    """The file of a guest, kind being lxc or qemu-server; PveError if there is none."""
    if not re.fullmatch(r"[1-9][0-9]{2,8}", vmid):
        raise PveError(f"400 Parameter verification failed.\nvmid: type check ('integer') failed - got '{vmid}'")
    path = PVE / kind / f"{vmid}.conf"
    if not path.exists():
        raise PveError(f"Configuration file 'nodes/pve/{kind}/{vmid}.conf' does not exist", 2)
    return path


def vmids(kind: str) -> list[str]:
    names = (path.name for path in (PVE / kind).glob("*.conf"))
    return sorted((name[:-5] for name in names if re.fullmatch(r"\d+\.conf", name)), key=int)


def properties(value: str, default_key: str) -> dict[str, str]:
    """'a,b=c' with default key x: {'x': 'a', 'b': 'c'}."""
    result = {}
    for part in value.split(","):
        key, equals, text = part.partition("=")
        result[key if equals else default_key] = text if equals else key
    return result


def parse_dev(key: str, value: str) -> dict[str, str]:
    """The properties of a dev[n] option; PveError with the real command's words if they are not valid."""
    result = properties(value, "path")
    rules = {"path": "/dev/.+", "mode": "0[0-7]{3}", "uid": r"\d+", "gid": r"\d+", "deny-write": "[01]"}
    for name, text in result.items():
        if name not in rules:
            problem = f"{key}.{name}: property is not defined in schema"
        elif name == "path" and (re.search(r"/\.\.?(/|$)", text) or not text.startswith("/dev/")):
            problem = f"{key}.path: invalid format - {text} is not a valid device path\n"
        elif not re.fullmatch(rules[name], text):
            problem = f"{key}.{name}: value does not match the regex pattern"
        else:
            continue
        raise PveError(f"400 Parameter verification failed.\n{key}: invalid format - format error\n{problem}")
    if "path" not in result:
        raise PveError(f"Path is not defined for passthrough device {key}")
    return result


@dataclass(frozen=True)
class Device:
    """A device node of the host: 'c' or 'b', and its number."""

    kind: str
    major: int
    minor: int


def device(path: str) -> Device:
    """Look at the host's node; PveError if there is none."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise PveError(f"Device {path} does not exist") from None
    if stat.S_ISCHR(status.st_mode):
        return Device("c", os.major(status.st_rdev), os.minor(status.st_rdev))
    if stat.S_ISBLK(status.st_mode):
        return Device("b", os.major(status.st_rdev), os.minor(status.st_rdev))
    raise PveError(f"{path} is not a device")
