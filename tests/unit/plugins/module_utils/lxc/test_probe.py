# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc import probe
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.probe import (
    Answer,
    ask_inside,
    ask_under_rules,
    guest_cgroup,
    permitted,
)


@pytest.fixture
def guest_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(vmid: str, argv: Sequence[str], seconds: float = 30.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(argv), capture_output=True, text=True, check=False, env={"PATH": "/bin", "LC_ALL": "C"}
        )

    monkeypatch.setattr(probe, "guest_run", here)


@pytest.mark.usefixtures("guest_is_this_machine")
def test_the_script_opens_and_creates_nothing(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    gone = tmp_path / "gone"
    answers = ask_inside("200", ["/dev/null", str(plain), str(gone)])
    assert answers["/dev/null"] == Answer("/dev/null", "opens", "1:3", "0666", "0:0")
    assert answers[str(plain)].said == "not a character device"
    assert answers[str(gone)].said == "absent"
    assert not gone.exists()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("sh: 4: cannot open /dev/nvidia0: No such device or address", "ENXIO"),
        ("sh: 4: cannot open /dev/nvidia0: Operation not permitted", "EPERM"),
        ("sh: can't open /dev/nvidia0: Permission denied", "EACCES"),
        ("probe: line 4: /dev/nvidia0: Input/output error", "EIO"),
        ("sh: can't open /dev/nvidia0: I/O error", "EIO"),
        ("sh: cannot open /dev/nvidia0: No such device", "ENODEV"),
        ("sh: something else", "sh: something else"),
        ("opens", "opens"),
    ],
)
def test_the_words_of_each_shell(monkeypatch: pytest.MonkeyPatch, message: str, said: str) -> None:
    def answer(vmid: str, argv: Sequence[str], seconds: float = 30.0) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(list(argv), 0, f"/dev/nvidia0\tc3:0:660:0:44\t{message}\n", "")

    monkeypatch.setattr(probe, "guest_run", answer)
    assert ask_inside("200", ["/dev/nvidia0"])["/dev/nvidia0"] == Answer("/dev/nvidia0", said, "195:0", "0660", "0:44")


def test_a_guest_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(vmid: str, argv: Sequence[str], seconds: float = 30.0) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(list(argv), 1, "", "lxc-attach: 200: no init\n")

    monkeypatch.setattr(probe, "guest_run", nothing)
    with pytest.raises(LxcError, match="could not be asked about its devices: lxc-attach: 200: no init; try"):
        ask_inside("200", ["/dev/nvidia0"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("opens", True),
        ("ENXIO", True),
        ("EIO", True),
        ("EPERM", False),
        ("EACCES", False),
        ("absent", False),
        ("ENOENT", False),
    ],
)
def test_what_counts_as_permitted(said: str, expected: bool) -> None:
    assert permitted(Answer("/dev/nvidia0", said)) is expected


def test_the_child_joins_and_opens(tmp_path: Path) -> None:
    procs = tmp_path / "cgroup.procs"
    procs.touch()
    answers = ask_under_rules([tmp_path], ["/dev/null", "/dev/there-is-no-such-node"])
    assert {path: answer.said for path, answer in answers.items()} == {
        "/dev/null": "opens",
        "/dev/there-is-no-such-node": "ENOENT",
    }
    assert procs.read_text().isdigit()


def test_a_cgroup_that_cannot_be_joined_is_told(tmp_path: Path) -> None:
    with pytest.raises(LxcError, match="could not be joined"):
        ask_under_rules([tmp_path / "gone"], ["/dev/null"])


@pytest.mark.parametrize(
    ("lines", "folders"),
    [
        ("0::/lxc/200/ns/init.scope\n", ["lxc/200/ns/init.scope"]),
        ("5:devices:/lxc/200\n0::/\n", ["devices/lxc/200"]),
        ("9:cpu,devices:/lxc/200\n", ["devices/lxc/200"]),
    ],
)
def test_the_cgroup_of_either_version(tmp_path: Path, lines: str, folders: list[str]) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("3:memory:/lxc/200\n" + lines)
    for folder in folders:
        (tmp_path / "fs" / folder).mkdir(parents=True)
        (tmp_path / "fs" / folder / "cgroup.procs").touch()
    found = guest_cgroup(7, str(tmp_path / "proc"), str(tmp_path / "fs"))
    assert found == [tmp_path / "fs" / folder for folder in folders]


def test_a_process_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(LxcError, match="process 7 is gone"):
        guest_cgroup(7, str(tmp_path), str(tmp_path))


def test_a_cgroup_that_is_not_seen_is_told(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text("0::/lxc/200\n")
    with pytest.raises(LxcError, match="is not visible under"):
        guest_cgroup(7, str(tmp_path), str(tmp_path / "fs"))
