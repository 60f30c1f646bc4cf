# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version as Reference

NUMBERS = st.integers(0, 30).map(str)
VERSIONS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "v", "1!"]),
        st.lists(NUMBERS, min_size=1, max_size=4).map(".".join),
        st.one_of(
            st.just(""), st.tuples(st.sampled_from(["a", "b", "rc", ".alpha", "-beta.", "c"]), NUMBERS).map("".join)
        ),
        st.one_of(st.just(""), st.tuples(st.sampled_from([".post", "-", "rev", "_r"]), NUMBERS).map("".join)),
        st.one_of(st.just(""), st.tuples(st.sampled_from([".dev", "dev"]), NUMBERS).map("".join)),
        st.sampled_from(["", "+cu130", "+cu128.7", "+7", "+CU.x"]),
    ),
)


@given(VERSIONS, VERSIONS)
def test_order_is_that_of_the_packaging_library(one: str, other: str) -> None:
    mine, reference = (parse_version(one), parse_version(other)), (Reference(one), Reference(other))
    assert (mine[0] < mine[1], mine[0] == mine[1]) == (reference[0] < reference[1], reference[0] == reference[1])
    assert mine[0].is_prerelease == reference[0].is_prerelease


def test_real_ones_in_order() -> None:
    texts = ["0.4.6.post5", "0.5.2", "0.5.13", "0.5.13.post1", "0.5.24.dev3", "0.5.24rc1", "0.5.24"]
    assert [str(version) for version in sorted(map(parse_version, reversed(texts)))] == texts


def test_local_part_is_dropped() -> None:
    assert parse_version("2.9.1+cu130").without_local() == parse_version("2.9.1")


@pytest.mark.parametrize("text", ["", "latest", "0.5.", "1.0-", "0.5.20 x", "==1"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_version(text)
