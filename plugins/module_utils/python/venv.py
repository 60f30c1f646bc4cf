# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual environment that holds what was asked for, whatever state it was in before.

When nothing is to do, that is known after one start of its Python and a look at a folder: no pip runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from . import names, pip
from .state import (
    NoPythonError,
    Record,
    State,
    VenvError,
    inspect,
    interpreter,
    minor,
    python_version,
    write_record,
)
from .wheelhouse import LOCK, made_for

# Debian's python3-pip-whl keeps pip's wheel there.
PIP_WHEELS = Path("/usr/share/python-wheels")
# Pip is brought afterwards, in one way for all: uv would ask an index for it, venv fails without ensurepip.
CREATORS: Mapping[str, Sequence[str]] = {
    "venv": ("{python}", "-I", "-m", "venv", "--without-pip", "{path}"),
    "virtualenv": ("virtualenv", "--quiet", "--no-download", "--python", "{python}", "{path}"),
    "uv": ("uv", "venv", "--quiet", "--no-project", "--no-python-downloads", "--python", "{python}", "{path}"),
}
_PACKAGE_OF = {"venv": "python3-venv", "virtualenv": "virtualenv", "uv": "uv"}
# What every venv may hold, asked for or not.
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
# How long the installation of an interrupted run is waited for: longer than the engine with all of CUDA takes.
_PATIENCE_S, _PAUSE_S = 900, 0.5

# Names of all that the roots need, as far as it is installed. It runs in the venv, whose pip brings the library for it.
_CLOSURE = """
import importlib.metadata, json, sys
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name as normal
waiting = [(normal(root.name), extra) for text in json.loads(sys.argv[1]) for root in [Requirement(text)]
           for extra in ["", *root.extras]]
seen = set()
while waiting:
    name, extra = waiting.pop()
    if (name, extra) in seen:
        continue
    seen.add((name, extra))
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        continue
    for needed in map(Requirement, lines):
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            waiting += [(normal(needed.name), wanted) for wanted in ["", *needed.extras]]
print(json.dumps(sorted({name for name, _ in seen})))
"""


@dataclass(frozen=True)
class Request:
    """What the venv must hold.

    Either a lock (the text of a requirements file with hashes; a wheelhouse brings its own), or requirements with and
    without their dependencies, held by constraints. ``wheelhouse`` is a folder of wheels: nothing is then asked of any
    index.
    """

    path: Path
    python: str = "python3"
    creator: str = "auto"
    requirements: tuple[str, ...] = ()
    requirements_no_deps: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    lock: str | None = None
    wheelhouse: Path | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    exclusive: bool = False

    @cached_property
    def lock_text(self) -> str | None:
        """The lock that counts: the given one, else the wheelhouse's own.

        Raises:
            VenvError: the wheelhouse has none.
        """
        if self.lock is not None or self.wheelhouse is None:
            return self.lock
        try:
            return (self.wheelhouse / LOCK).read_text(encoding="utf-8")
        except OSError as error:
            raise VenvError(
                f"the wheelhouse's lock {self.wheelhouse / LOCK} cannot be read ({error.strerror}); bring the folder "
                "that playbooks/wheelhouse.yml filled to this host"
            ) from error

    @cached_property
    def locked(self) -> Mapping[str, names.Locked]:
        """What the lock names, empty without one.

        Raises:
            VenvError: a line of it names no package.
        """
        try:
            return names.locked(self.lock_text or "")
        except ValueError as error:
            raise VenvError(f"the lock cannot be used: {error}") from error

    @cached_property
    def urls(self) -> Mapping[str, str]:
        """The packages that are asked for by URL."""
        if self.lock_text is not None:
            return {}
        asked = ((text, names.requirement_url(text)) for text in (*self.requirements, *self.requirements_no_deps))
        # Credentials are not written down with a package, so they cannot be compared.
        return {names.requirement_name(text): re.sub(r"//[^/@]*@", "//", url) for text, url in asked if url is not None}

    @cached_property
    def key(self) -> str:
        """A hash of everything that decides which packages are installed.

        Raises:
            VenvError: nothing is asked for, the lock cannot be read, or a requirement names no package.
        """
        if self.lock_text is None and not self.requirements and not self.requirements_no_deps:
            raise VenvError("nothing is asked for; give requirements, a lock or a wheelhouse")
        told: list[object]
        if self.lock_text is not None:
            told = [names.lock_lines(self.lock_text)] if self.locked else []
        else:
            told = [sorted(self.requirements), sorted(self.requirements_no_deps), sorted(self.constraints)]
            try:
                for text in (*self.requirements, *self.requirements_no_deps, *self.constraints):
                    names.requirement_name(text)
            except ValueError as error:
                raise VenvError(str(error)) from error
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def source(self) -> pip.Source:
        """Where pip gets the packages from."""
        house = None if self.wheelhouse is None else str(self.wheelhouse)
        return pip.Source(house, self.index_url, self.extra_index_urls)


@dataclass
class Outcome:
    """What was wrong, what was done about it, and the packages before and after (None: not resolved in check mode)."""

    problems: list[str]
    before: Mapping[str, str]
    after: Mapping[str, str] | None
    python_version: str | None
    changed: bool
    repairs: list[str] = field(default_factory=list)


def problems(state: State, request: Request) -> list[str]:
    """Everything that keeps the venv from being what is asked for, in words; empty when nothing is to do."""
    if not state.exists:
        return ["there is no venv yet"]
    dead = _why_new(state, request)
    if dead is not None:
        return [dead]
    found = []
    if not state.has_pip:
        found.append("it has no pip")
    if state.broken:
        found.append(f"half-installed: {', '.join(item.name for item in state.broken)}")
    if state.record is None or not state.record.finished:
        found.append("an earlier installation was not finished")
        return found
    if state.record.key != request.key:
        found.append("other packages are asked for than were installed")
    for name, version in sorted(state.record.packages.items()):
        actual = state.packages.get(name)
        if actual is None:
            found.append(f"{name} {version} is missing")
        elif actual != version:
            found.append(f"{name} is {actual}, installed was {version}")
    if request.exclusive:
        found += [f"{name} does not belong to it" for name in _foreign(state.packages, state.record.packages)]
    return found


def _why_new(state: State, request: Request) -> str | None:
    """Why the venv has to be made again."""
    if state.dead is not None or state.python_version is None:
        return state.dead
    asked = shutil.which(request.python)
    # Mostly the same file, which spares the start of another Python.
    if asked is not None and os.path.realpath(asked) == os.path.realpath(interpreter(request.path)):
        return None
    try:
        version = python_version(request.python)
    except NoPythonError:
        return f"its Python is {state.python_version}, asked for is {request.python}, which is not there"
    if minor(version) == minor(state.python_version):
        return None
    return f"its Python is {state.python_version}, asked for is {version}"


def _foreign(packages: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    return sorted(set(packages) - set(ours) - _TOOLS)


def converge(request: Request, check_mode: bool = False, accept: Callable[[Path], None] | None = None) -> Outcome:
    """Bring the venv to what ``request`` asks for, from whatever it is.

    ``accept`` judges the installed packages. What it raises is passed on, and the venv stays unfinished, so that the
    next run judges again.

    Raises:
        VenvError: it could not be done; the next run goes on where this one ended.
    """
    asked = request.key
    state = inspect(request.path)
    outcome = Outcome(problems(state, request), state.packages, state.packages, state.python_version, changed=False)
    if not outcome.problems:
        return outcome
    _foresee(request, state)
    if check_mode:
        outcome.after, outcome.changed = None, True
        return outcome
    try:
        with _alone(request.path) as (held, waited):
            if waited:
                # What an interrupted run left has come to its end since.
                state = inspect(request.path)
                outcome = Outcome(
                    problems(state, request), state.packages, state.packages, state.python_version, changed=False
                )
            if outcome.problems:
                _bring(request, asked, state, outcome, held, accept)
    except pip.PipError as error:
        raise VenvError(str(error)) from error
    return outcome


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[tuple[int, bool]]:
    """Hold the folder, and tell whether that was waited for: an interrupted run leaves its pip working on it.

    What is made meanwhile can be read by the service's user.
    """
    umask = os.umask(0o022)
    try:
        path.mkdir(parents=True, exist_ok=True)
        held = os.open(path, os.O_RDONLY)
        try:
            yield held, _wait_for(held, path)
        finally:
            os.close(held)
    finally:
        os.umask(umask)


def _wait_for(held: int, path: Path) -> bool:
    """Lock the open folder. Returns whether another run had it before."""
    began, waited = time.monotonic(), False
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            waited = True
            if time.monotonic() - began > _PATIENCE_S:
                told = ", ".join(_holders(path)) or "unknown"
                raise VenvError(
                    f"another run is still installing into it after {_PATIENCE_S} s (process {told}); wait for its "
                    f"end, or end it"
                ) from error
            time.sleep(_PAUSE_S)
        else:
            return waited


def _holders(path: Path) -> list[str]:
    """The processes that hold the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Processes come and go, and others' are closed to all but root.
        with contextlib.suppress(OSError):
            if any(os.path.realpath(descriptor) == os.path.realpath(path) for descriptor in (process / "fd").iterdir()):
                found.append(process.name)
    return sorted(set(found) - {str(os.getpid())})


def _bring(
    request: Request,
    asked: str,
    before: State,
    outcome: Outcome,
    held: int,
    accept: Callable[[Path], None] | None,
) -> None:
    path = request.path
    lost: list[str] = []
    if not before.exists or _why_new(before, request) is not None:
        command = _creator(request)
        _clear(path)
        _refuse_a_full_disk(request, {})
        pip.run(command, f"making the venv {path}", inherited=[held])
        outcome.repairs.append("the venv was made again" if before.exists else "the venv was made")
        lost = [] if before.record is None else _foreign(before.packages, before.record.packages)
    else:
        if before.record is not None:
            # Unfinished from here on; what is known of the files stays known.
            write_record(path, replace(before.record, key=""))
        for item in before.broken:
            shutil.rmtree(item) if item.is_dir() else item.unlink()
            outcome.repairs.append(f"{item.name} was removed")
    outcome.repairs += _hold_pip(request)
    outcome.repairs += _install(request, before, inspect(path), held)
    after = inspect(path)
    ours = _ours(request, after)
    if request.exclusive:
        foreign = _foreign(after.packages, ours)
        if foreign:
            _pip(request, ["uninstall", "--yes", "--quiet", *foreign], "pip uninstall", held)
            outcome.repairs += [f"{name} was removed" for name in foreign]
            after = inspect(path)
    else:
        outcome.repairs += [f"{name} was not brought back, since nothing asks for it" for name in lost]
    if accept is not None:
        accept(path)
    hashes = {name: sorted(entry.hashes) for name, entry in request.locked.items() if name in ours}
    origins = {name: origin for name, origin in after.origins.items() if name in ours}
    write_record(path, Record(asked, minor(str(after.python_version)), ours, hashes, origins))
    outcome.after, outcome.python_version = after.packages, after.python_version
    outcome.changed = bool(outcome.repairs)


def _clear(path: Path) -> None:
    """Empty the folder; what says that it is a venv goes last, so that a killed run leaves one."""
    for item in sorted(path.iterdir(), key=lambda item: item.name == "pyvenv.cfg"):
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()


def _foresee(request: Request, state: State) -> None:
    """What can be known of a wheelhouse before anything is changed.

    Raises:
        VenvError: it cannot work.
    """
    anew = not state.exists or _why_new(state, request) is not None
    if not anew:
        _refuse_a_full_disk(request, state.packages)
    elif not state.exists:
        # Of one that is made again nobody knows how much it gives back.
        _refuse_a_full_disk(request, {})
    # A Python that is not there yet may be installed by then.
    with contextlib.suppress(NoPythonError):
        _refuse_a_wheelhouse_of_another_python(
            request, python_version(request.python) if anew else str(state.python_version)
        )


def _refuse_a_wheelhouse_of_another_python(request: Request, version: str) -> None:
    if request.wheelhouse is None:
        return
    filled_by = made_for(request.wheelhouse)
    if filled_by is not None and filled_by != minor(version):
        raise VenvError(
            f"the wheelhouse {request.wheelhouse} has the wheels for Python {filled_by}, but the Python here is "
            f"{version}; fill it with a Python {minor(version)}, or name a Python {filled_by} for the venv"
        )


def _creator(request: Request) -> Sequence[str]:
    """The command that makes the venv: the one asked for, else the first that is there.

    Raises:
        VenvError: none is there.
    """
    python_version(request.python)
    chosen = list(CREATORS) if request.creator == "auto" else [request.creator]
    for name in chosen:
        # A link to the folder is no folder to any of them.
        folder = os.path.realpath(request.path)
        command = [part.format(python=request.python, path=folder) for part in CREATORS[name]]
        if name == "venv":
            needed = "import venv" if _pip_wheels(request) else "import venv, ensurepip"
            with contextlib.suppress(pip.PipError):
                pip.run([request.python, "-I", "-c", needed], needed)
                return command
        elif shutil.which(name):
            return command
    raise VenvError(
        f"nothing here can make a venv ({', '.join(chosen)} {'was' if len(chosen) == 1 else 'were'} looked for); "
        f"install the distribution's package {_PACKAGE_OF[chosen[0]]}"
    )


def _hold_pip(request: Request) -> list[str]:
    """Bring pip back if it does not run: by ensurepip, else from a wheel of the wheelhouse or of the distribution.

    Raises:
        VenvError: there is no pip to be had.
    """
    python = str(interpreter(request.path))
    works = [python, "-I", "-m", "pip", "--version"]
    with contextlib.suppress(pip.PipError):
        pip.run(works, "pip --version")
        return []
    # What remains of it would make the installer believe that it is there.
    for site in request.path.glob("lib/python*/site-packages"):
        for rest in [*site.glob("pip-*.dist-info"), *site.glob("pip")]:
            shutil.rmtree(rest)
    try:
        pip.run([python, "-I", "-m", "ensurepip", "--default-pip"], "ensurepip", offline=True)
        how = "by ensurepip"
    except pip.PipError as error:
        wheels = _pip_wheels(request)
        if not wheels:
            raise VenvError(
                f"it has no pip and none can be brought: {error}\n"
                "fix: install the distribution's package python3-venv, or put pip's wheel into the wheelhouse"
            ) from error
        # A wheel is a zip file that Python can run pip from.
        install = [f"{wheels[0]}/pip", "install", "--no-index", "--quiet", str(wheels[0])]
        pip.run([python, "-I", *install], "pip from its wheel", offline=True)
        how = f"from {wheels[0]}"
    pip.run(works, "pip, just brought,")
    return [f"pip was brought {how}"]


def _pip_wheels(request: Request) -> list[Path]:
    folders = [folder for folder in (request.wheelhouse, PIP_WHEELS) if folder is not None]
    return [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]


def _pip(request: Request, arguments: Sequence[str], what: str, held: int) -> None:
    command = [str(interpreter(request.path)), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    pip.run([*command, *arguments], what, offline=request.wheelhouse is not None, inherited=[held])


def _install(request: Request, before: State, now: State, held: int) -> list[str]:
    """Run pip as often as needed, and tell what it changed."""
    stale = _stale(request, before, now)
    if stale:
        _pip(request, ["uninstall", "--yes", "--quiet", *stale], "pip uninstall", held)
    sources = request.source.arguments()
    if request.lock_text is not None:
        lock = request.path / "gpuserve-lock.txt"
        lock.write_text(request.lock_text, encoding="utf-8")
        runs = [["--no-deps", "--require-hashes", "--requirement", str(lock)]]
    else:
        constraints = request.path / "gpuserve-constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in request.constraints), encoding="utf-8")
        held_by = ["--constraint", str(constraints)]
        runs = [
            [*held_by, *request.requirements] if request.requirements else [],
            [*held_by, "--no-deps", *request.requirements_no_deps] if request.requirements_no_deps else [],
        ]
    for arguments in filter(None, runs):
        _pip(request, ["install", "--quiet", *sources, *arguments], "pip install", held)
    after = inspect(request.path)
    changed = sorted(name for name in after.packages if name in stale or after.packages[name] != now.packages.get(name))
    return [f"{len(changed)} packages were installed"] if changed else []


def _stale(request: Request, before: State, now: State) -> list[str]:
    """Packages that pip would keep for their version, although another file of that version is asked for.

    pip compares versions alone: a nightly build at another URL or a rebuilt wheel of the same version is not replaced.
    """
    came_from = {name: origin.partition("#")[0] for name, origin in now.origins.items()}
    stale = {name for name, url in request.urls.items() if name in now.packages and came_from.get(name) != url}
    if before.record is not None:
        for name, known in before.record.hashes.items():
            entry = request.locked.get(name)
            same_version = name in now.packages and now.packages[name] == before.record.packages.get(name)
            if same_version and known and entry is not None and entry.hashes and not entry.hashes & set(known):
                stale.add(name)
    return sorted(stale - {"pip"})


def _refuse_a_full_disk(request: Request, there: Mapping[str, str]) -> None:
    """What a wheelhouse will unpack to is known before.

    Raises:
        VenvError: the disk has less than that.
    """
    if request.wheelhouse is None:
        return
    needed = 0
    for wheel in request.wheelhouse.glob("*.whl"):
        # What is no wheel is for pip to tell, with the hash that it lacks.
        with contextlib.suppress(OSError, ValueError, zipfile.BadZipFile):
            name, version = names.wheel_identity(wheel.name)
            entry = request.locked.get(name)
            if entry is not None and entry.version == version and name not in there:
                with zipfile.ZipFile(wheel) as opened:
                    needed += sum(item.file_size for item in opened.infolist())
    # What is not there yet will be on the disk of the folder above it.
    there_is = next(folder for folder in (request.path, *request.path.parents) if folder.exists())
    free = shutil.disk_usage(there_is).free
    if needed > free:
        raise VenvError(
            f"the packages unpack to {needed / 1e9:.3f} GB and the disk of {request.path} has {free / 1e9:.3f} GB "
            "free; free some space, or put the venv elsewhere"
        )


def _ours(request: Request, after: State) -> dict[str, str]:
    """Which of the installed packages the request brought: a foreign one must not be missed when it goes."""
    if request.lock_text is not None:
        wanted = set(request.locked)
    else:
        command = [str(interpreter(request.path)), "-I", "-c", _CLOSURE, json.dumps(request.requirements)]
        wanted = set(json.loads(pip.run(command, "reading the packages' metadata")))
        wanted |= {names.requirement_name(text) for text in request.requirements_no_deps}
    return {name: version for name, version in after.packages.items() if name in wanted}
