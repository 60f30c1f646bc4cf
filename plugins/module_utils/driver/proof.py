# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CUDA_HOME: one folder that looks like an installed toolkit wherever its parts lie, proven by compiling and linking.

Wheels keep the run time's library as lib/libcudart.so.13 alone. What builds the engine's kernels (torch, FlashInfer,
TVM-FFI) links with -L$CUDA_HOME/lib64 -lcudart, and -lcuda from its stubs folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files import write_whole
from . import toolkit

RECORD = "proof.json"
# Compiled and linked, never run: it needs nvcc's own headers, CUDA's C++ library, libdevice (expf) and the run time.
SOURCE = """#include <cuda/std/array>
#include <cuda_runtime.h>

__global__ void probe(float *values) {
    cuda::std::array<float, 2> pair = {values[threadIdx.x], 1.0f};
    values[threadIdx.x] = expf(pair[0]) + pair[1];
}

extern "C" int launch(float *values) {
    probe<<<1, 32>>>(values);
    return cudaGetLastError();
}
"""
_DRIVER_LIBRARIES = ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1")
_LAST_LINES = 15


class ProofError(Exception):
    """The toolkit does not compile or link; the text is the end of what nvcc said."""


@dataclass(frozen=True)
class Request:
    """``home`` is the folder to make, ``tools`` one for ninja, ``toolkit`` what they point to."""

    home: Path
    tools: Path
    toolkit: toolkit.Toolkit
    ninja: Path
    architectures: tuple[str, ...]
    compiler: str = "g++"


def wanted_links(request: Request) -> dict[Path, str]:
    """Every link below home and tools, with its target."""
    home, root = request.home, request.toolkit.root
    links = {home / name: str(root / name) for name in ("bin", "include", "nvvm") if (root / name).exists()}
    links[home / "lib"] = "lib64"
    source = root / ("lib64" if (root / "lib64").is_dir() else "lib")
    for path in sorted(source.iterdir()):
        if path.is_file():
            links[home / "lib64" / path.name] = str(path)
    links.setdefault(home / "lib64/libcudart.so", str(toolkit.libraries(root)[0]))
    driver = next((path for path in _DRIVER_LIBRARIES if Path(path).exists()), None)
    if driver is not None:
        links[home / "lib64/stubs/libcuda.so"] = driver
    links[request.tools / "ninja"] = str(request.ninja)
    return links


def present_links(request: Request) -> dict[Path, str]:
    """The links that are there now."""
    folders = (request.home, request.home / "lib64", request.home / "lib64/stubs", request.tools)
    return {
        path: str(path.readlink())
        for folder in folders
        if folder.is_dir() and not folder.is_symlink()
        for path in folder.iterdir()
        if path.is_symlink()
    }


def _stamp(path: Path) -> list[object]:
    try:
        told = path.resolve().stat()
    except OSError:
        return [str(path)]
    return [str(path.resolve()), told.st_size, told.st_mtime_ns]


def key(request: Request, architecture: str) -> str:
    """A hash of what the proof for an architecture depends on."""
    compiler = shutil.which(request.compiler) or request.compiler
    told = [
        SOURCE,
        architecture,
        request.toolkit.version,
        _stamp(request.toolkit.root / "bin/nvcc"),
        _stamp(Path(compiler)),
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def proven(home: Path) -> Mapping[str, str]:
    """The architectures that were proven, with the hash of what that depended on."""
    try:
        told = json.loads((home / RECORD).read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in told.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def unproven(request: Request) -> list[str]:
    """The architectures that have to be compiled for."""
    known = proven(request.home)
    return [name for name in request.architectures if known.get(name) != key(request, name)]


def held(request: Request) -> bool:
    """Whether the links are there, and each architecture was proven with what they point to."""
    return present_links(request) == wanted_links(request) and not unproven(request)


def write_links(wanted: Mapping[Path, str], present: Mapping[Path, str]) -> None:
    """Make the links that are wanted, and remove others."""
    for path in present:
        if path not in wanted:
            path.unlink()
    for path, target in wanted.items():
        if present.get(path) != target:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.new")
            partial.unlink(missing_ok=True)
            partial.symlink_to(target)
            partial.replace(path)


def prove(request: Request) -> None:
    """Compile and link for each architecture that was not proven, and remember it.

    Raises:
        ProofError: nvcc failed, or left no library.
    """
    known = {name: value for name, value in proven(request.home).items() if name in request.architectures}
    for architecture in unproven(request):
        _compile(request, architecture)
        known[architecture] = key(request, architecture)
        write_whole(request.home / RECORD, json.dumps(known, indent=1) + "\n")


def _compile(request: Request, architecture: str) -> None:
    home = request.home
    with tempfile.TemporaryDirectory(prefix="gpuserve-cuda-") as name:
        source, library = Path(name) / "probe.cu", Path(name) / "probe.so"
        source.write_text(SOURCE, encoding="utf-8")
        command = [
            str(home / "bin/nvcc"),
            f"-arch={architecture}",
            "-shared",
            "-Xcompiler",
            "-fPIC",
            "-cudart",
            "shared",
        ]
        command += ["-ccbin", request.compiler, f"-L{home}/lib64", "-o", str(library), str(source)]
        environment = {**os.environ, "CUDA_HOME": str(home), "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        except OSError as error:
            raise ProofError(f"{command[0]}: {error.strerror}") from error
        told = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        if done.returncode != 0:
            raise ProofError(told)
        if not library.is_file() or architecture.encode() not in library.read_bytes():
            raise ProofError(f"nvcc left no machine code for {architecture}: {told}")


def as_lines(links: Mapping[Path, str], architectures: Collection[str]) -> list[str]:
    """Links and proofs as a diff shows them."""
    return [f"{path} -> {target}" for path, target in sorted(links.items())] + [
        f"proven for {name}" for name in sorted(architectures)
    ]
