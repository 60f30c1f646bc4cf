# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed apt repository of small packages with the names, versions and dependencies of NVIDIA's own.

`python molecule/driver/repository.py FOLDER` makes it:

    FOLDER/repository   the flat repository that hosts install from (suite "./")
    FOLDER/newest       the same with the newest version alone: the others were dropped
    FOLDER/key.asc      the key that both are signed with, FOLDER/wrong.asc one that signs nothing
    FOLDER/driver.run   an installer that puts the libraries of 580.126.09 in place, and nothing of the kernel
    FOLDER/other.run    the same of the newest version

What they have of the real ones: the meta packages and the persistence daemon depend on "this version or newer", so that
they float; the libraries depend on exactly their version; what a container asks for recommends, and the meta packages
depend on, a DKMS package; each branch and each version has a pinning package. What a package's maintainer scripts do is
as little as makes a difference visible: DKMS leaves a module file for each kernel that it has headers of.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

VERSIONS = ("570.172.08", "580.95.05", "580.126.09", "590.44.01")
NEWEST = VERSIONS[-1]
_MULTIARCH = "usr/lib/x86_64-linux-gnu"
_UNIT = """[Unit]
Description=NVIDIA Persistence Daemon

[Service]
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
"""
_DKMS = """#!/bin/sh
# dkms autoinstall: a module file for each kernel that has headers and none of this version yet.
set -e
for kernel in /lib/modules/*; do
    [ -e "$kernel/build" ] || continue
    rm -rf "$kernel/updates/dkms"
    for source in /usr/src/nvidia-*; do
        [ -e "$source/flavour" ] || continue
        mkdir -p "$kernel/updates/dkms"
        cp "$source/flavour" "$kernel/updates/dkms/nvidia.ko"
    done
done
"""
_NVCC = """#!/bin/sh
# nvcc -arch=ARCHITECTURE ... -o FILE ...: a file that names the architecture.
while [ "$1" != -o ]; do
    case $1 in -arch=*) architecture=${1#-arch=} ;; esac
    shift
done
echo "$architecture" > "$2"
"""
_AUTOINSTALL = "#!/bin/sh\nset -e\n[ ! -x /usr/sbin/dkms ] || dkms autoinstall\n"


@dataclass(frozen=True)
class Package:
    """A binary package. `relations` are control fields, `files` maps paths to their text, `scripts` names to theirs."""

    name: str
    version: str
    relations: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)

    def build(self, into: Path, scratch: Path) -> Path:
        """Make the .deb in `into`; its path."""
        root = scratch / f"{self.name}_{self.version}"
        control = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "amd64",
            "Maintainer": "gpuserve contributors <nobody@localhost>",
            **self.relations,
            "Description": "stand-in for a test",
        }
        files = {"DEBIAN/control": "".join(f"{name}: {value}\n" for name, value in control.items()), **self.files}
        files.update({f"DEBIAN/{name}": text for name, text in self.scripts.items()})
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name.removeprefix("DEBIAN/") in self.scripts or "bin/" in name else 0o644)
        made = into / f"{self.name}_{self.version}_amd64.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, made],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return made


def driver(version: str) -> Iterator[Package]:
    """The packages of one driver version."""
    full, branch = f"{version}-1", version.split(".")[0]
    same, newer = f"(= {full})", f"(>= {version})"
    dkms = f"nvidia-kernel-open-dkms {same} | nvidia-kernel-dkms {same}"

    def library(name: str, soname: str, **relations: str) -> Package:
        file = f"{_MULTIARCH}/{soname.rpartition('.so')[0]}.so.{version}"
        return Package(name, full, relations, {file: f"{version}\n"})

    def module(name: str, other: str, flavour: str) -> Package:
        depends = f"dkms, nvidia-kernel-support {newer}, firmware-nvidia-gsp {same}"
        files = {f"usr/src/nvidia-{version}/flavour": f"{flavour} {version}\n"}
        scripts = dict.fromkeys(("postinst", "postrm"), _AUTOINSTALL)
        return Package(name, full, {"Depends": depends, "Conflicts": other, "Replaces": other}, files, scripts)

    def pinning(suffix: str, pattern: str) -> Package:
        relations = dict.fromkeys(("Conflicts", "Provides", "Replaces"), "nvidia-driver-pinning")
        text = f"Package: *nvidia* libcuda* cuda-drivers*\nPin: version {pattern}\nPin-Priority: 1001\n"
        return Package(
            f"nvidia-driver-pinning-{suffix}", full, relations, {"etc/apt/preferences.d/nvidia-driver-pinning": text}
        )

    yield library("libnvidia-ptxjitcompiler1", "libnvidia-ptxjitcompiler.so.1")
    yield library("libnvidia-ml1", "libnvidia-ml.so.1")
    yield library("libcuda1", "libcuda.so.1", Depends=f"libnvidia-ptxjitcompiler1 {same}", Recommends=dkms)
    yield Package("firmware-nvidia-gsp", full)
    yield Package("nvidia-modprobe", full, files={"usr/bin/nvidia-modprobe": "#!/bin/sh\n"})
    yield Package("nvidia-kernel-support", full, {"Depends": f"nvidia-modprobe {newer}"})
    yield module("nvidia-kernel-open-dkms", "nvidia-kernel-dkms", "open")
    yield module("nvidia-kernel-dkms", "nvidia-kernel-open-dkms", "proprietary")
    yield Package("nvidia-persistenced", full, files={"lib/systemd/system/nvidia-persistenced.service": _UNIT})
    yield Package("nvidia-settings", full)
    yield Package("nvidia-driver-libs", full, {"Depends": f"libnvidia-ml1 {same}"})
    yield Package(
        "nvidia-driver-cuda",
        full,
        {"Depends": f"libcuda1 {same}, libnvidia-ml1 {same}, nvidia-persistenced {newer}, {dkms}"},
    )
    yield Package("nvidia-driver", full, {"Depends": f"nvidia-driver-libs {same}, {dkms}"})
    open_set = f"nvidia-driver {newer}, nvidia-driver-cuda {newer}, nvidia-kernel-open-dkms {newer}"
    yield Package("nvidia-open", full, {"Depends": open_set})
    yield Package(f"nvidia-open-{branch}", full, {"Depends": f"nvidia-open {newer}"})
    yield Package(
        "cuda-drivers",
        full,
        {"Depends": f"nvidia-driver {newer}, nvidia-driver-cuda {newer}, nvidia-kernel-dkms {newer}"},
    )
    yield pinning(version, f"{version}-*")
    yield pinning(branch, f"{branch}.*")


def others() -> Iterator[Package]:
    """What the driver's packages need of the distribution, for the kernel that runs here, and CUDA toolkits."""
    kernel = os.uname().release
    yield Package("dkms", "3.99-1", files={"usr/sbin/dkms": _DKMS})
    headers = {f"lib/modules/{kernel}/build/Makefile": "# of the kernel's headers\n"}
    yield Package(f"linux-headers-{kernel}", "1", files=headers, scripts={"postinst": _AUTOINSTALL})
    yield from cuda("12.8")
    yield from cuda("13.0")
    yield Package("ninja-build", "9.99-1", files={"usr/bin/ninja": "#!/bin/sh\n"})


def cuda(version: str) -> Iterator[Package]:
    """A toolkit of one CUDA version, in the parts that NVIDIA ships it in."""
    suffix, root = version.replace(".", "-"), f"usr/local/cuda-{version}"
    major, minor = version.split(".")
    number = int(major) * 1000 + int(minor) * 10
    files = {
        "cuda-nvcc": ("bin/nvcc", "nvvm/bin/cicc", "include/crt/host_defines.h"),
        "cuda-cudart-dev": ("include/cuda_runtime_api.h", "lib64/libcudart.so"),
        "cuda-cccl": ("include/cccl/cuda/std/array",),
    }
    texts = {"bin/nvcc": _NVCC, "include/cuda_runtime_api.h": f"#define CUDART_VERSION {number}\n"}
    for name, paths in files.items():
        yield Package(
            f"{name}-{suffix}", f"{version}.88-1", files={f"{root}/{path}": texts.get(path, "x\n") for path in paths}
        )


def index(folder: Path, home: Path, debs: Sequence[Path]) -> None:
    """Write the index of a flat repository, signed by the key in `home`."""
    stanzas = []
    for deb in debs:
        control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
        data = deb.read_bytes()
        told = f"Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        stanzas.append(control + told)
    packages = "\n".join(stanzas).encode()
    (folder / "Packages").write_bytes(packages)
    release = (
        f"Origin: NVIDIA\nLabel: stand-in\nSuite: stable\nArchitectures: amd64\nDate: {formatdate(usegmt=True)}\n"
        f"SHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n"
    )
    gpg(home, ["--clearsign", "--output", str(folder / "InRelease")], release.encode())


def gpg(home: Path, arguments: Sequence[str], text: bytes = b"") -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]
    return subprocess.run(
        [*command, "--passphrase", "", *arguments], input=text, check=True, capture_output=True
    ).stdout


def key(home: Path, name: str, armoured: Path) -> None:
    home.mkdir(mode=0o700)
    gpg(home, ["--quick-generate-key", f"{name} <{name}@localhost>", "ed25519", "sign", "never"])
    armoured.write_bytes(gpg(home, ["--armor", "--export"]))
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)


def runfile(path: Path, version: str) -> None:
    """An installer as far as the role uses one: silent, without kernel modules, with an uninstaller left behind."""
    libraries = " ".join(f"/{_MULTIARCH}/{name}.so.{version}" for name in ("libcuda", "libnvidia-ml"))
    path.write_text(
        "#!/bin/sh\nset -e\n"
        'case " $* " in *" --no-kernel-modules "*) ;; *) echo "would build a kernel module" >&2; exit 1;; esac\n'
        'case " $* " in *" --silent "*) ;; *) echo "would ask questions" >&2; exit 1;; esac\n'
        f'echo "NVIDIA Accelerated Graphics Driver for Linux-x86_64 {version}"\n'
        f"touch {libraries}\n"
        f"printf '#!/bin/sh\\nrm -f {libraries} /usr/bin/nvidia-uninstall\\n' > /usr/bin/nvidia-uninstall\n"
        "chmod 0755 /usr/bin/nvidia-uninstall\n"
    )
    path.chmod(0o755)


def build(folder: Path) -> None:
    """Make everything anew in `folder`, which is emptied, but stays the same one: a lab may have it mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    scratch = folder / "scratch"
    scratch.mkdir()
    key(scratch / "right", "right", folder / "key.asc")
    key(scratch / "wrong", "wrong", folder / "wrong.asc")
    for name, versions in (("repository", VERSIONS), ("newest", (NEWEST,))):
        (folder / name).mkdir()
        packages = [package for version in versions for package in driver(version)] + list(others())
        debs = [package.build(folder / name, scratch / name) for package in packages]
        index(folder / name, scratch / "right", debs)
    runfile(folder / "driver.run", VERSIONS[2])
    runfile(folder / "other.run", NEWEST)
    subprocess.run(["gpgconf", "--homedir", str(scratch / "right"), "--kill", "all"], check=True)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
