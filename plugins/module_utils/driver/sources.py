# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's sources and preferences for the driver: what the files hold, and where they lie."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import versions

SOURCES = Path("etc/apt/sources.list.d/gpuserve-nvidia-driver.sources")
PREFERENCES = Path("etc/apt/preferences.d/gpuserve-nvidia-driver.pref")
KEYRINGS = Path("etc/apt/keyrings")
_KEY_NAME = "gpuserve-nvidia-driver"
HEAD = "# Written by gpuserve.sglang.nvidia_driver_packages, which overwrites it.\n"
_FETCH_LIMIT_S = 30
_APT_HELPER = "/usr/lib/apt/apt-helper"


class KeyFetchError(Exception):
    """The repository's key could not be had; the text says why."""


@dataclass(frozen=True)
class Repository:
    """Where the packages come from. ``key`` is armoured text, a path on the host, an https URL, or empty."""

    url: str
    suites: str = "/"
    components: tuple[str, ...] = ()
    key: str = ""

    @property
    def key_url(self) -> str:
        """The key's address, when it has to be fetched."""
        return self.key if "://" in self.key else ""

    def sources(self, keyring: str) -> str:
        """The deb822 text. ``keyring`` is where a fetched key lies."""
        lines = ["Types: deb", f"URIs: {self.url}", f"Suites: {self.suites}"]
        if self.components:
            lines.append(f"Components: {' '.join(self.components)}")
        if "-----BEGIN PGP" in self.key:
            # An empty line would end the stanza; apt reads a lone dot as one (sources.list(5)).
            lines += ["Signed-By:", *(f" {line.strip() or '.'}" for line in self.key.strip().splitlines())]
        elif self.key:
            lines.append(f"Signed-By: {keyring if self.key_url else self.key}")
        return HEAD + "\n".join(lines) + "\n"


def fetch_key(url: str) -> bytes:
    """The key at an https address, fetched as apt fetches, with its proxies.

    Raises:
        KeyFetchError: it is not https, or cannot be fetched.
    """
    if not url.startswith("https://"):
        raise KeyFetchError(f"{url}: a key is fetched over https only, since nothing else proves it")
    with tempfile.TemporaryDirectory(prefix="gpuserve-key-") as folder:
        file = Path(folder) / "key"
        command = [
            _APT_HELPER,
            "--option",
            f"Acquire::https::Timeout={_FETCH_LIMIT_S}",
            "download-file",
            url,
            str(file),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise KeyFetchError(f"{_APT_HELPER}: {error.strerror}") from error
        if done.returncode != 0 or not file.is_file():
            raise KeyFetchError((done.stderr.strip() or done.stdout.strip()).replace("\n", " "))
        return file.read_bytes()


def keyring(data: bytes) -> Path:
    """Where a fetched key is kept: apt tells the two formats apart by the name (sources.list(5))."""
    return KEYRINGS / f"{_KEY_NAME}.{'asc' if data.startswith(b'-----BEGIN') else 'gpg'}"


def keyrings() -> Sequence[Path]:
    """Every place where a fetched key may lie."""
    return [KEYRINGS / f"{_KEY_NAME}.{suffix}" for suffix in ("asc", "gpg")]


def preferences(version: str) -> str:
    """The pin of the whole set to one version.

    Above 1000 it also wins over a newer version that is installed (apt_preferences(5)). What carries another version
    scheme than the driver's is not touched by it, whatever its name.
    """
    return f"{HEAD}Package: {' '.join(versions.PATTERNS)}\nPin: version {version}-*\nPin-Priority: 1001\n"
