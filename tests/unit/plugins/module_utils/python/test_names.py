# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import names
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename


@pytest.mark.parametrize(
    "text",
    [
        "sglang",
        "sglang==0.5.20",
        "Flashinfer_Python[cu13] == 0.6.18",
        'torch>=2.1 ; python_version > "3.8"',
        "compressed-tensors (>=0.10)",
        "sglang @ https://example.test/sglang-0.5.24.dev1-py3-none-any.whl",
        "sglang[all]@git+https://example.test/sglang.git@abc",
    ],
)
def test_the_name_is_that_of_the_packaging_library(text: str) -> None:
    assert names.requirement_name(text) == canonicalize_name(Requirement(text).name)


@pytest.mark.parametrize(
    "text", ["git+https://example.test/sglang.git", "./sglang.whl", "-e .", "--pre", "/srv/x.whl", ""]
)
def test_what_names_no_package_is_refused_with_the_way_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="NAME @ URL"):
        names.requirement_name(text)


def test_a_url_is_told_without_its_fragment() -> None:
    assert names.requirement_url("a @ https://x.test/a.whl#sha256=12") == "https://x.test/a.whl"
    assert names.requirement_url("a==1") is None


LOCK = """\
# made by a resolver
--extra-index-url https://example.test/simple
torch==2.13.0+cpu ; sys_platform == "linux" \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via sglang
Compressed_Tensors[accelerate]==0.18.0 --hash=sha256:cc  # pinned
sglang @ https://example.test/sglang.whl --hash=sha256:dd
"""


def test_a_lock_as_resolvers_write_it() -> None:
    assert names.locked(LOCK) == {
        "torch": names.Locked("torch", "2.13.0+cpu", frozenset({"sha256:aa", "sha256:bb"})),
        "compressed-tensors": names.Locked("compressed-tensors", "0.18.0", frozenset({"sha256:cc"})),
        "sglang": names.Locked("sglang", None, frozenset({"sha256:dd"})),
    }


def test_comments_and_line_ends_of_a_lock_mean_nothing() -> None:
    assert names.lock_lines("a==1 \\\n  --hash=sha256:aa\n# x\n\n") == names.lock_lines("a==1 --hash=sha256:aa # y")


@pytest.mark.parametrize(
    "name", ["torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", "Typing_Extensions-4.1-1-py3-none-any.whl"]
)
def test_a_wheels_identity_is_that_of_the_packaging_library(name: str) -> None:
    reference = parse_wheel_filename(name)
    assert names.wheel_identity(name) == (reference[0], str(reference[1]))


@pytest.mark.parametrize("name", ["torch-2.13.0.tar.gz", "torch.whl", "a-b-c-d-e-f-g.whl"])
def test_what_is_no_wheel(name: str) -> None:
    with pytest.raises(ValueError, match="is not a wheel"):
        names.wheel_identity(name)
