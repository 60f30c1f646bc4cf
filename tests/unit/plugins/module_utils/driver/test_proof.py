# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Against a shell script for nvcc; the real one is seen in the scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import proof, toolkit

# Writes what it was called with, and an output that names the architecture; fails for sm_1.
NVCC = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *-arch=sm_1\\ *) echo "nvcc fatal: Unsupported gpu architecture" >&2; exit 1;; esac
while [ "$1" != -o ]; do case $1 in -arch=*) arch=${{1#-arch=}};; esac; shift; done
[ -e {log}.empty ] && arch=
echo "$arch" > "$2"
"""


@pytest.fixture
def request_(tmp_path: Path) -> proof.Request:
    root = tmp_path / "cu13"
    for part in ("bin/nvcc", "nvvm/bin/cicc", "include/x.h", "lib/libcudart.so.13", "lib/libcudart_static.a"):
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).touch()
    (root / "bin/nvcc").write_text(NVCC.format(log=tmp_path / "log"))
    (root / "bin/nvcc").chmod(0o755)
    (tmp_path / "ninja").touch()
    found = toolkit.Toolkit(root, "13.0")
    return proof.Request(tmp_path / "home", tmp_path / "tools", found, tmp_path / "ninja", ("sm_90", "sm_120"))


def make(request: proof.Request) -> None:
    proof.write_links(proof.wanted_links(request), proof.present_links(request))


def calls(tmp_path: Path) -> int:
    log = tmp_path / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_home_looks_like_an_installation(request_: proof.Request) -> None:
    make(request_)
    home = request_.home
    assert (home / "bin/nvcc").exists()
    assert (home / "include/x.h").exists()
    assert (home / "lib64/libcudart.so").resolve() == request_.toolkit.root / "lib/libcudart.so.13"
    assert (home / "lib/libcudart_static.a").exists()
    assert (request_.tools / "ninja").exists()
    assert proof.present_links(request_) == proof.wanted_links(request_)


def test_links_of_a_former_toolkit_go(request_: proof.Request) -> None:
    make(request_)
    stale = request_.home / "lib64/libold.so.12"
    stale.symlink_to("/nowhere")
    make(request_)
    assert not stale.is_symlink()


def test_each_architecture_is_proven_once(request_: proof.Request, tmp_path: Path) -> None:
    make(request_)
    assert proof.unproven(request_) == ["sm_90", "sm_120"]
    proof.prove(request_)
    proof.prove(request_)
    assert (proof.unproven(request_), calls(tmp_path)) == ([], 2)
    told = (tmp_path / "log").read_text()
    assert "-arch=sm_120 -shared" in told
    assert f"-L{request_.home}/lib64" in told


def test_another_compiler_is_proven_anew(request_: proof.Request, tmp_path: Path) -> None:
    make(request_)
    proof.prove(request_)
    with (request_.toolkit.root / "bin/nvcc").open("a") as file:
        file.write("# another\n")
    assert proof.unproven(request_) == ["sm_90", "sm_120"]


def test_a_failure_is_told_and_not_remembered(request_: proof.Request) -> None:
    make(request_)
    bad = proof.Request(request_.home, request_.tools, request_.toolkit, request_.ninja, ("sm_90", "sm_1"))
    with pytest.raises(proof.ProofError, match="Unsupported gpu architecture"):
        proof.prove(bad)
    assert proof.unproven(bad) == ["sm_1"]


def test_an_output_without_the_architecture_is_no_proof(request_: proof.Request, tmp_path: Path) -> None:
    make(request_)
    (tmp_path / "log.empty").touch()
    with pytest.raises(proof.ProofError, match="no machine code for sm_90"):
        proof.prove(request_)


def test_a_compiler_that_cannot_be_run_is_told(request_: proof.Request) -> None:
    make(request_)
    (request_.toolkit.root / "bin/nvcc").chmod(0o644)
    with pytest.raises(proof.ProofError, match="Permission denied"):
        proof.prove(request_)
