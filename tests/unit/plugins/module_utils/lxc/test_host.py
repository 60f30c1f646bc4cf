# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host import (
    State,
    choose_style,
    config_path,
    detect_backend,
    find_guests,
    guest_groups,
    guest_run,
    guest_state,
    run,
)

Tool = Callable[[str, str], None]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Put commands of our own on the path, and no others."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """/etc/pve of a cluster of two nodes, seen on the first."""
    top = tmp_path / "pve"
    for path in ("pve1/lxc/200", "pve1/qemu-server/101", "pve2/lxc/300", "pve1/lxc/9"):
        file = top / "nodes" / f"{path}.conf"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (top / "nodes/pve1/lxc/200.conf.tmp.77").touch()
    (top / "lxc").symlink_to("nodes/pve1/lxc")
    (top / "qemu-server").symlink_to("nodes/pve1/qemu-server")
    return top


def test_guests_of_the_whole_cluster_are_known(cluster: Path) -> None:
    guests = find_guests("proxmox", str(cluster))
    assert guests.node == "pve1"
    assert {vmid: (guest.kind, guest.node) for vmid, guest in guests.all.items()} == {
        "200": ("lxc", "pve1"),
        "9": ("lxc", "pve1"),
        "101": ("qemu", "pve1"),
        "300": ("lxc", "pve2"),
    }
    assert guests.all["200"].path == str(cluster / "lxc/200.conf")
    assert guests.all["300"].path == str(cluster / "nodes/pve2/lxc/300.conf")
    assert guests.containers_here() == ["9", "200"]


def test_a_file_system_that_is_not_mounted_is_told(tmp_path: Path) -> None:
    with pytest.raises(LxcError, match="holds no node's configurations; start its file system: systemctl restart"):
        find_guests("proxmox", str(tmp_path))


def test_guests_of_plain_lxc(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "config").touch()
    (tmp_path / "empty").mkdir()
    guests = find_guests("lxc", str(tmp_path))
    assert {vmid: guest.path for vmid, guest in guests.all.items()} == {"gpu": str(tmp_path / "gpu" / "config")}
    assert guests.containers_here() == ["gpu"]


def test_backend_is_what_the_host_has(tool: Tool) -> None:
    with pytest.raises(LxcError, match="neither pct nor lxc-info; run lxc_gpu on the host of the containers"):
        detect_backend()
    tool("lxc-info", "")
    assert detect_backend() == "lxc"
    tool("pct", "")
    assert detect_backend() == "proxmox"


@pytest.mark.parametrize(
    ("version", "style"),
    [("9.0.3", "dev"), ("8.4.1", "dev"), ("8.1.0", "dev"), ("8.0.9", "cgroup"), ("7.4-17", "cgroup"), ("10.0", "dev")],
)
def test_style_follows_the_version(tool: Tool, version: str, style: str) -> None:
    tool("pveversion", f"echo 'pve-manager/{version}/2a5fa54a8503f96d (running kernel: 6.8.12-11-pve)'")
    assert choose_style("auto", "proxmox") == style


def test_style_of_plain_lxc_needs_no_version(tool: Tool) -> None:
    assert choose_style("auto", "lxc") == "cgroup"


def test_style_that_is_named_is_not_asked_for(tool: Tool) -> None:
    assert choose_style("dev", "proxmox") == "dev"


def test_a_version_that_cannot_be_told_is_told(tool: Tool) -> None:
    with pytest.raises(LxcError, match="no pveversion here"):
        choose_style("auto", "proxmox")
    tool("pveversion", "echo proxmox-ve")
    with pytest.raises(LxcError, match="'proxmox-ve', which names no version; set lxc_gpu_style"):
        choose_style("auto", "proxmox")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("RUNNING\\n4711", State(True, 4711)),
        ("State:          RUNNING\\nPID:            4711", State(True, 4711)),
        ("STOPPED", State(False)),
        ("STOPPING\\n4711", State(False, 4711)),
        ("", State(False)),
    ],
)
def test_state(tool: Tool, answer: str, state: State) -> None:
    tool("lxc-info", f"printf '{answer}\\n'")
    assert guest_state("200") == state


def test_a_command_runs_under_the_containers_rules(tool: Tool) -> None:
    tool("lxc-attach", 'printf "%s " "$@"')
    assert guest_run("200", ["true"]).stdout.split() == [
        *("-n", "200", "--clear-env", "-v"),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        *("-v", "LC_ALL=C", "--", "true"),
    ]


def test_groups_are_the_guests(tool: Tool) -> None:
    tool("lxc-attach", "printf 'root:x:0:\\nvideo:x:44:sglang\\nbroken\\n'")
    assert guest_groups("200") == {0: "root", 44: "video"}


def test_groups_that_cannot_be_had_are_told(tool: Tool) -> None:
    tool("lxc-attach", "echo 'no such container' >&2; exit 1")
    with pytest.raises(LxcError, match="container 200 could not be asked for its groups: no such container"):
        guest_groups("200")


def test_a_missing_command_is_told(tool: Tool) -> None:
    with pytest.raises(LxcError, match="lxc-info is not on this host"):
        run(["lxc-info"])


def test_a_command_that_hangs_is_told(tool: Tool) -> None:
    tool("pct", "exec /bin/sleep 5")
    with pytest.raises(LxcError, match="pct list did not end within 0 s"):
        run(["pct", "list"], seconds=0.1)


def test_where_configurations_are() -> None:
    assert config_path("200", "proxmox") == "/etc/pve/lxc/200.conf"
    assert config_path("gpu", "lxc") == "/var/lib/lxc/gpu/config"
