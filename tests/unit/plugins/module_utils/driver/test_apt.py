# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import apt
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.apt import AptError, Change, Workspace

SIMULATION = """NOTE: This is only a simulation!
Reading package lists...
Purg nvidia-kernel-dkms [570.172.08-1]
Inst libcuda1 [570.172.08-1] (580.95.05-1 NVIDIA:stable [amd64]) []
Inst dkms (3.0.10-8+deb12u1 Debian:12.9/stable [all])
Conf libcuda1 (580.95.05-1 NVIDIA:stable [amd64])
Remv libfoo:i386 [1.0]
"""
MADISON = """ libcuda1 | 590.44.01-1 | file:/srv/repository ./ Packages
 libcuda1 | 580.95.05-1 | file:/srv/repository ./ Packages
 libcuda1 | 580.95.05-1 | file:/srv/other ./ Packages
"""


def test_simulation() -> None:
    assert apt.parse_simulation(SIMULATION) == [
        Change("nvidia-kernel-dkms", "570.172.08-1", None),
        Change("libcuda1", "570.172.08-1", "580.95.05-1"),
        Change("dkms", None, "3.0.10-8+deb12u1"),
        Change("libfoo", "1.0", None),
    ]


def test_madison() -> None:
    assert apt.parse_madison(MADISON) == {"libcuda1": ["590.44.01-1", "580.95.05-1"]}
    assert apt.parse_madison("N: Unable to locate package libcuda9\n") == {}


def test_complaint_is_what_says_why() -> None:
    unmet = "Reading...\nThe following packages have unmet dependencies:\n libcuda1 : Depends: x but it is not going\n"
    told = apt.complaint(unmet, "E: Unable to correct problems, you have held broken packages.\nN: hint\n")
    assert told == (
        "libcuda1 : Depends: x but it is not going E: Unable to correct problems, you have held broken packages."
    )


@pytest.mark.parametrize(
    "text",
    [
        # apt 2.6 with gpgv, apt 3.0 with sqv
        "W: GPG error: file:/r ./ InRelease: The following signatures couldn't be verified: NO_PUBKEY AAAABBBB",
        "E: The repository 'file:/r ./ InRelease' is not signed.",
        "W: OpenPGP signature verification failed: file:/r ./ InRelease: Missing key 01234567, which is needed",
    ],
)
def test_complaints_about_keys(text: str) -> None:
    assert AptError(text).about_key
    assert AptError(text).missing_key == next((key for key in ("AAAABBBB", "01234567") if key in text), "")


def test_complaints_about_other_things() -> None:
    gone = AptError("E: The repository 'file:/gone ./ Release' does not have a Release file.")
    assert not gone.about_key
    assert not gone.about_other_sources
    assert AptError("E: Conflicting values set for option Signed-By regarding source x").about_other_sources


def test_workspace_starts_as_the_machine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    for name in ("a_Packages", "lock"):
        (lists / name).write_text(name)
    monkeypatch.setattr(apt, "_LISTS", lists)
    with apt.workspace([], []) as space:
        assert (space.lists / "a_Packages").read_text() == "a_Packages"
        assert not (space.lists / "lock").exists()
        folder = space.folder
    assert not folder.exists()


@pytest.mark.parametrize("all_of_them", [False, True])
def test_lists_are_adopted_without_looking_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_of_them: bool
) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "old_Packages").write_text("old")
    os.utime(lists, (1, 1))
    monkeypatch.setattr(apt, "_LISTS", lists)
    (tmp_path / "in-place_Packages").write_text("of a file: source")
    with apt.workspace([], []) as space:
        (space.lists / "new_Packages").write_text("new")
        (space.lists / "linked_Packages").symlink_to(tmp_path / "in-place_Packages")
        space.adopt_lists(all_of_them)
    assert {path.name for path in lists.iterdir()} == {"old_Packages", "new_Packages", "linked_Packages"}
    assert not (lists / "linked_Packages").is_symlink()
    assert (lists.stat().st_mtime == 1) is not all_of_them


def test_apt_is_asked_for_exactly_this(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, SIMULATION, "")

    monkeypatch.setattr(apt.subprocess, "run", run)
    assert len(Workspace(tmp_path).simulate(["libcuda1=580.95.05-1", "dkms-"])) == 4
    command = asked[0]
    assert command[0] == "apt-get"
    assert {"--simulate", "--no-install-recommends", "--allow-downgrades", "--purge"} <= set(command)
    assert f"Dir::State::Lists={tmp_path}/lists" in command
    assert command[command.index("install") + 1 :] == ["libcuda1=580.95.05-1", "dkms-"]


def test_an_error_of_apt_is_raised_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 100, "", "W: old\nE: no such thing\n")
    monkeypatch.setattr(apt.subprocess, "run", lambda *_, **__: answer)
    with pytest.raises(AptError, match="W: old E: no such thing"):
        Workspace(tmp_path).update(own_alone=True)
