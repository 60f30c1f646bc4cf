# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's command line: data to an argument list, that to one systemd line, and back to flags and values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
# A word that systemd takes as it stands. Everything else is put between double quotes.
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")


def _flag(key: object) -> str:
    if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", key):
        raise ValueError(
            f"{key!r} is not the name of a flag; write it without leading dashes, for example tp-size or tp_size"
        )
    return "--" + key.replace("_", "-")


def _word(flag: str, value: object) -> str:
    """One value as the engine's parser reads it; dictionaries as JSON."""
    if isinstance(value, Mapping):
        return json.dumps(value, separators=(",", ":"), sort_keys=True)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{flag}: {value!r} in a list is neither text, a number nor a dictionary")
    return str(value)


def argv(flags: Mapping[str, object]) -> list[str]:
    """The argument list that a dictionary of flags stands for, in its order.

    A key is the flag's name without dashes in front; ``_`` and ``-`` are the same. None and False leave the flag out,
    True gives the bare flag, a list the flag and its values (an empty one leaves it out), a dictionary its JSON.

    Raises ValueError when a key is no flag's name, comes twice, or a value cannot be written.
    """
    words: list[str] = []
    seen: dict[str, str] = {}
    for key, value in flags.items():
        flag = _flag(key)
        if flag in seen:
            raise ValueError(f"{flag} is given twice, as {seen[flag]!r} and as {key!r}; keep one")
        seen[flag] = key
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            values = [_word(flag, item) for item in value]
            for text in values:
                if text.startswith("-") and not _NUMBER.fullmatch(text):
                    raise ValueError(f"{flag}: {text!r} in a list starts with a dash and would be read as a flag")
            words += [flag, *values] if values else []
        else:
            text = _word(flag, value)
            # Behind a space the engine's parser would take such a value for the next flag.
            looks_like_flag = text.startswith("-") and not _NUMBER.fullmatch(text)
            words += [f"{flag}={text}"] if looks_like_flag else [flag, text]
    return words


def systemd_exec(words: Sequence[str]) -> str:
    """The value of ``ExecStart=`` that makes systemd run exactly these words.

    Rules: systemd.service(5) "Command lines" (``$`` is written ``$$``, a lone ``;`` separates commands unless quoted,
    the program is an absolute path and no variable), systemd.unit(5) "Specifiers" (``%`` is written ``%%``) and
    systemd.syntax(7) "Quoting" (double quotes, C escapes inside them).

    Raises ValueError for an empty list, a program that is not an absolute path, and a word that holds a line break or
    another control character.
    """
    if not words:
        raise ValueError("an empty list is no command; its first word must be the absolute path of a program")
    if not words[0].startswith("/") or "$" in words[0]:
        raise ValueError(f"{words[0]!r} cannot be the program of a unit; it must be an absolute path without '$'")
    return " ".join(_systemd_word(word) for word in words)


def _systemd_word(word: str) -> str:
    for character in word:
        if (ord(character) < 0x20 and character != "\t") or ord(character) == 0x7F:
            what = "a line break" if character in "\r\n" else f"the control character {character!r}"
            raise ValueError(f"{word!r} holds {what}, which a unit file cannot carry; put the text in a file")
    if _PLAIN.fullmatch(word):
        return word.replace("%", "%%")
    for plain, written in (("\\", "\\\\"), ('"', '\\"'), ("\t", "\\t"), ("%", "%%"), ("$", "$$")):
        word = word.replace(plain, written)
    return f'"{word}"'


@dataclass(frozen=True)
class CommandLine:
    """An argument list read as flags and their values; of a flag given twice the last one counts, as in argparse.

    ``given`` are the flags as they were written, in their order.
    """

    values: Mapping[str, tuple[str, ...]]
    given: tuple[str, ...] = ()

    @classmethod
    def read(cls, words: Sequence[str], aliases: Mapping[str, str]) -> CommandLine:
        """Reads ``--flag value``, ``--flag=value`` and ``--flag a b``; ``aliases`` maps spellings to flags."""
        values: dict[str, tuple[str, ...]] = {}
        given: list[str] = []
        flag = ""
        for word in words:
            if word.startswith("--"):
                flag, equals, value = word.partition("=")
                given.append(flag)
                flag = aliases.get(flag, flag)
                values[flag] = (value,) if equals else ()
            else:
                values[flag] = (*values.get(flag, ()), word)
        return cls(values, tuple(given))

    def __contains__(self, flag: str) -> bool:
        return flag in self.values

    def text(self, flag: str) -> str | None:
        """The flag's value, None where it is not given or stands alone."""
        given = self.values.get(flag)
        return given[-1] if given else None

    def number(self, flag: str) -> int | None:
        """The flag's value as a whole number; None where it is not given or no number (the engine refuses that)."""
        text = self.text(flag)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None
