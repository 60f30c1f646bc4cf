# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole look at a host, with the host's own parts replaced: its files, its containers, what open(2) says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc import survey as module
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Gpu, LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host import Guest, Guests, State
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.judge import Grant
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.probe import Answer
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.survey import Question, Survey, survey

DEVICES = "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n"
NUMBERS = {"nvidia0": "195:0", "nvidiactl": "195:255", "nvidia-uvm": "511:0", "nvidia-uvm-tools": "511:1"}
GRANTED = "".join(f"dev{n}: /dev/{name},mode=0666\n" for n, name in enumerate(NUMBERS))
# It stands for the one node of the host that container 200 was not given.
OTHER = "/dev/null"


@dataclass
class World:
    """A host with two GPUs and container 200."""

    folder: Path
    text: str = "arch: amd64\nunprivileged: 0\n" + GRANTED
    state: State = field(default_factory=lambda: State(True, 7))
    inside: dict[str, str] = field(default_factory=dict)
    denied: str = "EPERM"
    asked: list[str] = field(default_factory=list)

    @property
    def devices_file(self) -> str:
        return str(self.folder / "devices")

    def look(self, *grants: Grant, **how: object) -> Survey:
        (self.folder / "200.conf").write_text(self.text)
        options = {"style": "dev", "prove": True, "devices_file": self.devices_file, **how}
        return survey(Question(grants or (Grant("200", [0]),), **options))  # type: ignore[arg-type]

    def ask_inside(self, vmid: str, paths: Sequence[str]) -> dict[str, Answer]:
        said = {path: self.inside.get(path, "opens") for path in paths}
        return {path: Answer(path, said[path], NUMBERS.get(path[5:], ""), "0666", "0:0") for path in paths}

    def ask_under_rules(self, folders: Sequence[Path], paths: Sequence[str]) -> dict[str, Answer]:
        self.asked += paths
        return {path: Answer(path, self.denied) for path in paths}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    (tmp_path / "devices").write_text(DEVICES)
    guests = Guests("pve", {"200": Guest("200", "lxc", "pve", str(tmp_path / "200.conf"))})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "detect_backend", lambda: "proxmox")
    monkeypatch.setattr(module, "find_guests", lambda backend: guests)
    monkeypatch.setattr(module, "guest_state", lambda vmid: made.state)
    monkeypatch.setattr(module, "guest_groups", lambda vmid: {44: "video"})
    monkeypatch.setattr(module, "guest_cgroup", lambda pid: [tmp_path])
    monkeypatch.setattr(module, "find_gpus", lambda folder: [Gpu(0, 0, "GPU-a"), Gpu(1, 1, "GPU-b")])
    monkeypatch.setattr(module, "host_nodes", lambda nodes: [*(f"/dev/{name}" for name in NUMBERS), OTHER])
    monkeypatch.setattr(module, "ask_inside", made.ask_inside)
    monkeypatch.setattr(module, "ask_under_rules", made.ask_under_rules)
    return made


def statuses(found: Survey, part: str) -> dict[str, str]:
    return {check.id: check.status for check in found.checks if part in check.id}


def test_all_is_proved(world: World) -> None:
    found = world.look()
    opened = statuses(found, ".open.")
    assert set(opened) == {f"lxc_gpu.200.open./dev/{name}" for name in NUMBERS}
    assert set(opened.values()) == {"pass"}
    assert statuses(found, ".refused.") == {"lxc_gpu.200.refused./dev/null": "pass"}
    assert world.asked == ["/dev/null"]
    assert (found.restart, found.stopped, list(found.grants)) == ((), (), ["200"])


def test_without_proof_nothing_is_opened(world: World) -> None:
    found = world.look(prove=False)
    assert statuses(found, ".open.") == {}
    assert world.asked == []


def test_a_written_rule_that_is_not_in_force_asks_for_a_restart(world: World) -> None:
    world.inside = {"/dev/nvidia-uvm": "EPERM"}
    found = world.look()
    assert statuses(found, ".open./dev/nvidia-uvm")["lxc_gpu.200.open./dev/nvidia-uvm"] == "fail"
    assert found.restart == ("200",)


def test_a_grant_taken_back_asks_for_a_restart(world: World) -> None:
    world.denied = "ENXIO"
    assert world.look().restart == ("200",)


def test_a_wide_rule_asks_for_an_edit_and_not_for_a_restart(world: World) -> None:
    world.denied = "ENXIO"
    world.text += "lxc.cgroup2.devices.allow: c 1:* rwm\n"
    found = world.look()
    assert statuses(found, ".refused.") == {"lxc_gpu.200.refused./dev/null": "fail"}
    assert found.restart == ()


def test_an_unprivileged_container_is_proved_from_inside(world: World) -> None:
    world.text = world.text.replace("unprivileged: 0", "unprivileged: 1")
    world.denied, world.inside = "ENXIO", {"/dev/null": "absent"}
    assert statuses(world.look(), ".refused.") == {"lxc_gpu.200.refused./dev/null": "pass"}


def test_a_privileged_container_could_make_the_node_that_it_lacks(world: World) -> None:
    world.denied, world.inside = "ENXIO", {"/dev/null": "absent"}
    assert statuses(world.look(), ".refused.") == {"lxc_gpu.200.refused./dev/null": "fail"}


def test_a_stopped_container_is_named_and_not_asked(world: World) -> None:
    world.state = State(False)
    found = world.look()
    assert found.stopped == ("200",)
    assert statuses(found, ".running") == {"lxc_gpu.200.running": "warn"}
    assert statuses(found, ".open.") == {}


def test_a_container_that_is_to_have_nothing_need_not_run(world: World) -> None:
    world.state = State(False)
    found = world.look(Grant("200", state="absent"))
    assert (found.stopped, found.grants) == ((), {"200": ()})


def test_nodes_that_the_host_lacks_are_named(world: World) -> None:
    assert "/dev/nvidia0" in world.look(prove=False).nodes_wrong


def test_gpus_may_be_declared(world: World) -> None:
    found = world.look(Grant("200", [2]), gpus=(2,), prove=False)
    assert found.grants["200"][0].numbers == "c 195:2"


def test_a_driver_that_is_not_loaded(world: World) -> None:
    (world.folder / "devices").write_text("Character devices:\n  1 mem\n")
    assert statuses(world.look(), "lxc_gpu.driver") == {"lxc_gpu.driver": "fail"}
    later = world.look(driver_required=False)
    assert statuses(later, "lxc_gpu.driver") == {"lxc_gpu.driver": "skipped"}
    assert later.grants == {}


def test_a_gid_is_asked_of_the_guest(world: World) -> None:
    assert statuses(world.look(Grant("200", [0], gid=44)), ".gid") == {"lxc_gpu.200.gid": "pass"}
    refused = world.look(Grant("200", [0], gid=45))
    assert statuses(refused, ".gid") == {"lxc_gpu.200.gid": "fail"}
    assert refused.grants == {}


def test_an_unknown_container_stops_nothing_but_itself(world: World) -> None:
    found = world.look(Grant("999"), Grant("200", [0]))
    assert statuses(found, ".exists") == {"lxc_gpu.999.exists": "fail", "lxc_gpu.200.exists": "pass"}
    assert list(found.grants) == ["200"]


def test_dev_entries_on_plain_lxc_are_refused(world: World) -> None:
    assert statuses(world.look(backend="lxc"), ".style") == {"lxc_gpu.style": "fail"}


def test_an_unknown_version_is_a_check_that_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(style: str, backend: str) -> str:
        raise LxcError("no pveversion here")

    monkeypatch.setattr(module, "choose_style", unknown)
    found = world.look()
    assert statuses(found, ".style") == {"lxc_gpu.style": "fail"}
    assert found.style == ""


def test_another_user_than_root_is_told_why(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LxcError, match=r"not root; connect as root over ssh .* refused to API tokens"):
        world.look()


@dataclass(frozen=True)
class Part:
    """The host's own part, which is in place or is not."""

    there: bool = True

    def in_place(self) -> bool:
        return self.there


@pytest.fixture
def settled(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "node_state", lambda device: "")
    world.text = "arch: amd64\nunprivileged: 0\n" + "".join(
        f"dev{n}: /dev/{name},mode=0666\n" for n, name in enumerate(NUMBERS)
    )
    return world


def test_nothing_is_left_to_do(settled: World) -> None:
    found = settled.look(prove=False, host_part=Part())
    assert found.settled
    # Not assumed: each node was opened.
    assert set(statuses(found, ".open.").values()) == {"pass"}
    assert len(statuses(found, ".open.")) == len(NUMBERS)


def test_without_the_host_s_part_nothing_is_said(settled: World) -> None:
    assert not settled.look(prove=False).settled


def test_a_host_part_that_is_missing_is_left_to_do(settled: World) -> None:
    found = settled.look(prove=False, host_part=Part(there=False))
    assert (found.settled, statuses(found, ".open.")) == (False, {})


def test_a_missing_entry_is_left_to_do(settled: World) -> None:
    settled.text = settled.text.replace("dev2: /dev/nvidia-uvm,mode=0666\n", "")
    assert not settled.look(prove=False, host_part=Part()).settled


def test_an_entry_too_many_is_left_to_do(settled: World) -> None:
    settled.text += "lxc.cgroup2.devices.allow: c 195:0 rwm\n"
    assert not settled.look(prove=False, host_part=Part()).settled


def test_a_node_that_does_not_open_is_left_to_do_and_no_failure_yet(settled: World) -> None:
    settled.inside = {"/dev/nvidia-uvm": "EPERM"}
    found = settled.look(prove=False, host_part=Part())
    assert not found.settled
    assert statuses(found, ".open.") == {}


def test_a_node_that_opens_without_a_grant_is_left_to_do(settled: World) -> None:
    settled.denied = "ENXIO"
    assert not settled.look(prove=False, host_part=Part()).settled


def test_a_stopped_container_is_left_to_do(settled: World) -> None:
    settled.state = State(False, 0)
    assert not settled.look(prove=False, host_part=Part()).settled


def test_wrong_nodes_are_left_to_do(settled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "node_state", lambda device: "missing")
    assert not settled.look(prove=False, host_part=Part()).settled
