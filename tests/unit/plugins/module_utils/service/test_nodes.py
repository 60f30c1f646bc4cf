# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import nodes
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.nodes import Node

OPEN = Node("/dev/nvidia0", 0o666, 0, "root")
BY_GROUP = Node("/dev/nvidia0", 0o660, 104, "render")
NAMELESS = Node("/dev/nvidiactl", 0o660, 4242, "")


@pytest.mark.parametrize(
    ("node", "given", "closed"),
    [
        (OPEN, {}, False),
        (BY_GROUP, {"render": 104}, False),
        (Node("/dev/nvidia0", 0o666, 104, "render"), {}, False),
        (Node("/dev/nvidia0", 0o664, 104, "render"), {"render": 104}, False),
        (Node("/dev/nvidia0", 0o600, 0, "root"), {}, True),
        (Node("/dev/nvidia0", 0o600, 104, "render"), {}, True),
        (Node("/dev/nvidia0", 0o640, 104, "render"), {"render": 104}, True),
        # root's own group is not given away, and what a container does not have cannot be.
        (Node("/dev/nvidia0", 0o660, 0, "root"), {}, True),
        (Node("/dev/nvidia0", 0o660, 65534, "nogroup"), {}, True),
    ],
)
def test_who_may_use_a_node(node: Node, given: dict[str, int], closed: bool) -> None:
    assert (nodes.groups([node]), node.closed) == (given, closed)


@pytest.mark.parametrize(
    ("found", "status", "actual"),
    [
        ([OPEN], "pass", "1 nodes, open to all"),
        ([OPEN, BY_GROUP, Node("/dev/nvidiactl", 0o660, 44, "video")], "pass", "3 nodes, the unit gets render, video"),
        (
            [BY_GROUP, NAMELESS],
            "fail",
            "/dev/nvidiactl (group 4242, mode 0660): no group of this machine has the id 4242, "
            "so that the service cannot be given it",
        ),
        (
            [OPEN, Node("/dev/nvidia-uvm", 0o600, 0, "root")],
            "warn",
            "/dev/nvidia-uvm (group root, mode 0600): only root may use them",
        ),
        # The driver gives MIG's control to root alone.
        ([OPEN, Node("/dev/nvidia-caps/nvidia-cap1", 0o400, 0, "root")], "pass", "2 nodes, open to all"),
    ],
)
def test_check(found: list[Node], status: str, actual: str) -> None:
    check = nodes.check(found)
    assert check is not None
    assert (check.status, check.actual) == (status, actual)


def test_the_fix_of_a_group_without_a_name() -> None:
    check = nodes.check([NAMELESS])
    assert check is not None
    assert check.fix == "groupadd --gid 4242 nvidia"


def test_without_nodes_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert nodes.look(str(tmp_path / "nvidia")) == []
    assert nodes.look(str(tmp_path / "none" / "nvidia")) == []
    assert nodes.check([]) is None


def test_only_device_nodes_count_those_in_folders_too(tmp_path: Path) -> None:
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "nvidia-caps" / "nvidia-cap1").symlink_to("/dev/null")
    (tmp_path / "nvidia0").symlink_to("/dev/null")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "nvidia1").symlink_to("gone")
    # What an optional bind mount leaves where the host has no node.
    (tmp_path / "nvidia-uvm").touch()
    found = nodes.look(str(tmp_path / "nvidia"))
    assert [node.path for node in found] == [f"{tmp_path}/nvidia-caps/nvidia-cap1", f"{tmp_path}/nvidia0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device node")
def test_owner_and_mode_of_a_real_node(tmp_path: Path) -> None:
    path = tmp_path / "nvidia0"
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    path.chmod(0o660)
    os.chown(path, 0, 1)
    assert nodes.look(str(tmp_path / "nvidia")) == [Node(str(path), 0o660, 1, "daemon")]
    os.chown(path, 0, 4242)
    assert nodes.look(str(tmp_path / "nvidia")) == [Node(str(path), 0o660, 4242, "")]
