# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of one instance on disk, newest first, and which of them is the current one.

``<root>/<instance>/releases/<hash>/`` holds what a start is made from: ``release.json``, ``environment``,
``keys.yaml`` and ``unit``.
``proof.json`` beside them tells how its gates went. ``<root>/<instance>/current`` is a link to the current one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..files import write_whole

ROOT = Path("/etc/sglang")
ENVIRONMENT = "environment"
KEYS = "keys.yaml"
_RECORD = "release.json"
_UNIT = "unit"
_PROOF = "proof.json"


@dataclass(frozen=True)
class Record:
    """A release as data.

    ``parts`` are the hashes of :class:`.release.Release`, ``environment`` maps the names of variables to hashes of
    their values, ``written`` is a time in seconds since the epoch.
    """

    release: str
    parts: Mapping[str, str | None]
    args: Sequence[str]
    environment: Mapping[str, str]
    venv: str
    models: Sequence[str]
    written: float


@dataclass(frozen=True)
class Proof:
    """How the gates of a release went the last time, with the words for it."""

    passed: bool
    at: float
    told: str
    measured: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Store:
    """``folder`` belongs to one instance."""

    folder: Path

    def path(self, release: str) -> Path:
        """The folder of a release."""
        return self.folder / "releases" / release

    def records(self) -> list[Record]:
        """All that are whole, the newest first."""
        folders = self.path("").glob("*") if self.path("").is_dir() else ()
        found = [record for record in (self.record(folder.name) for folder in folders) if record is not None]
        return sorted(found, key=lambda record: record.written, reverse=True)

    def record(self, release: str) -> Record | None:
        """One release, None where it is not there or a killed run left it half-written."""
        told = _read(self.path(release) / _RECORD)
        try:
            return None if told is None else Record(**told)
        except TypeError:
            return None

    def proof(self, release: str) -> Proof | None:
        """How its gates went, None where it never came to that."""
        told = _read(self.path(release) / _PROOF)
        try:
            return None if told is None else Proof(**told)
        except TypeError:
            return None

    def unit(self, release: str) -> str:
        """The unit's text, empty where it cannot be read."""
        return _text(self.path(release) / _UNIT) or ""

    @property
    def current(self) -> str | None:
        """The release that a start takes."""
        try:
            return (self.folder / "current").readlink().name
        except OSError:
            return None

    def good(self, besides: str | None = None) -> Record | None:
        """The release whose gates passed last, apart from one."""
        proofs = {record.release: self.proof(record.release) for record in self.records()}
        passed = {name: proof.at for name, proof in proofs.items() if proof is not None and proof.passed}
        passed.pop(besides or "", None)
        return self.record(max(passed, key=lambda name: passed[name])) if passed else None

    def secrets(self, release: str) -> tuple[str, str]:
        """The texts of its environment and of its keys. Raises OSError."""
        folder = self.path(release)
        return (folder / ENVIRONMENT).read_text(encoding="utf-8"), (folder / KEYS).read_text(encoding="utf-8")

    def differs(self, record: Record, unit: str, environment: str, keys: str) -> bool:
        """Whether writing them would change a file."""
        known = self.record(record.release)
        folder = self.path(record.release)
        return (
            known is None
            or _same(known) != _same(record)
            or _text(folder / _UNIT) != unit
            or _text(folder / ENVIRONMENT) != environment
            or _text(folder / KEYS) != keys
        )

    def environment_differs(self, release: str, environment: str) -> bool:
        """Whether the environment's file exists and holds something else, as after an edit by hand."""
        return _text(self.path(release) / ENVIRONMENT) not in (None, environment)

    def write(self, record: Record, unit: str, environment: str, keys: str) -> None:
        """Put a release on disk; its record comes last, so that a half-written one is none. Raises OSError."""
        folder = self.path(record.release)
        # The engine's user reads nothing in it: systemd does, as root.
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        write_whole(folder / ENVIRONMENT, environment, mode=0o600)
        write_whole(folder / KEYS, keys, mode=0o600)
        write_whole(folder / _UNIT, unit, mode=0o644)
        write_whole(folder / _RECORD, json.dumps(asdict(record), indent=1) + "\n", mode=0o600)

    def switch(self, release: str) -> None:
        """Make a release the current one, at once. Raises OSError."""
        partial = self.folder / ".current.new"
        partial.unlink(missing_ok=True)
        partial.symlink_to(Path("releases", release))
        partial.replace(self.folder / "current")

    def prove(self, release: str, proof: Proof) -> None:
        """Remember how its gates went. Raises OSError."""
        write_whole(self.path(release) / _PROOF, json.dumps(asdict(proof), indent=1) + "\n", mode=0o600)

    def prune(self, keep: int, spare: Sequence[str | None]) -> list[str]:
        """Remove all but the newest ``keep`` releases, and never those in ``spare``. Returns what went."""
        old = [record.release for record in self.records()[keep:] if record.release not in spare]
        for release in old:
            # The record first: what is left of a killed removal is no release.
            (self.path(release) / _RECORD).unlink()
            shutil.rmtree(self.path(release))
        return old


def _same(record: Record) -> dict[str, Any]:
    told = asdict(record)
    told.pop("written")
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None
