# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of Python packages: names, version specifiers, environment markers.

Rules: PEP 508 and the version specifiers specification of the Python packaging guide. See versions.py for why this is
not the library packaging.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from .versions import Version, parse_version

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?:\(?(?P<specifier>[^;()@]*)\)?|@\s*(?P<url>\S+))\s*(?:;(?P<marker>.*))?"
)
_SPECIFIER = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,]+)")
_TOKEN = re.compile(r"\s*(\(|\)|'[^']*'|\"[^\"]*\"|not\s+in\b|[<>=!~]+|[A-Za-z_][A-Za-z0-9_.]*)")


def canonical_name(name: str) -> str:
    """A package name as indexes compare it: ``flashinfer_python`` is ``flashinfer-python``."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Requirement:
    """One line of ``Requires-Dist``; ``text`` is the line without its marker."""

    name: str
    extras: frozenset[str]
    specifier: str
    marker: str
    text: str

    def accepts(self, version: Version) -> bool:
        """Whether an installed version satisfies the specifier."""
        return satisfies(self.specifier, version)


def parse_requirement(text: str) -> Requirement:
    """Reads ``torch==2.9.1``, ``nvidia-cutlass-dsl[cu13]==4.6.2``, ``x>=1,<2; python_version < "3.11"``.

    Raises ValueError when the text is no requirement.
    """
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a requirement of a Python package")
    extras = frozenset(canonical_name(extra.strip()) for extra in (match["extras"] or "").split(",") if extra.strip())
    specifier = (match["specifier"] or "").strip()
    return Requirement(
        canonical_name(match["name"]),
        extras,
        specifier,
        (match["marker"] or "").strip(),
        text.partition(";")[0].strip(),
    )


def satisfies(specifier: str, version: Version) -> bool:
    """Whether a version lies in ``>=0.10.0,<0.20`` and the like; an empty specifier takes any.

    Pre-releases are taken where they fit: what is installed is there on purpose. Raises ValueError for a specifier that
    cannot be read.
    """
    parts = [part.strip() for part in specifier.split(",") if part.strip()]
    for part in parts:
        match = _SPECIFIER.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not a version specifier")
        if not _clause(match[1], match[2], version):
            return False
    return True


def _clause(operator: str, text: str, version: Version) -> bool:
    if operator == "===":
        return str(version).lower() == text.lower()
    if text.endswith(".*"):
        prefix = parse_version(text[:-2])
        same = version.epoch == prefix.epoch and _padded(version, len(prefix.release)) == prefix.release
        return same if operator == "==" else not same
    wanted = parse_version(text)
    # A local part counts only where the specifier names one (== 2.9.1 takes 2.9.1+cu130).
    compared = version if wanted.local else version.without_local()
    if operator == "==":
        return compared == wanted
    if operator == "!=":
        return compared != wanted
    if operator == "~=":
        prefix_length = len(wanted.release) - 1
        same = version.epoch == wanted.epoch and _padded(version, prefix_length) == wanted.release[:prefix_length]
        return version.without_local() >= wanted and same
    return _ordered(operator, version.without_local(), wanted)


def _padded(version: Version, length: int) -> tuple[int, ...]:
    return (version.release + (0,) * length)[:length]


def _ordered(operator: str, version: Version, wanted: Version) -> bool:
    if operator == ">=":
        return version >= wanted
    if operator == "<=":
        return version <= wanted
    same_release = version.epoch == wanted.epoch and version.base == wanted.base
    if operator == "<":
        # 1.0rc1 is not < 1.0 for a specifier, unless the specifier is a pre-release itself.
        return version < wanted and not (same_release and version.is_prerelease and not wanted.is_prerelease)
    # 1.0.post1 is not > 1.0 for a specifier, unless the specifier is a post-release itself.
    return version > wanted and not (same_release and version.is_postrelease and not wanted.is_postrelease)


def marker_holds(marker: str, environment: Mapping[str, str], extras: Collection[str] = ()) -> bool:
    """Whether an environment marker holds; ``environment`` has its variables (``sys_platform``, ``python_version``).

    Raises ValueError for a marker that cannot be read or names a variable that ``environment`` lacks.
    """
    if not marker.strip():
        return True
    tokens = _TOKEN.findall(marker)
    if "".join(tokens).replace(" ", "") != re.sub(r"\s+", "", marker):
        raise ValueError(f"{marker!r} is not an environment marker")
    reader = _Marker(tokens, environment, {canonical_name(extra) for extra in extras})
    holds = reader.any_of()
    if reader.tokens:
        raise ValueError(f"{marker!r} is not an environment marker")
    return holds


class _Marker:
    """Reads a marker's tokens by the grammar of PEP 508: ``or`` binds weaker than ``and``."""

    def __init__(self, tokens: Iterable[str], environment: Mapping[str, str], extras: Collection[str]) -> None:
        self.tokens = list(tokens)
        self.environment = environment
        self.extras = extras

    def any_of(self) -> bool:
        holds = self.all_of()
        while self.tokens and self.tokens[0] == "or":
            self.tokens.pop(0)
            holds = self.all_of() or holds
        return holds

    def all_of(self) -> bool:
        holds = self.single()
        while self.tokens and self.tokens[0] == "and":
            self.tokens.pop(0)
            holds = self.single() and holds
        return holds

    def single(self) -> bool:
        left = self._next()
        if left == "(":
            holds = self.any_of()
            if self._next() != ")":
                raise ValueError("a bracket of an environment marker is not closed")
            return holds
        operator, right = self._next(), self._next()
        if "extra" in (left, right):
            wanted = canonical_name((right if left == "extra" else left).strip("'\""))
            return (wanted in self.extras) == (operator == "==")
        return self._compare(self._value(left), operator, self._value(right))

    def _next(self) -> str:
        if not self.tokens:
            raise ValueError("an environment marker ends too early")
        return self.tokens.pop(0)

    def _value(self, token: str) -> str:
        if token[0] in "'\"":
            return token[1:-1]
        if token not in self.environment:
            raise ValueError(f"the environment marker variable {token!r} is not known here")
        return self.environment[token]

    @staticmethod
    def _compare(left: str, operator: str, right: str) -> bool:
        if operator.split() in (["in"], ["not", "in"]):
            return (left in right) == (operator == "in")
        try:
            return _clause(operator, right, parse_version(left))
        except ValueError:
            texts: Mapping[str, Callable[[str, str], bool]] = {
                "==": str.__eq__,
                "!=": str.__ne__,
                "<": str.__lt__,
                "<=": str.__le__,
                ">": str.__gt__,
                ">=": str.__ge__,
            }
            if operator not in texts:
                raise ValueError(f"{operator!r} does not compare {left!r} with {right!r}") from None
            return texts[operator](left, right)
