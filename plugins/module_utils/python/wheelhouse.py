# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wheelhouse: a folder of wheels and a lock with their hashes, enough to install an engine with no network at all.

The lock (``lock.txt``) lists every wheel as ``name==version --hash=sha256:...``, so that ``pip install --no-index
--no-deps --require-hashes -r lock.txt`` installs exactly these files. ``wheelhouse.json`` is written last: a folder
without it is unfinished.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..hub import digest
from . import names, pip

LOCK = "lock.txt"
MANIFEST = "wheelhouse.json"
_INCOMING = "incoming"
_CONSTRAINTS = "constraints.txt"
_ASKED = "asked.txt"
_HELD = ".lock"
_OURS = (LOCK, MANIFEST, _INCOMING, _CONSTRAINTS, _ASKED, _HELD)


class WheelhouseError(Exception):
    """The wheelhouse could not be made; the text says what to do."""


@dataclass(frozen=True)
class Request:
    """What must be in the house.

    Either a lock (the text of a requirements file with hashes), or requirements with and without their dependencies,
    held by constraints. ``source`` is where they come from; it must name no wheelhouse.
    """

    requirements: tuple[str, ...]
    requirements_no_deps: tuple[str, ...]
    python: str
    constraints: tuple[str, ...] = ()
    lock: str | None = None
    source: pip.Source = field(default_factory=pip.Source)

    def key(self) -> str:
        """A hash of the request and of the interpreter it is for: the same key means the same wheels will do.

        Raises:
            WheelhouseError: nothing is asked for, a requirement names no package, or the interpreter does not start.
        """
        if self.lock is None and not self.requirements and not self.requirements_no_deps:
            raise WheelhouseError("nothing is asked for; give requirements or a lock")
        told: list[object] = [sorted(self.requirements), sorted(self.requirements_no_deps), sorted(self.constraints)]
        try:
            for text in (*self.requirements, *self.requirements_no_deps, *self.constraints):
                names.requirement_name(text)
            if self.lock is not None:
                told = [names.lock_lines(self.lock)] if names.locked(self.lock) else []
        except ValueError as error:
            raise WheelhouseError(f"what is asked for cannot be used: {error}") from error
        version = _run([self.python, "-I", "-VV"], f"{self.python} -VV").strip()
        return hashlib.sha256(json.dumps([*told, version]).encode()).hexdigest()


@dataclass(frozen=True)
class Wheelhouse:
    """A finished house. ``python`` is the major.minor that its wheels are for, ``wheels`` maps file name to bytes."""

    path: Path
    key: str
    python: str
    wheels: dict[str, int]

    @property
    def size(self) -> int:
        """All wheels together, in bytes."""
        return sum(self.wheels.values())


def _run(command: Sequence[str], what: str) -> str:
    try:
        return pip.run(command, what)
    except pip.PipError as error:
        raise WheelhouseError(str(error)) from error


def _manifest(path: Path) -> Wheelhouse | None:
    try:
        told = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        return Wheelhouse(path, str(told["key"]), str(told["python"]), dict(told["wheels"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def made_for(path: Path) -> str | None:
    """Which Python (major.minor) the house's wheels are for; None for a folder of wheels that was filled by hand."""
    house = _manifest(path)
    return None if house is None else house.python


def read(path: Path) -> Wheelhouse | None:
    """The finished house at ``path``, or None when there is none or a wheel is missing or has another size."""
    house = _manifest(path)
    if house is None or not (path / LOCK).is_file():
        return None
    for name, size in house.wheels.items():
        wheel = path / name
        if not wheel.is_file() or wheel.stat().st_size != size:
            return None
    return house


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the folder: two controllers that share it must not fill it at once, and the second one needs only look."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / _HELD).open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(path: Path, request: Request) -> tuple[Wheelhouse, bool]:
    """Make the house at ``path`` what ``request`` asks for.

    Returns the house and whether anything was changed.

    Raises:
        WheelhouseError: pip could not get or build a wheel.
    """
    key = request.key()
    with _alone(path):
        house = read(path)
        if house is not None and house.key == key:
            return house, False
        house = _manifest(path)
        _refuse_what_is_no_wheelhouse(path)
        (path / MANIFEST).unlink(missing_ok=True)
        _drop_damaged(path, house)
        # A wheel left by an earlier request would end in the lock of this one.
        incoming = path / _INCOMING
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        _gather(path, incoming, request)
        return _finish(path, incoming, request, key), True


def _drop_damaged(path: Path, house: Wheelhouse | None) -> None:
    """pip would stop at a wheel that is cut, instead of fetching it again."""
    for wheel in path.glob("*.whl"):
        size = None if house is None else house.wheels.get(wheel.name)
        if not zipfile.is_zipfile(wheel) or size not in (None, wheel.stat().st_size):
            wheel.unlink()


def _refuse_what_is_no_wheelhouse(path: Path) -> None:
    others = sorted(item.name for item in path.iterdir() if item.suffix != ".whl" and item.name not in _OURS)
    if others:
        raise WheelhouseError(f"{path} holds {', '.join(others[:5])}; name a folder for wheels alone")


def _gather(path: Path, incoming: Path, request: Request) -> None:
    pip_ = [request.python, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    indexes = request.source.arguments()
    found = ["--find-links", str(path), "--dest", str(incoming)]
    if request.lock is not None:
        held = path / _ASKED
        held.write_text(request.lock, encoding="utf-8")
        runs = [["--no-deps", "--require-hashes", "--requirement", str(held)]]
    else:
        held = path / _CONSTRAINTS
        held.write_text("".join(f"{line}\n" for line in request.constraints), encoding="utf-8")
        alone = ["--no-deps", *request.requirements_no_deps] if request.requirements_no_deps else []
        runs = [["--constraint", str(held), *run] for run in (list(request.requirements), alone) if run]
    for run in runs:
        _run([*pip_, "download", "--quiet", *indexes, *found, *run], "pip download")
    for source in [item for item in sorted(incoming.iterdir()) if item.suffix != ".whl"]:
        _run(
            [*pip_, "wheel", "--quiet", *indexes, "--no-deps", "--wheel-dir", str(incoming), str(source)],
            f"making a wheel of {source.name}",
        )
        source.unlink()


def _finish(path: Path, incoming: Path, request: Request, key: str) -> Wheelhouse:
    """Move the wheels to their place, then write the lock, then the manifest that makes the house whole."""
    wheels: dict[str, int] = {}
    lines: dict[str, str] = {}
    for wheel in sorted(incoming.iterdir()):
        name, version = names.wheel_identity(wheel.name)
        if name in lines:
            raise WheelhouseError(
                f"{name} is asked for twice: {lines[name].split()[0]} and {version}; name one of them"
            )
        lines[name] = f"{name}=={version} --hash=sha256:{digest.of(wheel).sha256}\n"
        wheels[wheel.name] = wheel.stat().st_size
        wheel.replace(path / wheel.name)
    incoming.rmdir()
    for old in path.glob("*.whl"):
        if old.name not in wheels:
            old.unlink()
    (path / LOCK).write_text("".join(lines.values()), encoding="utf-8")
    python = _run([request.python, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], request.python)
    manifest = {"key": key, "python": python.strip(), "wheels": wheels}
    (path / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return Wheelhouse(path, key, python.strip(), wheels)
