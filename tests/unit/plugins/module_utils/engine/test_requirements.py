# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.requirements import (
    marker_holds,
    parse_requirement,
    satisfies,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

RELEASES = st.lists(st.integers(0, 3).map(str), min_size=1, max_size=3).map(".".join)
VERSIONS = st.tuples(
    RELEASES,
    st.sampled_from(["", "a1", "rc2"]),
    st.sampled_from(["", ".post1"]),
    st.sampled_from(["", ".dev1"]),
    st.sampled_from(["", "+cu130"]),
).map("".join)
PUBLIC = st.tuples(RELEASES, st.sampled_from(["", "rc1", ".post1", ".dev1"])).map("".join)
CLAUSES = st.one_of(
    st.tuples(st.sampled_from(["==", "!=", ">=", "<=", "<", ">"]), PUBLIC).map("".join),
    st.tuples(st.sampled_from(["==", "!="]), RELEASES).map(lambda pair: f"{pair[0]}{pair[1]}.*"),
    st.tuples(st.just("~="), RELEASES).map(lambda pair: f"{pair[0]}{pair[1]}.0"),
    st.tuples(st.just("=="), RELEASES).map(lambda pair: f"{pair[0]}{pair[1]}+cu130"),
)


@given(VERSIONS, st.lists(CLAUSES, max_size=3).map(",".join))
def test_specifiers_as_the_packaging_library_reads_them(version: str, specifier: str) -> None:
    assert satisfies(specifier, parse_version(version)) == SpecifierSet(specifier).contains(version, prereleases=True)


ENVIRONMENT = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}
ATOMS = st.sampled_from(
    [
        'sys_platform == "linux"',
        'sys_platform != "linux"',
        'platform_machine == "aarch64"',
        "platform_machine != 'arm64'",
        'python_version < "3.11"',
        'python_version >= "3.9"',
        'extra == "all"',
        'extra == "runtime-common"',
        '"x86" in platform_machine',
        'sys_platform not in "win32 darwin"',
    ]
)
MARKERS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join), inner.map(lambda text: f"({text})")
    ),
    max_leaves=6,
)


@given(MARKERS, st.sampled_from(["all", "runtime_common", ""]))
def test_markers_as_the_packaging_library_reads_them(marker: str, extra: str) -> None:
    reference = Marker(marker).evaluate({**ENVIRONMENT, "extra": extra.replace("_", "-")})
    assert marker_holds(marker, ENVIRONMENT, [extra]) == reference


@pytest.mark.parametrize(
    ("line", "name", "specifier", "extras"),
    [
        ("torch==2.9.1", "torch", "==2.9.1", set()),
        ("flashinfer_python[cu13]==0.6.18", "flashinfer-python", "==0.6.18", {"cu13"}),
        ('sglang[runtime_common]; extra == "srt"', "sglang", "", {"runtime-common"}),
        ("apache-tvm-ffi (<0.2,>=0.1.5)", "apache-tvm-ffi", "<0.2,>=0.1.5", set()),
        ("x @ https://example.org/x.whl", "x", "", set()),
    ],
)
def test_requirement(line: str, name: str, specifier: str, extras: set[str]) -> None:
    requirement = parse_requirement(line)
    assert (requirement.name, requirement.specifier, requirement.extras) == (name, specifier, extras)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="not a requirement"):
        parse_requirement("!")
    with pytest.raises(ValueError, match="not a version specifier"):
        satisfies("about 2", parse_version("2"))
    for marker in (
        "sys_platform ==",
        "sys_platform == 'x' x",
        "(sys_platform == 'x'",
        "sys_platform = 'x'; y",
        "who == 'x'",
    ):
        with pytest.raises(ValueError, match=r"marker|compare"):
            marker_holds(marker, ENVIRONMENT)
