# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An installed SGLang and what surrounds it, against what it asks for."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import compressed_tensors
from .flags import is_speculative
from .requirements import Requirement, marker_holds, parse_requirement, satisfies
from .source import Architecture, DeclaredFlag, EngineInfo
from .versions import Version, parse_version

_METADATA = "the metadata of the installed sglang"


@dataclass(frozen=True)
class Need:
    """A package that the engine requires here, and what is installed of it (None: nothing)."""

    requirement: Requirement
    installed: Version | None

    @property
    def satisfied(self) -> bool:
        return self.installed is not None and self.requirement.accepts(self.installed)


@dataclass(frozen=True)
class Survey:
    """An engine with its surroundings.

    ``python`` is the Python its folder belongs to, None for unpacked wheels; ``named`` is what the engine names of
    compressed_tensors and ``usable`` the version specifier of it to use; ``unread`` tells what could not be read.
    """

    engine: EngineInfo
    python: Version | None
    needs: Sequence[Need]
    named: Sequence[compressed_tensors.Reference]
    usable: str
    unread: Sequence[str]

    def as_data(self) -> dict[str, object]:
        """What a module returns."""
        engine = self.engine
        return {
            "version": str(engine.version),
            "requires_python": engine.requires_python,
            "layout": engine.layout,
            "algorithms": list(engine.algorithms),
            "flags": {name: _plain(flag) for name, flag in engine.flags.items() if is_speculative(name)},
            "base_architectures": {name: _plain(model) for name, model in engine.base_architectures.items()},
            "draft_architectures": {name: _plain(model) for name, model in engine.draft_architectures.items()},
            "requires": [
                {
                    "requirement": need.requirement.text,
                    "installed": str(need.installed or ""),
                    "satisfied": need.satisfied,
                }
                for need in self.needs
            ],
            "compressed_tensors": self.usable,
        }

    def checks(self) -> list[Check]:
        """All checks, in the order in which a failure of one explains those after it."""
        return [
            self._source(),
            self._python(),
            self._packages_missing(),
            self._packages_versions(),
            self._compressed_tensors(),
        ]

    def _source(self) -> Check:
        expected = "every file that is looked at can be read"
        if not self.unread:
            found = f"SGLang {self.engine.version}, algorithms declared as {self.engine.layout}"
            return Check("engine.source", PASS, expected, found)
        fix = "read it with a newer Python (ansible_python_interpreter)"
        return Check("engine.source", WARN, expected, "; ".join(self.unread), fix)

    def _python(self) -> Check:
        wanted = self.engine.requires_python
        expected = f"Python {wanted or 'of any version'}"
        if self.python is None:
            why = f"{self.engine.packages.folder} belongs to no virtual environment"
            return Check("engine.python", SKIPPED, expected, why, source=_METADATA)
        if satisfies(wanted, self.python):
            return Check("engine.python", PASS, expected, str(self.python), source=_METADATA)
        fix = f"make the virtual environment with a Python {wanted}"
        return Check("engine.python", FAIL, expected, str(self.python), fix, _METADATA)

    def _packages_missing(self) -> Check:
        """A warning only: some of the packages serve one kind of device, and a CPU-only site leaves them out."""
        absent = [need.requirement.text for need in self.needs if need.installed is None]
        expected = f"the {len(self.needs)} packages that SGLang {self.engine.version} requires here"
        if not absent:
            return Check("engine.packages_missing", PASS, expected, "all are installed", source=_METADATA)
        found = f"{len(absent)} are not installed: {', '.join(absent)}"
        fix = "install them (role sglang_install), unless they are left out because this machine has no use for them"
        return Check("engine.packages_missing", WARN, expected, found, fix, _METADATA)

    def _packages_versions(self) -> Check:
        there = [need for need in self.needs if need.installed is not None]
        wrong = [need for need in there if not need.satisfied]
        expected = "installed packages have the versions that SGLang requires"
        identity = "engine.packages_versions"
        if not there:
            return Check(identity, SKIPPED, expected, "none of them is installed", source=_METADATA)
        if not wrong:
            return Check(identity, PASS, expected, f"{len(there)} packages, all of them", source=_METADATA)
        told = ", ".join(f"{need.requirement.text} is {need.installed}" for need in wrong)
        wanted = " ".join(f"'{need.requirement.text}'" for need in wrong)
        return Check(identity, FAIL, expected, told, f"install {wanted}", _METADATA)

    def _compressed_tensors(self) -> Check:
        expected = f"compressed-tensors{self.usable or ' of any version'}"
        source = "the enums of compressed_tensors that sglang/srt/layers/quantization names"
        identity = "engine.compressed_tensors"
        folder = self.engine.packages.folder
        installed = self.engine.packages.versions.get(compressed_tensors.NAME)
        if installed is None:
            return Check(identity, SKIPPED, expected, f"compressed-tensors is not in {folder}", source=source)
        lacking = compressed_tensors.missing(folder, self.named)
        if lacking:
            told = ", ".join(f"{item.member} ({item.place})" for item in lacking)
            fix = f"install compressed-tensors{self.usable}"
            return Check(identity, FAIL, expected, f"{installed} lacks {told}", fix, source)
        if not self.named:
            return Check(identity, SKIPPED, expected, "no place that names one could be read", source=source)
        return Check(identity, PASS, expected, f"{installed} has all that is named", source=source)


def survey(engine: EngineInfo) -> Survey:
    """Looks at what surrounds an engine."""
    folder = engine.packages.folder
    match = re.fullmatch(r"python(\d+\.\d+)", folder.resolve().parent.name)
    python = parse_version(match[1]) if match else None
    required, unread_lines = _needs(engine, python)
    named, unread_files = compressed_tensors.references(folder)
    bound = {
        name: engine.packages.versions[name] for name in ("torch", "transformers") if name in engine.packages.versions
    }
    if python is not None:
        bound["python"] = python
    pins = [need.requirement.specifier for need in required if need.requirement.name == compressed_tensors.NAME]
    usable = compressed_tensors.usable_range(named, pins[0] if pins else "", bound)
    return Survey(engine, python, required, named, usable, (*engine.problems, *unread_lines, *unread_files))


def _needs(engine: EngineInfo, python: Version | None) -> tuple[list[Need], list[str]]:
    """What the engine requires on this machine, and the lines of its metadata that could not be read.

    Up to 0.5.2 all that serving needs stands behind the extra ``all``; from 0.5.3 on nothing does.
    """
    version = str(python or ".".join(map(str, sys.version_info[:2])))
    environment = {
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
        "platform_system": platform.system(),
        "python_version": version,
        "python_full_version": f"{version}.0",
    }
    unread: list[str] = []
    requirements: list[Requirement] = []
    for line in engine.requires:
        try:
            requirements.append(parse_requirement(line))
        except ValueError as error:
            unread.append(str(error))
    plain = {requirement.name for requirement in requirements if not requirement.marker}
    extras = set() if "torch" in plain else _extras_of_all(requirements)
    found: dict[str, Need] = {}
    for requirement in requirements:
        try:
            wanted = marker_holds(requirement.marker, environment, extras)
        except ValueError as error:
            unread.append(str(error))
            continue
        if wanted and requirement.name != "sglang":
            found[requirement.text] = Need(requirement, engine.packages.versions.get(requirement.name))
    return list(found.values()), unread


def _extras_of_all(requirements: Sequence[Requirement]) -> set[str]:
    """The extras that the extra ``all`` stands for (``sglang[srt]; extra == "all"``)."""
    own = [requirement for requirement in requirements if requirement.name == "sglang"]
    extras = {"all"}
    while True:
        more = {extra for line in own if marker_holds(line.marker, {}, extras) for extra in line.extras}
        if more <= extras:
            return extras
        extras |= more


def _plain(item: DeclaredFlag | Architecture) -> Mapping[str, object]:
    return {key: value for key, value in asdict(item).items() if key != "name"}
