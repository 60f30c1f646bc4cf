# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid and SXid errors in the kernel log since the boot. A host's matter: a container does not see the log."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import xid
from .host import ROOT

XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)\): (?P<code>\d+)")
# NVIDIA Fabric Manager user guide, appendix "Error handling": SXid lines carry their severity.
SXID = re.compile(
    r"SXid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)\): (?P<code>\d+), (?P<severity>Fatal|Non-fatal)", re.IGNORECASE
)
SXID_SOURCE = "NVIDIA Fabric Manager user guide: NVSwitch SXid errors"


@dataclass(frozen=True)
class Line:
    """One message; ``seconds`` is the Unix time."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Log:
    """The kernel's messages of this boot. ``whole``: none is lost; ``trouble``: why nothing could be read."""

    lines: tuple[Line, ...]
    whole: bool = True
    trouble: str = ""


def read(timeout: float, root: Path = ROOT) -> Log:
    """The journal when it holds the kernel's messages, else the kernel's own buffer."""
    return _journal(timeout) or _buffer(root)


def _journal(timeout: float) -> Log | None:
    base = ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager"]
    try:
        usable = subprocess.run([*base, "--lines=1", "--output=cat"], capture_output=True, timeout=timeout, check=False)
        if not usable.stdout.strip():
            return None
        # Status 1 without a word: nothing matched.
        found = subprocess.run(
            [*base, "--output=short-unix", "--grep=Xid"], capture_output=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if found.returncode not in (0, 1) or found.stderr.strip():
        return None
    lines = []
    for told in found.stdout.decode(errors="replace").splitlines():
        seconds, _space, text = told.partition(" ")
        if re.fullmatch(r"\d+\.\d+", seconds):
            lines.append(Line(float(seconds), text))
    return Log(tuple(lines))


def _buffer(root: Path) -> Log:
    """Records of /dev/kmsg: 'priority,sequence,microseconds since boot,flags;text'."""
    try:
        device = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Log((), False, f"neither the journal nor /dev/kmsg can be read ({error.strerror})")
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    lines: list[Line] = []
    first = None
    try:
        while True:
            try:
                record = os.read(device, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # The next record was overwritten while we read.
            if not record:
                break
            head, _mark, text = record.decode(errors="replace").partition(";")
            fields = head.split(",")
            first = int(fields[1]) if first is None else first
            lines.append(Line(booted + int(fields[2]) / 1e6, text.partition("\n")[0]))
    except OSError as error:
        return Log((), False, f"/dev/kmsg cannot be read ({error.strerror})")
    finally:
        os.close(device)
    return Log(tuple(lines), first == 0)


def judge_xids(log: Log, window: float) -> Check:
    """``window``: only the last so many seconds count; 0 means since the boot."""
    expected = f"no Xid that asks for an action, {_since(window)}"
    unread = _unread("host.xid", expected, log, xid.CATALOG)
    if unread:
        return unread
    found: dict[tuple[int, str], list[float]] = {}
    for line, match in _matches(XID, log.lines, window):
        found.setdefault((int(match["code"]), match["pci"]), []).append(line.seconds)
    if not found:
        return _none("host.xid", expected, log, xid.CATALOG)
    told, worst, fix = [], PASS, ""
    for (code, pci), times in sorted(found.items()):
        meaning, action = xid.look_up(code)
        told.append(f"Xid {code} on {pci} {len(times)} times, last at {_utc(times[-1])}: {meaning}")
        if _rank(action.status) > _rank(worst):
            worst, fix = action.status, f"Xid {code} on {pci}: {action.fix}"
    return Check("host.xid", worst, expected, "; ".join(told), fix, xid.CATALOG)


def judge_sxids(log: Log, window: float, switches: int) -> Check:
    """``switches``: NVSwitches on the PCI bus."""
    expected = f"no SXid, {_since(window)}"
    if not switches:
        return Check("host.sxid", SKIPPED, expected, "this machine has no NVSwitch", source=SXID_SOURCE)
    unread = _unread("host.sxid", expected, log, SXID_SOURCE)
    if unread:
        return unread
    fatal: dict[str, bool] = {}
    for _line, match in _matches(SXID, log.lines, window):
        name = f"SXid {match['code']} on {match['pci']}"
        fatal[name] = fatal.get(name, False) or match["severity"].lower() == "fatal"
    if not fatal:
        return _none("host.sxid", expected, log, SXID_SOURCE)
    text = "; ".join(f"{name}: {'fatal' if fatal[name] else 'not fatal'}" for name in sorted(fatal))
    if any(fatal.values()):
        fix = "stop the work, reset all GPUs and NVSwitches (or reboot the host) and restart nvidia-fabricmanager"
        return Check("host.sxid", FAIL, expected, text, fix, SXID_SOURCE)
    fix = "watch this link: the switch is replaced when non-fatal errors keep coming"
    return Check("host.sxid", WARN, expected, text, fix, SXID_SOURCE)


def _matches(pattern: re.Pattern[str], lines: Sequence[Line], window: float) -> Iterable[tuple[Line, re.Match[str]]]:
    since = time.time() - window if window else 0.0
    for line in lines:
        match = pattern.search(line.text)
        if match and line.seconds >= since:
            yield line, match


def _unread(identifier: str, expected: str, log: Log, source: str) -> Check | None:
    return Check(identifier, SKIPPED, expected, log.trouble, source=source) if log.trouble else None


def _none(identifier: str, expected: str, log: Log, source: str) -> Check:
    if log.whole:
        return Check(identifier, PASS, expected, "none", source=source)
    reason = "none in what is left of the kernel's buffer; older messages are lost (systemd-journald keeps them)"
    return Check(identifier, SKIPPED, expected, reason, source=source)


def _since(window: float) -> str:
    return f"in the last {window:.0f} s" if window else "since the boot"


def _rank(status: str) -> int:
    return (PASS, WARN, FAIL).index(status)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
