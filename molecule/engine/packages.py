# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheelhouses of this scenario. `PYTHONPATH=. python molecule/engine/packages.py FOLDER` makes them:

FOLDER/first, second, third   three releases of a small engine, each with a lock
FOLDER/forced                 the first one with a compressed-tensors that lacks a member it names
FOLDER/changed                the first one with a wheel that is not the one of its lock
FOLDER/hidden                 the published SGLang, locked by URL, which does not tell its version, and 0.8.1 again
FOLDER/mended                 the same with compressed-tensors 0.18.0
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.fixtures import engine_wheels, wheels

# Where the container sees FOLDER.
SEEN_AT = "/srv/engine"
RELEASES = {"first": "0.5.12", "second": "0.5.13.post1", "third": "0.5.14"}
PUBLISHED = "sglang==0.5.20"


def small(folder: Path, version: str, formats: str = "0.18.0") -> None:
    """A small engine, its compressed-tensors, and enough files that an installation can be met in its middle."""
    engine_wheels.sglang(folder, version)
    members = ["dense", "nvfp4_pack_quantized"] if formats == "0.18.0" else ["dense"]
    engine_wheels.compressed_tensors(folder, formats, *members)
    for name in ("bulk_a", "bulk_b"):
        wheels.wheel(folder, name, "1.0", files={f"{name}/m{number}.py": "X = 1\n" * 200 for number in range(1500)})
    wheels.lock(folder)


def published(folder: Path, formats: str) -> None:
    """The published engine, which only its own files tell of, and a compressed-tensors. Nothing that they depend on."""
    folder.mkdir()
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*fetch, "--dest", str(folder), PUBLISHED, f"compressed-tensors=={formats}"], check=True)
    (engine,) = folder.glob("sglang-*.whl")
    (other,) = folder.glob("compressed_tensors-*.whl")
    by_url = f"sglang @ file://{SEEN_AT}/{folder.name}/{engine.name} --hash={wheels.sha256(engine)}\n"
    (folder / "lock.txt").write_text(by_url + wheels.lock_text([other]), encoding="utf-8")


def build(folder: Path) -> None:
    """Make all of them anew in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, version in RELEASES.items():
        small(folder / name, version)
    small(folder / "forced", RELEASES["first"], formats="0.8.1")
    small(folder / "changed", RELEASES["first"])
    wheels.wheel(folder / "changed", "bulk_b", "1.0")
    published(folder / "hidden", "0.8.1")
    published(folder / "mended", "0.18.0")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
