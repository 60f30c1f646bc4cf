# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request alone tells of the engine it would install: whether its pin of compressed-tensors can work.

SGLang 0.5.7 to 0.5.18 ask for any compressed-tensors and name members that old releases lack; a load then ends in an
AttributeError after the weights were read. Once an engine is installed, its own files tell (engine/installation.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .checks import FAIL, PASS, SKIPPED, Check
from .engine.compressed_tensors import NAME, Reference, usable_range
from .engine.releases import Span, is_covered
from .engine.requirements import Requirement, parse_requirement, satisfies
from .engine.versions import Version, parse_version
from .python.names import Locked

ENGINE = "sglang"
_QUANTIZATION = "sglang/srt/layers/quantization/compressed_tensors"
# Members of compressed_tensors that SGLang names and that not every release of it has. Source: the wheels of the
# releases in engine/releases.py.
_NAMED = (
    (Reference("CompressionFormat.sparse_24_bitmask", f"{_QUANTIZATION}/compressed_tensors.py"), Span()),
    (Reference("CompressionFormat.nvfp4_pack_quantized", f"{_QUANTIZATION}/utils.py"), Span(since="0.5.7")),
    (Reference("QuantizationStrategy.TENSOR_GROUP", f"{_QUANTIZATION}/compressed_tensors.py"), Span(since="0.5.7")),
)
# SGLang's own pins (Requires-Dist of the same wheels): of compressed-tensors, and of what bounds its releases.
_REQUIRED = (("==0.18.0", Span(since="0.5.19")),)
_TORCH = (
    ("2.6.0", Span(until="0.4.6.post5")),
    ("2.7.1", Span("0.4.9", "0.4.9")),
    ("2.8.0", Span("0.5.2", "0.5.5")),
    ("2.9.1", Span("0.5.6.post2", "0.5.10.post1")),
    ("2.11.0", Span("0.5.11", "0.5.17")),
    ("2.13.0", Span("0.5.18", "0.5.21")),
    ("2.14.1", Span(since="0.5.22")),
)
_TRANSFORMERS = (
    ("4.51.1", Span(until="0.4.6.post5")),
    ("4.53.0", Span("0.4.9", "0.4.9")),
    ("4.56.1", Span("0.5.2", "0.5.2")),
    ("4.57.1", Span("0.5.3.post3", "0.5.9")),
    ("5.3.0", Span("0.5.10.post1", "0.5.10.post1")),
    ("5.6.0", Span("0.5.11", "0.5.12")),
    ("5.8.1", Span("0.5.13.post1", "0.5.14")),
    ("5.12.1", Span("0.5.15", "0.5.21")),
    ("5.19.0", Span(since="0.5.22")),
)
# The releases of compressed-tensors whose members and requirements were read.
_READ = (
    *("0.8.1", "0.9.0", "0.9.1", "0.9.2", "0.9.3", "0.9.4", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.12.0"),
    *("0.12.1", "0.12.2", "0.13.0", "0.14.0", "0.14.0.1", "0.15.0", "0.15.0.1", "0.16.0", "0.17.0", "0.17.1"),
    *("0.18.0", "0.19.0", "0.20.0", "0.20.1"),
)
# Stands for all that may come after them.
_LATER = "99"
_ID = "engine.compressed_tensors"
_SOURCE = f"the members of compressed_tensors that {_QUANTIZATION} names, and the metadata of sglang"


@dataclass(frozen=True)
class Asked:
    """A version or a range that was asked for, and where."""

    specifier: str
    where: str


@dataclass(frozen=True)
class Pins:
    """What a request says of the engine and of compressed-tensors; None: it does not say.

    ``usable`` is the version specifier of compressed-tensors that this engine works with.
    """

    engine: Version | None
    usable: str | None
    asked: Sequence[Asked]
    asks_for_engine: bool

    def checks(self) -> list[Check]:
        """One check, or none when no engine is asked for."""
        if not self.asks_for_engine:
            return []
        if self.usable is None:
            why = "the request does not pin a release whose files are known; they are judged once they are installed"
            return [Check(_ID, SKIPPED, "a compressed-tensors that this engine can use", why, source=_SOURCE)]
        expected = f"{NAME}{self.usable} for SGLang {self.engine}"
        for asked in self.asked:
            if not _fits(asked.specifier, self.usable):
                actual = f"{NAME}{asked.specifier} in {asked.where}{_lacking(asked.specifier, self.engine)}"
                return [Check(_ID, FAIL, expected, actual, f"ask for {NAME}{self.usable} there", _SOURCE)]
        told = ", ".join(f"{NAME}{asked.specifier} in {asked.where}" for asked in self.asked)
        return [Check(_ID, PASS, expected, told or "nothing else is asked for", source=_SOURCE)]

    def constraints(self) -> tuple[str, ...]:
        """What keeps pip to it."""
        return (f"{NAME}{self.usable}",) if self.usable else ()


def of_lock(locked: Mapping[str, Locked], where: str) -> Pins:
    """The pins of a lock; ``where`` names it for an operator."""
    pinned = {name: entry.version for name, entry in locked.items() if entry.version is not None}
    asked = [Asked(f"=={pinned[NAME]}", where)] if NAME in pinned else []
    bound: dict[str, Version] = {}
    for name in ("torch", "transformers"):
        if name in pinned:
            bound[name] = parse_version(pinned[name])
    return _pins(pinned.get(ENGINE), bound, asked, ENGINE in locked)


def of_requirements(requirements: Mapping[str, Sequence[str]]) -> Pins:
    """The pins of requirements and constraints, each list under the name that an operator knows it by.

    What cannot be read is left to pip.
    """
    engine: str | None = None
    bound: dict[str, Version] = {}
    asked: list[Asked] = []
    asks_for_engine = False
    for where, lines in requirements.items():
        for requirement in _readable(lines):
            pinned = _exact(requirement)
            if requirement.name == NAME and requirement.specifier:
                asked.append(Asked(requirement.specifier, where))
            elif requirement.name == ENGINE:
                asks_for_engine = True
                engine = pinned or engine
            elif requirement.name in ("torch", "transformers") and pinned is not None:
                bound[requirement.name] = parse_version(pinned)
    return _pins(engine, bound, asked, asks_for_engine)


def _readable(lines: Sequence[str]) -> list[Requirement]:
    found = []
    for line in lines:
        try:
            found.append(parse_requirement(line))
        except ValueError:
            continue
    return found


def _exact(requirement: Requirement) -> str | None:
    """The version of a requirement that leaves no choice."""
    specifier = requirement.specifier
    exact = specifier.startswith("==") and "," not in specifier and "*" not in specifier
    return specifier.lstrip("=").strip() if exact else None


def _pins(engine: str | None, bound: Mapping[str, Version], asked: Sequence[Asked], asks_for_engine: bool) -> Pins:
    version = None if engine is None else parse_version(engine)
    if version is None or not is_covered(version):
        return Pins(version, None, asked, asks_for_engine)
    named = [reference for reference, span in _NAMED if span.holds(version)]
    required = next((specifier for specifier, span in _REQUIRED if span.holds(version)), "")
    bounds = {
        name: parse_version(pin)
        for name, table in (("torch", _TORCH), ("transformers", _TRANSFORMERS))
        for pin, span in table
        if span.holds(version)
    }
    return Pins(version, usable_range(named, required, {**bounds, **bound}), asked, asks_for_engine)


def _fits(specifier: str, usable: str) -> bool:
    """Whether some release is in both, as far as the releases that were read tell."""
    candidates = [*_READ, _LATER]
    exact = _exact(Requirement(NAME, frozenset(), specifier, "", ""))
    if exact is not None:
        candidates.append(exact)
    versions = [parse_version(text) for text in candidates]
    return any(satisfies(specifier, version) and satisfies(usable, version) for version in versions)


def _lacking(specifier: str, engine: Version | None) -> str:
    """Which members no release of the specifier has, with the file that names them."""
    if engine is None:
        return ""
    lacking = [
        f"{reference.member} ({reference.place})"
        for reference, span in _NAMED
        if span.holds(engine) and not _fits(specifier, usable_range([reference], "", {}))
    ]
    return f", which lacks {', '.join(lacking)}" if lacking else ""
