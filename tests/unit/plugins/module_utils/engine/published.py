# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published wheels of SGLang that tests read, and the record of what was found in each.

Run as a program it makes the record anew: ``PYTHONPATH=.build/collections:. .build/venv/bin/python -m
tests.unit.plugins.module_utils.engine.published``.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.compressed_tensors import references
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.flags import is_speculative
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.releases import READ
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import EngineInfo, read_engine

RECORD = Path(__file__).with_name("published.json")
RELEASES = [str(version) for version in READ]


def cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("GPUSERVE_CACHE") or Path(home, "gpuserve-sglang")) / "unit-wheels"


def download(requirement: str, folder: Path, digest: str | None = None) -> Path:
    """One wheel, for Python 3.12 on x86-64 whatever this machine is, by the site's own pip settings.

    Raises RuntimeError with pip's last words when it cannot be had.
    """
    wanted = folder / "requirement.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{digest}\n" if digest else f"{requirement}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation=cp", "--python-version=3.12"]
    command += ["--platform=manylinux_2_34_x86_64", "--platform=any", f"--dest={folder}", f"--requirement={wanted}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["pip said nothing"])[-1])
    return next(folder.glob("*.whl"))


def unpacked(requirement: str, digest: str) -> Path:
    """A folder with the Python files and metadata of a wheel, kept under the wheel's digest."""
    folder = cache() / digest[:16]
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder.with_suffix(".lock")).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / ".complete").exists():
                unpack(download(requirement, folder, digest), folder)
                (folder / ".complete").touch()
    return folder


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        read = ("sglang/srt/", "compressed_tensors/")
        for name in archive.namelist():
            if (name.startswith(read) and name.endswith(".py")) or name.endswith(".dist-info/METADATA"):
                archive.extract(name, folder)
    wheel.unlink()


def facts(engine: EngineInfo) -> set[str]:
    """What is known of a release, one line for each thing."""
    lines = {f"layout {engine.layout}", f"python {engine.requires_python}"}
    lines |= {f"algorithm {name}" for name in engine.algorithms}
    lines |= {f"member {name}" for name in engine.members}
    served = re.compile(r'extra == "(runtime-common|srt)"')
    lines |= {f"requires {line}" for line in engine.requires if "extra ==" not in line or served.search(line)}
    lines |= {f"names {item.member}" for item in references(engine.packages.folder)[0]}
    for name, flag in engine.flags.items():
        if is_speculative(name):
            alias = f" alias of {flag.alias_of}" if flag.alias_of else ""
            lines.add(f"flag {name} = {json.dumps(flag.default)}{alias}")
            lines |= {f"choice {name} {choice}" for choice in flag.choices or ()}
    for kind, models in (("base", engine.base_architectures), ("draft", engine.draft_architectures)):
        for name, model in models.items():
            able = [method for method in ("eagle3", "dflash", "embed_head") if getattr(model, method)]
            lines.add(" ".join([kind, name, *able]))
    return lines


def spans(releases: Iterable[str]) -> str:
    """The releases as spans of neighbours: ``0.5.2..0.5.5 0.5.7``."""
    runs: list[list[str]] = []
    for release in sorted(releases, key=RELEASES.index):
        if runs and RELEASES.index(runs[-1][-1]) + 1 == RELEASES.index(release):
            runs[-1].append(release)
        else:
            runs.append([release])
    return " ".join(run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs)


def recorded(release: str) -> set[str]:
    """The facts of a release by the record."""
    at = RELEASES.index(release)
    found = set()
    for fact, told in json.loads(RECORD.read_text())["facts"].items():
        for span in told.split():
            first, _, last = span.partition("..")
            if RELEASES.index(first) <= at <= RELEASES.index(last or first):
                found.add(fact)
    return found


def digests() -> dict[str, str]:
    """The SHA-256 of each release's wheel."""
    wheels: dict[str, str] = json.loads(RECORD.read_text())["wheels"]
    return wheels


def make_record(wheels: dict[str, str]) -> None:
    seen: dict[str, list[str]] = {}
    for release in RELEASES:
        for fact in facts(read_engine(unpacked(f"sglang=={release}", wheels[release]))):
            seen.setdefault(fact, []).append(release)
    told = {fact: spans(releases) for fact, releases in sorted(seen.items())}
    RECORD.write_text(json.dumps({"wheels": wheels, "facts": told}, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    make_record(digests())
