# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.machine import Facts, missing

ALL = (1 << 41) - 1
WORKS = dict.fromkeys(("namespaces", "cgroup2", "overlay", "devices"))
GOOD = Facts(
    uid=0,
    capabilities=ALL,
    whole_uid_map=True,
    filesystems=frozenset(["cgroup2", "overlay", "ext4"]),
    apt=True,
    probes=WORKS,
)


def test_good_machine() -> None:
    assert missing(GOOD) == []


@pytest.mark.parametrize(
    ("change", "start", "fix"),
    [
        ({"uid": 1000, "capabilities": 0}, "root: running as uid 1000", "sudo -i"),
        ({"apt": False}, "apt-get: not found", "Debian 12"),
        ({"whole_uid_map": False}, "root: of a user namespace only", "--privileged"),
        ({"capabilities": ALL & ~(1 << 21)}, "CAP_SYS_ADMIN: not held", "--privileged"),
        ({"capabilities": ALL & ~(1 << 12)}, "CAP_NET_ADMIN: not held", "--privileged"),
        ({"capabilities": ALL & ~(1 << 27)}, "CAP_MKNOD: not held", "--privileged"),
        ({"probes": {**WORKS, "cgroup2": "unknown filesystem type"}}, "cgroup2: this machine refuses", "5.8"),
        (
            {"filesystems": frozenset(["ext4"]), "probes": {**WORKS, "overlay": "unknown filesystem type"}},
            "overlay: this machine refuses",
            "modprobe overlay",
        ),
        (
            {"probes": {**WORKS, "overlay": "wrong fs type"}},
            "overlay: this machine refuses overlay mounts (wrong fs",
            "ext4",
        ),
        ({"probes": {**WORKS, "devices": "Operation not permitted"}}, "devices: this machine refuses", "device cgroup"),
        ({"probes": {"namespaces": "unshare failed"}}, "namespaces: this machine refuses", "--privileged"),
    ],
)
def test_one_line_with_the_fix(change: dict[str, Any], start: str, fix: str) -> None:
    (line,) = missing(replace(GOOD, **change))
    assert line.startswith(start)
    assert fix in line


def test_each_missing_thing_has_its_line() -> None:
    assert len(missing(replace(GOOD, capabilities=0, apt=False))) == 4
