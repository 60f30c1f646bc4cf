# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outline of Python source: its classes with bases and methods, its imports, and the model classes it registers.

Read by lines and not by a full parse: the model files of a release are 7 MB in 250 files, and some use syntax that an
older target's Python does not have. What is read stands at the left margin (classes, imports, ``EntryClass``) or one
level in (methods), which is how all releases read are written; the tests hold the outlines against full parses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*(\(|:)", re.MULTILINE)
_METHOD = re.compile(r"^    (?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_ASSIGNED = re.compile(r"^    ([A-Za-z_]\w*)[ \t]*(?::[^=\n]+)?=[^=]", re.MULTILINE)
_IMPORT = re.compile(r"^from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_ENTRY = re.compile(r"^EntryClass\b[^=\n]*=[ \t]*", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ClassOutline:
    """A class: the names of its bases as written, its methods with the line of the last definition, its attributes."""

    name: str
    bases: tuple[str, ...]
    methods: Mapping[str, int]
    attributes: frozenset[str]
    line: int


@dataclass(frozen=True)
class FileOutline:
    """A file: its classes, where its imported names come from (module, name there), the classes in ``EntryClass``."""

    classes: Mapping[str, ClassOutline]
    imports: Mapping[str, tuple[str, str]]
    entry: tuple[str, ...]


def _bracketed(text: str, start: int) -> str:
    """What stands between the bracket at ``start`` and its partner; comments are dropped."""
    depth, end = 0, start
    for end in range(start, len(text)):
        if text[end] in "([{":
            depth += 1
        elif text[end] in ")]}":
            depth -= 1
            if not depth:
                break
    return _COMMENT.sub("", text[start + 1 : end])


def read_source(path: Path) -> str:
    """The text of a Python file; some files of SGLang begin with a byte order mark."""
    return path.read_text(encoding="utf-8-sig", errors="replace")


def outline(text: str) -> FileOutline:
    """Reads the outline of one file's text."""
    starts = list(_CLASS.finditer(text))
    classes: dict[str, ClassOutline] = {}
    for match in starts:
        bases: tuple[str, ...] = ()
        if match[2] == "(":
            inside = re.sub(r"\[[^\[\]]*\]", "", _bracketed(text, match.end() - 1))
            parts = [part.strip() for part in inside.split(",")]
            bases = tuple(part.rpartition(".")[2] for part in parts if part and "=" not in part)
        body_end = re.compile(r"^[^\s#)\]}]", re.MULTILINE).search(text, match.end())
        line = text.count("\n", 0, match.start()) + 1
        end = body_end.start() if body_end else len(text)
        methods = {
            method[1]: text.count("\n", 0, method.start()) + 1 for method in _METHOD.finditer(text, match.end(), end)
        }
        attributes = frozenset(found[1] for found in _ASSIGNED.finditer(text, match.end(), end))
        classes[match[1]] = ClassOutline(match[1], bases, methods, attributes, line)
    imports: dict[str, tuple[str, str]] = {}
    for match in _IMPORT.finditer(text):
        for part in _COMMENT.sub("", match[2]).strip("()").split(","):
            names = part.split()
            if names:
                imports[names[-1]] = (match[1], names[0])
    entry: tuple[str, ...] = ()
    for match in _ENTRY.finditer(text):
        bracket = text[match.end() : match.end() + 1] in ("[", "(")
        inside = _bracketed(text, match.end()) if bracket else text[match.end() :].partition("\n")[0]
        entry = tuple(_NAME.findall(_COMMENT.sub("", inside)))
    return FileOutline(classes, imports, entry)
