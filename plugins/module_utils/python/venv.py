# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual environment that holds what was asked for, whatever state it was in before.

A venv's own record (``gpuserve.json`` in its root) is written last, when everything is installed. It names the request
by a hash and each package by its version, so that a later look costs one Python start and a directory listing. A venv
without a record is unfinished: a run was killed, or somebody else made it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from ansible_collections.gpuserve.sglang.plugins.module_utils.python.wheelhouse import LOCK

RECORD = "gpuserve.json"
# Debian's python3-pip-whl and python3-venv keep pip's wheel there.
PIP_WHEELS = Path("/usr/share/python-wheels")
CREATORS: Mapping[str, Sequence[str]] = {
    "venv": ("{python}", "-m", "venv", "--clear", "{path}"),
    "virtualenv": ("virtualenv", "--quiet", "--clear", "--python", "{python}", "{path}"),
    "uv": ("uv", "venv", "--quiet", "--clear", "--seed", "--python", "{python}", "{path}"),
}
_START_LIMIT_S = 60
_LAST_LINES = 15


class VenvError(Exception):
    """The venv could not be brought to the wanted state; the text says what to do."""


@dataclass(frozen=True)
class Request:
    """What the venv must hold.

    Either a lock (a requirements file with hashes; a wheelhouse brings its own), or requirements with and without
    their dependencies. ``wheelhouse`` is a folder of wheels: nothing is then asked of any index.
    """

    path: Path
    python: str = "python3"
    creator: str = "auto"
    requirements: tuple[str, ...] = ()
    requirements_no_deps: tuple[str, ...] = ()
    lock: Path | None = None
    wheelhouse: Path | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    exclusive: bool = False

    def lock_file(self) -> Path | None:
        """The lock that counts: the given one, else the wheelhouse's own."""
        if self.lock is None and self.wheelhouse is not None:
            return self.wheelhouse / LOCK
        return self.lock

    def key(self) -> str:
        """A hash of everything that decides which packages are installed.

        Raises:
            VenvError: the lock cannot be read.
        """
        told: list[object] = [sorted(self.requirements), sorted(self.requirements_no_deps), self.exclusive]
        lock = self.lock_file()
        if lock is not None:
            try:
                told = [lock.read_text(encoding="utf-8"), self.exclusive]
            except OSError as error:
                raise VenvError(f"the lock {lock} cannot be read: {error.strerror}") from error
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


class Record(TypedDict):
    """``key`` is the hash of the request, ``packages`` what it brought: names in their normal form to versions."""

    key: str
    packages: dict[str, str]


@dataclass(frozen=True)
class State:
    """What a venv is now. ``packages`` maps names in their normal form to versions; ``broken`` are half-installed."""

    python_version: str | None
    pip_version: str | None
    packages: Mapping[str, str]
    broken: Sequence[Path]
    record: Mapping[str, str] | None
    record_key: str | None


@dataclass
class Outcome:
    """What was wrong, what was done about it, and the packages before and after."""

    problems: list[str]
    repairs: list[str] = field(default_factory=list)
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] | None = None
    python_version: str | None = None


def normal(name: str) -> str:
    """A distribution's name in its normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _python(path: Path) -> Path:
    return path / "bin" / "python"


def _probe(path: Path) -> tuple[str | None, str | None]:
    """``(Python, pip)`` versions as the venv's own interpreter tells them; None for what does not work."""
    code = (
        "import sys\nprint('%d.%d.%d' % sys.version_info[:3])\n"
        "try:\n import pip; print(pip.__version__)\nexcept Exception: pass"
    )
    try:
        done = subprocess.run(
            [str(_python(path)), "-I", "-c", code],
            capture_output=True,
            text=True,
            timeout=_START_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    told = done.stdout.split()
    if done.returncode != 0 or not told:
        return None, None
    return told[0], told[1] if len(told) > 1 else None


def _made_for(path: Path) -> str | None:
    """``major.minor`` that the venv was made for, from its pyvenv.cfg."""
    try:
        text = (path / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return None
    # venv and virtualenv write "version", uv writes "version_info".
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", text, re.MULTILINE)
    return found[1] if found else None


def _site_packages(path: Path) -> list[Path]:
    return sorted(path.glob("lib/python*/site-packages"))


def inspect(path: Path) -> State:
    """Look at the venv at ``path`` without changing it; a folder that is not there is a state too."""
    python_version, pip_version = _probe(path)
    made_for = _made_for(path)
    if python_version is not None and not python_version.startswith(f"{made_for}."):
        # The distribution moved on to another Python: the packages are in a folder that this one does not read.
        python_version = pip_version = None
    packages: dict[str, str] = {}
    broken: list[Path] = []
    for site in _site_packages(path):
        # pip renames what it replaces to ~name, and leaves it when it is killed.
        broken += sorted(site.glob("~*"))
        for info in sorted(site.glob("*.dist-info")):
            name, dummy, version = info.name[: -len(".dist-info")].rpartition("-")
            # pip writes RECORD last (pip/_internal/operations/install/wheel.py), so without it files may be missing.
            if (info / "RECORD").is_file():
                packages[normal(name)] = version
            else:
                broken.append(info)
    record = inspect_record(path)
    key = None if record is None else record["key"]
    return State(python_version, pip_version, packages, broken, None if record is None else record["packages"], key)


def inspect_record(path: Path) -> Record | None:
    """What a finished installation wrote into the venv; None while it is unfinished."""
    try:
        told = json.loads((path / RECORD).read_text(encoding="utf-8"))
        return {"key": str(told["key"]), "packages": dict(told["packages"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def problems(state: State, request: Request, exists: bool) -> list[str]:
    """Everything that keeps the venv from being what is asked for, in words; empty when nothing is to do."""
    if not exists:
        return ["there is no venv yet"]
    if state.python_version is None:
        return ["its Python does not start, or is not the one it was made for"]
    found = []
    if state.pip_version is None:
        found.append("it has no pip")
    if state.broken:
        found.append(f"half-installed: {', '.join(item.name for item in state.broken)}")
    if state.record is None:
        found.append("an earlier installation was not finished")
        return found
    if state.record_key != request.key():
        found.append("other packages are asked for than were installed")
    for name, version in sorted(state.record.items()):
        actual = state.packages.get(name)
        if actual is None:
            found.append(f"{name} {version} is missing")
        elif actual != version:
            found.append(f"{name} is {actual}, installed was {version}")
    if request.exclusive:
        found += [f"{name} does not belong to it" for name in sorted(_foreign(state.packages, state.record))]
    return found


def _foreign(packages: Mapping[str, str], record: Mapping[str, str]) -> set[str]:
    return set(packages) - set(record) - {"pip", "setuptools", "wheel"}


def _run(command: Sequence[str], what: str, offline: bool = False) -> None:
    environment = {name: value for name, value in os.environ.items() if not offline or not name.startswith("PIP_")}
    environment.pop("PYTHONPATH", None)
    if offline:
        # Nothing of the machine's pip settings may point to an index.
        environment["PIP_CONFIG_FILE"] = os.devnull
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise VenvError(f"{what}: {command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        told = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise VenvError(f"{what} ended with {done.returncode}:\n{told}")


def _creator(request: Request) -> Sequence[str]:
    """The command that makes the venv: the one asked for, else the first that is there."""
    names = list(CREATORS) if request.creator == "auto" else [request.creator]
    for name in names:
        command = [part.format(python=request.python, path=request.path) for part in CREATORS[name]]
        if name == "venv":
            try:
                has = subprocess.run([request.python, "-c", "import ensurepip, venv"], capture_output=True, check=False)
            except OSError as error:
                raise VenvError(
                    f"{request.python} cannot be run: {error.strerror}; name a Python that is there"
                ) from error
            if has.returncode == 0 or request.creator == "venv":
                return command
        elif shutil.which(command[0]):
            return command
    raise VenvError(
        f"nothing here can make a venv ({', '.join(names)} were looked for); install the package python3-venv"
    )


def _bootstrap_pip(request: Request) -> str:
    """Bring pip back: by ensurepip, else from a wheel of the wheelhouse or of the distribution."""
    python = str(_python(request.path))
    try:
        _run([python, "-I", "-m", "ensurepip", "--default-pip"], "ensurepip", offline=True)
    except VenvError as error:
        folders = [folder for folder in (request.wheelhouse, PIP_WHEELS) if folder is not None]
        wheels = [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]
        if not wheels:
            raise VenvError(
                f"the venv {request.path} has no pip and none can be brought: {error}; "
                "install the package python3-venv or put pip's wheel into the wheelhouse"
            ) from error
        # A wheel is a zip file that Python can run pip from.
        _run(
            [python, f"{wheels[-1]}/pip", "install", "--no-index", "--quiet", str(wheels[-1])],
            "pip from its wheel",
            offline=True,
        )
        return f"pip was installed from {wheels[-1]}"
    return "pip was installed by ensurepip"


def _installs(request: Request) -> list[list[str]]:
    """The arguments of each pip run that is needed."""
    sources: list[str] = []
    if request.wheelhouse is not None:
        sources = ["--no-index", "--find-links", str(request.wheelhouse)]
    elif request.index_url is not None:
        sources = ["--index-url", request.index_url]
    for url in request.extra_index_urls if request.wheelhouse is None else ():
        sources += ["--extra-index-url", url]
    lock = request.lock_file()
    if lock is not None:
        return [[*sources, "--no-deps", "--require-hashes", "--requirement", str(lock)]]
    runs = []
    if request.requirements:
        runs.append([*sources, *request.requirements])
    if request.requirements_no_deps:
        runs.append([*sources, "--no-deps", *request.requirements_no_deps])
    return runs


def converge(request: Request, check_mode: bool = False) -> Outcome:
    """Bring the venv to what ``request`` asks for, from whatever it is.

    Returns:
        What was wrong and what was done. In check mode ``after`` is None, since nobody resolved the packages.

    Raises:
        VenvError: it could not be done; what was there is kept apart from an interpreter that did not start.
    """
    request.key()
    exists = os.path.lexists(request.path)
    state = inspect(request.path)
    outcome = Outcome(problems(state, request, exists), before=state.packages, python_version=state.python_version)
    if not outcome.problems or check_mode:
        outcome.after = None if outcome.problems else state.packages
        return outcome
    (request.path / RECORD).unlink(missing_ok=True)
    if state.python_version is None:
        request.path.parent.mkdir(parents=True, exist_ok=True)
        _run(_creator(request), f"making the venv {request.path}")
        outcome.repairs.append("the venv was made again" if exists else "the venv was made")
    for item in state.broken:
        if item.exists():
            shutil.rmtree(item) if item.is_dir() else item.unlink()
            outcome.repairs.append(f"{item.name} was removed")
    if inspect(request.path).pip_version is None:
        outcome.repairs.append(_bootstrap_pip(request))
    pip = [str(_python(request.path)), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    for arguments in _installs(request):
        _run([*pip, "install", "--quiet", *arguments], "pip install", offline=request.wheelhouse is not None)
    after = inspect(request.path)
    ours = _ours(request, pip, state, after)
    if request.exclusive:
        foreign = sorted(_foreign(after.packages, ours))
        if foreign:
            _run([*pip, "uninstall", "--yes", "--quiet", *foreign], "pip uninstall")
            outcome.repairs += [f"{name} was removed" for name in foreign]
            after = inspect(request.path)
    installed = sum(state.packages.get(name) != version for name, version in after.packages.items())
    outcome.repairs.append(f"{installed} packages were installed")
    # Written to a neighbour first: a record that is there is whole.
    written = request.path / f"{RECORD}.new"
    written.write_text(json.dumps({"key": request.key(), "packages": ours}, indent=1) + "\n", encoding="utf-8")
    written.replace(request.path / RECORD)
    outcome.after = after.packages
    outcome.python_version = after.python_version
    return outcome


def _ours(request: Request, pip: Sequence[str], before: State, after: State) -> dict[str, str]:
    """Which of the installed packages the request brought: a foreign one must not be missed when it goes."""
    lock = request.lock_file()
    if lock is not None:
        names = {normal(name) for name in re.findall(r"^([A-Za-z0-9][\w.-]*)==", lock.read_text("utf-8"), re.MULTILINE)}
    elif request.exclusive:
        names = _resolved(request, pip)
    else:
        names = set(after.packages) - _foreign(before.packages, before.record or before.packages)
    return {name: version for name, version in after.packages.items() if name in names}


def _resolved(request: Request, pip: Sequence[str]) -> set[str]:
    """The names of all that the requirements need, asked of pip: it says so only when nothing counts as installed."""
    report = request.path / "gpuserve-report.json"
    names: set[str] = set()
    try:
        for arguments in _installs(request):
            command = [*pip, "install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
            _run([*command, *arguments], "pip install --dry-run", offline=request.wheelhouse is not None)
            told = json.loads(report.read_text(encoding="utf-8"))
            names |= {normal(item["metadata"]["name"]) for item in told["install"]}
    finally:
        report.unlink(missing_ok=True)
    return names
