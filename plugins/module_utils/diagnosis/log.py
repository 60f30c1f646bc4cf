# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of an engine's log as a person would read it: no binary, no progress bars, no secrets, no small talk."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]")
# What stands before the message in an exported journal (short and ISO times) and in the output of Docker Compose.
_PREFIXES = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ [^\s:\[]+(?:\[\d+\])?: "
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* \S+ [^\s:\[]+(?:\[\d+\])?: "
    r"|[\w.-]{1,60} +\| ?)"
)
# More of the unreadable than this share of a line, and it is no text.
_BINARY_SHARE = 0.2
_LONGEST_LINE = 2000
# More of a log is not looked at, in bytes: the end of an engine is at the end.
LONGEST = 2 << 20
# The engine lists all its arguments, its API key among them.
_ARGUMENTS = re.compile(r"server_args=(?:\w+\(|\{)|'api_key': ")
_SECRETS = re.compile(r"(--(?:admin-)?api-key[ =]|Bearer )[\w.-]+|\bhf_[A-Za-z0-9]{20,}")
_TRACEBACK = re.compile(r"(?P<hit>hit an exception: |Initialization failed\. warmup error: )?Traceback \(most recent")
# The engine's own files, also when its venv lies below a folder of this name.
_OWN = re.compile(r"(?:^|/)(?P<path>sglang/(?:srt|jit_kernel|kernels|cli|launch_server)\b.*)")
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
# What ends a process without a traceback of Python.
_OTHER_ENDS = re.compile(
    r"^(?:  what\(\):  |Fatal Python error: |(?:\S*launch_server\.py|sglang serve): error: )(?P<text>.+)"
)
_NOISE = re.compile(
    r"^\s*$"
    r"|^\s+"
    r"|Ignore import error when loading|: \w*Warning: |^warnings\.warn\(|\[\d+(?:\.\d+)?[KMG]?B? blob data\]"
    r'|"(?:GET|POST|HEAD) \S+ HTTP/1\.[01]" \d|\b(?:Decode|Prefill) batch[,.]'
    r"|: Consumed \S+ CPU time|Failed to load generation config for|destroy_process_group\(\) was not called"
    r"|kill_process_tree called:|During handling of the above exception|Traceback \(most recent call last\)"
    # Printed after every failed capture, whatever its cause: CUDA_GRAPH_CAPTURE_FAILED_MSG of the engine.
    r"|^Possible solutions:|^\d\. (?:set|disable) --?|^\d\. disable (?:torch|decode|CUDA)|^Open an issue on GitHub"
    r"|\d+%\||\d+% Completed \|"
)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Line:
    """``number`` counts the line feeds of the original, from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Raised:
    """An exception: ``text`` is its type and message, ``where`` the deepest frame of the engine (empty if none)."""

    text: str
    where: str
    number: int


@dataclass(frozen=True)
class Log:
    """What could be read of a log; ``unreadable`` counts the lines that were no text."""

    lines: tuple[Line, ...]
    unreadable: int

    def text(self) -> str:
        """All lines in one string, for patterns over several lines."""
        return "\n".join(line.text for line in self.lines)

    def lines_at(self, offsets: Sequence[int]) -> list[Line]:
        """The lines at these offsets of :meth:`text`."""
        starts = [0, *accumulate(len(line.text) + 1 for line in self.lines)]
        return [self.lines[bisect_right(starts, offset) - 1] for offset in offsets]


def tail(path: str) -> tuple[bytes, int]:
    """The end of a file, and how many line feeds stand before it.

    Raises:
        OSError: it could not be read.
    """
    with Path(path).open("rb") as file:
        before, rest = 0, max(0, file.seek(0, os.SEEK_END) - LONGEST)
        file.seek(0)
        while rest > 0:
            chunk = file.read(min(rest, 1 << 20))
            if not chunk:
                break
            before += chunk.count(b"\n")
            rest -= len(chunk)
        return file.read(LONGEST), before


def read(raw: bytes, before: int = 0) -> Log:
    """A log out of the bytes of a file or of the journal, of which ``before`` lines were left out."""
    lines: list[Line] = []
    unreadable = 0
    for number, part in enumerate(raw.decode("utf-8", "replace").split("\n"), before + 1):
        # A progress bar writes itself anew after a carriage return.
        for piece in part.split("\r"):
            written = _ESCAPES.sub("", piece)
            readable = _CONTROLS.sub("", written)
            if len(written) - len(readable) > _BINARY_SHARE * len(written):
                unreadable += 1
            elif readable.strip() and not _ARGUMENTS.search(readable):
                shown = _SECRETS.sub(lambda secret: f"{secret[1] or ''}***", _PREFIXES.sub("", readable))
                lines.append(Line(number, shown[:_LONGEST_LINE].rstrip()))
    return Log(tuple(lines), unreadable)


def first_exception(log: Log) -> Raised | None:
    """The exception that ended the engine.

    Of several the first one that a process of the engine says it died of, else the first one. In a chain that is the
    one that was raised first, and the others follow from it.
    """
    begins = [(index, _TRACEBACK.search(line.text)) for index, line in enumerate(log.lines)]
    found = [(index, match) for index, match in begins if match is not None]
    died = [index for index, match in found if match["hit"]]
    for index in died or [index for index, dummy in found]:
        return _traceback(log.lines, index)
    for line in log.lines:
        ended = _OTHER_ENDS.match(line.text)
        if ended:
            return Raised(ended["text"].strip(), "", line.number)
    return None


def _traceback(lines: Sequence[Line], begin: int) -> Raised:
    where = deepest = ""
    for index in range(begin + 1, len(lines)):
        line = lines[index]
        frame = _FRAME.match(line.text)
        if frame:
            deepest = f"{frame['file']}:{frame['line']} in {frame['function']}"
            own = _OWN.search(deepest)
            where = own["path"] if own else where
        elif not line.text.startswith(" "):
            text = line.text
            # Some messages begin with an empty line.
            if re.fullmatch(r"[\w.]+:", text) and index + 1 < len(lines):
                text = f"{text} {lines[index + 1].text.strip()}"
            return Raised(text, where or deepest, line.number)
    last = lines[-1]
    return Raised("the log ends within a traceback", where or deepest, last.number)


def last_lines(log: Log, count: int, longest: int = 300) -> list[str]:
    """The end of the log without noise; lines that differ in their numbers alone are shown once."""
    kept: list[str] = []
    same = 0
    for line in reversed(log.lines):
        text = line.text
        if _NOISE.search(text):
            continue
        shown = text if len(text) <= longest else f"{text[:longest]} ..."
        if kept and _DIGITS.sub("0", shown) == _DIGITS.sub("0", kept[-1]):
            same += 1
            continue
        if same:
            kept[-1] += f" (and {same} more like it)"
            same = 0
        if len(kept) == count:
            break
        kept.append(shown)
    if same:
        kept[-1] += f" (and {same} more like it)"
    return kept[::-1]
