# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a virtual environment is now, and what its last finished installation wrote down.

The record (``gpuserve.json`` in the venv's root) gets its key last, when everything is installed and accepted. A venv
without one is unfinished: a run was killed, or somebody else made it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .names import normal

RECORD = "gpuserve.json"
_START_LIMIT_S = 60
# A venv that was killed in its first moments has these and no pyvenv.cfg yet.
_SKELETON = {"bin", "include", "lib", "lib64"}
# Written by pip in the course of an installation, the last of them last (pip/_internal/operations/install/wheel.py).
_LAST_WRITTEN = "RECORD"


class VenvError(Exception):
    """The venv could not be brought to the wanted state; the text says what to do."""


class NoPythonError(VenvError):
    """The Python that is asked for is not there."""


@dataclass(frozen=True)
class Record:
    """What an installation brought.

    ``key`` is the hash of the request (empty while a change goes on), ``python`` the venv's Python as major.minor,
    ``packages`` maps the normal names of what the request brought to versions, ``hashes`` has the file hashes of those
    that a lock named, ``origins`` the URLs of those that came from one.
    """

    key: str
    python: str
    packages: Mapping[str, str]
    hashes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Without a key it only tells what was there before a change that has not come to its end."""
        return bool(self.key)


@dataclass(frozen=True)
class State:
    """What a venv is now.

    ``dead`` says why its Python cannot be used, and is None when it can. ``packages`` maps names in their normal form
    to versions; ``origins`` tells the URL of those that came from one. ``broken`` are left-overs of a killed pip.
    """

    exists: bool
    dead: str | None
    python_version: str | None
    has_pip: bool
    packages: Mapping[str, str]
    origins: Mapping[str, str]
    broken: Sequence[Path]
    record: Record | None


def interpreter(path: Path) -> Path:
    """The Python of the venv at ``path``."""
    return path / "bin" / "python"


def _started(python: Path) -> list[str] | None:
    """``[version]`` or ``[version, pip's version]`` as the interpreter tells them; None when it does not start."""
    code = (
        "import sys\nprint('%d.%d.%d' % sys.version_info[:3])\n"
        "try:\n import pip; print(pip.__version__)\nexcept Exception: pass"
    )
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", code], capture_output=True, text=True, timeout=_START_LIMIT_S, check=False
        )
    except OSError:
        return None
    except subprocess.TimeoutExpired as error:
        # A stuck disk must not make anybody throw the venv away.
        raise VenvError(f"{python} does not answer within {_START_LIMIT_S} s; look at the host's disks") from error
    return done.stdout.split() if done.returncode == 0 and done.stdout.strip() else None


def python_version(python: str) -> str:
    """The version of any interpreter.

    Raises:
        NoPythonError: it is not there or does not start.
        VenvError: it hangs.
    """
    told = _started(Path(python))
    if told is None:
        raise NoPythonError(f"there is no Python that starts as {python}; install it or name another one")
    return told[0]


def minor(version: str) -> str:
    """``3.11`` of ``3.11.2``."""
    return ".".join(version.split(".")[:2])


def _made_for(path: Path) -> str | None:
    """``major.minor`` that the venv was made for, from its pyvenv.cfg."""
    try:
        text = (path / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return None
    # venv and virtualenv write "version", uv writes "version_info".
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", text, re.MULTILINE)
    return found[1] if found else None


def _dead(path: Path, told: list[str] | None) -> str | None:
    """Why the venv's Python cannot be used."""
    python, made_for = interpreter(path), _made_for(path)
    if told is None:
        if python.is_symlink() and not python.exists():
            return f"its Python is a link to {os.path.realpath(python)}, which is not there"
        return "its Python does not start" if os.path.lexists(python) else "it has no Python"
    if made_for is None:
        return "its pyvenv.cfg does not say which Python it was made for"
    if minor(told[0]) != made_for:
        # The packages are in a folder that this Python does not read.
        return f"its Python is {told[0]}, but it was made for {made_for}"
    return None


def inspect(path: Path) -> State:
    """Look at the venv at ``path`` without changing it; a folder that is not there is a state too.

    Raises:
        VenvError: it is neither a venv nor free to become one, or its Python hangs.
    """
    _refuse_what_is_no_venv(path)
    told = _started(interpreter(path))
    dead = _dead(path, told) if path.is_dir() else None
    packages: dict[str, str] = {}
    origins: dict[str, str] = {}
    broken: list[Path] = []
    for site in sorted(path.glob("lib/python*/site-packages")):
        # pip renames what it replaces to ~name, and leaves it when it is killed.
        broken += sorted(site.glob("~*"))
        infos: dict[str, Path] = {}
        for info in sorted(site.glob("*.dist-info")):
            if info.name.startswith("~"):
                continue
            name, dummy, version = info.name[: -len(".dist-info")].rpartition("-")
            name = normal(name)
            if name in infos:
                # Two versions of one package: pip was killed between the two.
                broken += [info, infos[name]]
                packages.pop(name, None)
            elif (info / _LAST_WRITTEN).is_file():
                packages[name] = version
                origin = _origin(info)
                if origin is not None:
                    origins[name] = origin
            else:
                broken.append(info)
            infos[name] = info
    usable = told is not None and dead is None
    return State(
        exists=path.is_dir(),
        dead=dead,
        python_version=told[0] if told is not None and usable else None,
        has_pip=told is not None and usable and len(told) > 1,
        packages=packages,
        origins=origins,
        broken=broken,
        record=read_record(path),
    )


def _origin(info: Path) -> str | None:
    """Where a package that was installed from a URL came from (direct_url.json, PEP 610), as a requirement has it.

    A fragment names the commit, where there is one.
    """
    try:
        told = json.loads((info / "direct_url.json").read_text(encoding="utf-8"))
        url = str(told["url"])
        vcs = told.get("vcs_info")
        if vcs is None:
            return url
        return f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}#{vcs['commit_id']}"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_what_is_no_venv(path: Path) -> None:
    """A venv that is made anew loses what is in its folder, so the folder must be one that is ours to empty."""
    if path.is_symlink() and not path.exists():
        raise VenvError(
            f"{path} is a link to {path.readlink()}, which is not there; remove the link or name another path"
        )
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise VenvError(f"{path} is no folder; name another path")
    names = {item.name for item in path.iterdir()}
    if "pyvenv.cfg" not in names and RECORD not in names and not names <= _SKELETON:
        shown = ", ".join(sorted(names)[:5])
        raise VenvError(f"{path} holds {shown} and is no virtual environment; name another path, or empty it yourself")


def read_record(path: Path) -> Record | None:
    """What was written into the venv; None when there is nothing that can be read."""
    try:
        told = json.loads((path / RECORD).read_text(encoding="utf-8"))
        parts = [dict(told[name]) for name in ("packages", "hashes", "origins")]
        return Record(str(told["key"]), str(told["python"]), *parts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Replace the record, whole or not at all."""
    written = path / f"{RECORD}.new"
    written.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
    if record.finished:
        # After a power failure a record must not stand beside packages that never reached the disk.
        os.sync()
    written.replace(path / RECORD)
