# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root file systems: `base` (a container) and `pvebase` (the Proxmox host), cached by what they are made from."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from lab.instance import locked
from lab.machine import apt_get, remove_tree
from lab.process import FILES, LabError, run

# Debian's releases that a container can have, and that of the Proxmox host and CT 200.
SUITES = {12: "bookworm", 13: "trixie"}
RELEASE = 12
_CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# In namespaces of its own, which end with us: whatever happens, no process and no mount of a build stays behind.
_APART = [
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
]
# ansible.builtin.apt and .pip need python3-apt and python3-packaging; the engine runs lscpu (util-linux).
_BASE = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "procps",
    "kmod",
    "util-linux",
    "iproute2",
    "ifupdown",
    "netbase",
    "iputils-ping",
    "openssh-server",
    "ca-certificates",
    "python3",
    "python3-venv",
    "python3-apt",
    "python3-packaging",
]
PACKAGES = {"base": _BASE, "pvebase": (*_BASE, "lxc", "uidmap", "bridge-utils", "udev", "pciutils")}
HOOKS = {"base": ("base.sh",), "pvebase": ("base.sh", "pvebase.sh")}


@dataclass(frozen=True)
class Image:
    """One root file system; `sources` is the text of its apt sources, `settings` are apt options that it keeps."""

    name: str
    suite: str
    sources: str
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        """The hash of everything that it is made from: this file (packages, options), the hooks, the machine."""
        parts = [Path(__file__).read_bytes(), *((FILES / "images" / hook).read_bytes() for hook in HOOKS[self.name])]
        parts += [text.encode() for text in (self.name, self.suite, self.sources, "\n".join(self.settings))]
        parts += [_CA_BUNDLE.read_bytes() if _CA_BUNDLE.exists() else b""]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()[:16]

    @property
    def path(self) -> Path:
        return cache() / f"rootfs-{self.name}-{self.key}"

    def ensure(self) -> Path:
        """Build it unless it is there; two builders wait for each other, an interrupted one leaves nothing."""
        if self.path.is_dir():
            return self.path
        with locked(self.path.with_suffix(".lock")):
            if not self.path.is_dir():
                print(
                    f"building the root file system `{self.name}` of {self.suite} (once; kept in {self.path})",
                    flush=True,
                )
                partial = self.path.with_suffix(".partial")
                remove_tree(partial)
                try:
                    self._build(partial)
                    partial.rename(self.path)
                finally:
                    remove_tree(partial)
        return self.path

    def _build(self, root: Path) -> None:
        hooks = [f'sh {shlex.quote(str(FILES / "images" / hook))} "$1"' for hook in HOOKS[self.name]]
        command = [*_APART, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
        command += [f"--include={','.join(PACKAGES[self.name])}"]
        command += [f"--aptopt={setting}" for setting in self.settings]
        command += [f"--customize-hook={hook}" for hook in hooks]
        run(
            [*command, self.suite, str(root), "-"],
            stdin=self.sources,
            env={**os.environ, "CA_BUNDLE": str(_CA_BUNDLE) if _CA_BUNDLE.exists() else ""},
        )
        # ansible.builtin.apt takes the lists' age from their folder: empty ones must not look fresh.
        os.utime(root / "var/lib/apt/lists", (0, 0))


def cache() -> Path:
    """Where slow things are kept, under a hash of what they are made from."""
    if folder := os.environ.get("GPUSERVE_CACHE"):
        path = Path(folder).absolute()
    else:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuserve-sglang"
    if re.search(r"[\s:,\\]", str(path)):
        raise LabError(f"GPUSERVE_CACHE is {path}: overlay mounts cannot take a path with spaces, ':', ',' or '\\'")
    path.mkdir(parents=True, exist_ok=True)
    return path


def images(release: int = RELEASE) -> dict[str, Image]:
    """The images of a release of Debian, by name; not built yet."""
    suite = SUITES[release]
    sources = debian_sources(_index_targets(), suite)
    if sources is None:
        apt_get("update")
        sources = debian_sources(_index_targets(), suite)
    if sources is None:
        raise LabError("apt on this machine has no source of Debian's archive; add one in /etc/apt/sources.list.d")
    settings = _apt_settings()
    return {name: Image(name, suite, sources, settings) for name in PACKAGES}


def _index_targets() -> str:
    fields = "$(ORIGIN) $(LABEL) $(REPO_URI)"
    return run(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]).stdout


def debian_sources(targets: str, suite: str) -> str | None:
    """apt sources of Debian's own archive from `apt-get indextargets`, lines of ORIGIN LABEL URI; None without one.

    The archive's address is this machine's; third parties' sources are not taken along.
    """
    archives: dict[str, str] = {}
    for line in targets.splitlines():
        origin, _, rest = line.partition(" ")
        label, _, uri = rest.rpartition(" ")
        if origin == "Debian" and label in ("Debian", "Debian-Security"):
            archives.setdefault(label, uri)
    if "Debian" not in archives:
        return None
    suites = {"Debian": f"{suite} {suite}-updates", "Debian-Security": f"{suite}-security"}
    return "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {suites[label]}\nComponents: main\nSigned-By: {_KEYRING}\n"
        for label, uri in sorted(archives.items())
    )


def _apt_settings() -> tuple[str, ...]:
    """How this machine's apt reaches its archive (a proxy, a mirror of an older day), to be kept in the images."""
    wanted = r"Acquire::(https?::Proxy|Check-Valid-Until|Check-Date) "
    return tuple(sorted(line for line in run(["apt-config", "dump"]).stdout.splitlines() if re.match(wanted, line)))
