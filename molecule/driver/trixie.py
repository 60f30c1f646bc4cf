# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root file system of Debian 13 for apt and dpkg to work in: `python molecule/driver/trixie.py FOLDER REPOSITORY`.

The lab's hosts are Debian 12. What differs in 13 is apt (3.0, which verifies by sqv), and that needs no boot.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from lab.images import cache, images
from lab.instance import locked

_RELEASE = 13
_PACKAGES = "ca-certificates,kmod,python3"


def build(folder: Path, repository: Path) -> None:
    """Make it anew in `folder`, with the repository at /srv/driver."""
    base = images(_RELEASE)["base"]
    key = hashlib.sha256("\0".join([base.sources, *base.settings, _PACKAGES]).encode()).hexdigest()[:16]
    kept = cache() / f"rootfs-{base.suite}-{key}"
    with locked(kept.with_suffix(".lock")):
        if not kept.is_dir():
            partial = kept.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--include={_PACKAGES}"]
            command += [f"--aptopt={setting}" for setting in base.settings]
            subprocess.run([*command, base.suite, str(partial), "-"], input=base.sources, text=True, check=True)
            partial.rename(kept)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cp", "-a", kept, folder], check=True)
    shutil.copytree(repository, folder / "srv/driver")
    told = folder / "var/lib/gpuserve-test/nvidia-version"
    told.parent.mkdir()
    told.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (test)\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
