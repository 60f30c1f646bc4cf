# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from lab.instance import Lab
from lab.network import collision, ruleset

LAB = Lab("demo")


def route(dst: str, dev: str = "eth0") -> dict[str, Any]:
    return {"dst": dst, "dev": dev}


@pytest.mark.parametrize(
    "routes",
    [
        [],
        [route("default"), route("192.168.1.0/24")],
        [route(str(LAB.network), LAB.bridge)],
        # No id could avoid these.
        [route("10.0.0.0/8", "vpn0"), route("10.64.0.0/10")],
    ],
)
def test_no_collision(routes: list[dict[str, Any]]) -> None:
    assert collision(LAB, routes, [Lab("other")]) is None


@pytest.mark.parametrize("dst", [str(LAB.network), str(LAB.network.supernet(8)), str(LAB.pve_address)])
def test_collision_with_a_route(dst: str) -> None:
    said = collision(LAB, [route(dst, "vpn0")], [])
    assert said is not None
    assert str(IPv4Network(dst)) in said
    assert "vpn0" in said


def test_collision_with_a_lab() -> None:
    twins: dict[IPv4Network, Lab] = {}
    for number in range(10000):
        lab = Lab(f"x{number}")
        if lab.network in twins:
            break
        twins[lab.network] = lab
    said = collision(lab, [], [twins[lab.network]])
    assert said == f"lab '{twins[lab.network].id}' has the same network, {lab.network}"


def test_ruleset_names_the_lab_alone() -> None:
    text = ruleset(LAB)
    assert f"table ip {LAB.table} {{" in text
    assert f'ip saddr {LAB.network} oifname != "{LAB.bridge}" masquerade' in text
    assert "$" not in text
