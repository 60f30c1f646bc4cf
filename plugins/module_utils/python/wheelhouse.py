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
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock.txt"
MANIFEST = "wheelhouse.json"
_LAST_LINES = 15


class WheelhouseError(Exception):
    """The wheelhouse could not be made or is not whole; the text says what to do."""


@dataclass(frozen=True)
class Request:
    """What must be in the house: requirements with their dependencies, and ones whose dependencies are left out."""

    requirements: tuple[str, ...]
    requirements_no_deps: tuple[str, ...]
    python: str

    def key(self) -> str:
        """A hash of the request and of the interpreter it is for: the same key means the same wheels will do."""
        version = _run([self.python, "-VV"]).strip()
        told = json.dumps([sorted(self.requirements), sorted(self.requirements_no_deps), version])
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True)
class Wheelhouse:
    """A finished house. ``wheels`` maps file name to size in bytes."""

    path: Path
    key: str
    wheels: dict[str, int]

    @property
    def size(self) -> int:
        """All wheels together, in bytes."""
        return sum(self.wheels.values())


def _run(command: Sequence[str]) -> str:
    """Run a command and return its stdout; a failure carries the last lines it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise WheelhouseError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        told = (done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:]
        raise WheelhouseError(f"{' '.join(command)} ended with {done.returncode}:\n" + "\n".join(told))
    return done.stdout


def read(path: Path) -> Wheelhouse | None:
    """The finished house at ``path``, or None when there is none or a wheel is missing or has another size."""
    try:
        told = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        house = Wheelhouse(path, told["key"], dict(told["wheels"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    for name, size in house.wheels.items():
        wheel = path / name
        if not wheel.is_file() or wheel.stat().st_size != size:
            return None
    return house if (path / LOCK).is_file() else None


def wheel_identity(name: str) -> tuple[str, str]:
    """``(distribution, version)`` of a wheel's file name, the distribution in its normal form (PEP 427, PEP 503)."""
    parts = name[: -len(".whl")].split("-")
    if not name.endswith(".whl") or len(parts) not in (5, 6):
        raise WheelhouseError(f"{name} is not a wheel's file name")
    return parts[0].replace("_", "-").replace(".", "-").lower(), parts[1]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the house's lock: two controllers that share a folder must not fill it at once."""
    path.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(path: Path, request: Request) -> tuple[Wheelhouse, bool]:
    """Make the house at ``path`` what ``request`` asks for.

    Returns the house and whether anything was changed.

    Raises:
        WheelhouseError: pip could not get or build a wheel.
    """
    with _only_one(path):
        key = request.key()
        house = read(path)
        if house is not None and house.key == key:
            return house, False
        pip = [request.python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        (path / MANIFEST).unlink(missing_ok=True)
        # A wheel left by an earlier request would end in the lock of this one.
        incoming = path / "incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        found = ["--find-links", str(path), "--dest", str(incoming)]
        if request.requirements:
            _run([*pip, "download", "--quiet", *found, *request.requirements])
        if request.requirements_no_deps:
            _run([*pip, "download", "--quiet", "--no-deps", *found, *request.requirements_no_deps])
        for source in [item for item in sorted(incoming.iterdir()) if item.suffix != ".whl"]:
            _run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(incoming), str(source)])
            source.unlink()
        return _finish(path, incoming, key), True


def _finish(path: Path, incoming: Path, key: str) -> Wheelhouse:
    """Move the wheels to their place, then write the lock, then the manifest that makes the house whole."""
    for old in path.glob("*.whl"):
        old.unlink()
    wheels: dict[str, int] = {}
    lines = []
    for wheel in sorted(incoming.iterdir()):
        distribution, version = wheel_identity(wheel.name)
        lines.append(f"{distribution}=={version} --hash=sha256:{_sha256(wheel)}\n")
        wheels[wheel.name] = wheel.stat().st_size
        wheel.rename(path / wheel.name)
    incoming.rmdir()
    (path / LOCK).write_text("".join(lines), encoding="utf-8")
    (path / MANIFEST).write_text(json.dumps({"key": key, "wheels": wheels}, indent=1) + "\n", encoding="utf-8")
    return Wheelhouse(path, key, wheels)
