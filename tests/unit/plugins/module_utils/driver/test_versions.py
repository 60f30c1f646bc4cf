# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import versions


@pytest.mark.parametrize(
    ("debian", "upstream"),
    [("580.95.05-1", "580.95.05"), ("1:580.95.05-0ubuntu1", "580.95.05"), ("580.95.05", "580.95.05")],
)
def test_upstream(debian: str, upstream: str) -> None:
    assert versions.upstream(debian) == upstream


@pytest.mark.parametrize(
    ("wanted", "well_formed", "exact"),
    [
        ("580.95.05", True, True),
        ("590.44", True, True),
        ("580", True, False),
        ("latest", False, False),
        ("13.0", False, True),
        ("580.95.05-1", False, True),
    ],
)
def test_forms(wanted: str, well_formed: bool, exact: bool) -> None:
    assert (versions.well_formed(wanted), versions.exact(wanted)) == (well_formed, exact)


def test_order_is_by_number() -> None:
    told = ["580.126.09", "580.95.05", "570.172.08", "590.44.01"]
    assert sorted(told, key=versions.order) == ["570.172.08", "580.95.05", "580.126.09", "590.44.01"]


def test_a_branch_fits_its_versions_alone() -> None:
    assert versions.fits("580.95.05", "580")
    assert versions.fits("580.95.05", "580.95.05")
    assert not versions.fits("580.95.05", "58")
    assert not versions.fits("580.95.05", "580.126.09")


@pytest.mark.parametrize(
    ("name", "version", "member"),
    [
        ("libcuda1", "580.95.05-1", True),
        ("nvidia-driver-pinning-580", "580.95.05-1", True),
        ("nvidia-container-toolkit", "1.17.8-1", False),
        ("nvidia-kernel-common", "20220217+3~deb12u1", False),
        ("libcudart11.0", "11.8.89~11.8.0-5~deb12u1", False),
        ("mesa", "580.95.05-1", False),
    ],
)
def test_members(name: str, version: str, member: bool) -> None:
    assert versions.is_member(name, version) is member
