# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of a real ansible-playbook on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - gpuserve.sglang.run_lock:
        file: "{{ folder }}/lock"
        break_it: "{{ run_lock_break | default(false) }}"
    - ansible.builtin.wait_for:
        path: "{{ folder }}/go"
        timeout: 60
    - gpuserve.sglang.run_lock:
        file: "{{ folder }}/lock"
        state: absent
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "play.yml").write_text(PLAY)
    return tmp_path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    variables = ["-e", f"folder={folder}", "-e", f"ansible_python_interpreter={sys.executable}"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".build/collections")}
    return subprocess.Popen(
        ["ansible-playbook", "play.yml", "-i", "one,", "-c", "local", *variables, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def taken(folder: Path) -> dict[str, object]:
    for _ in range(300):
        if (folder / "lock").exists():
            return dict(json.loads((folder / "lock").read_text()))
        time.sleep(0.1)
    pytest.fail("no run took the lock")


def test_a_second_run_ends_with_the_name_of_the_first(folder: Path) -> None:
    first = start(folder)
    holder = taken(folder)
    assert holder["pid"] == first.pid
    second = start(folder)
    told = second.communicate(timeout=60)[0]
    assert second.returncode != 0
    assert f"(process {first.pid} there)" in " ".join(told.split())
    (folder / "go").touch()
    told = first.communicate(timeout=60)[0]
    assert first.returncode == 0, told
    assert "changed=0" in told
    assert not (folder / "lock").exists()


@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
def test_a_run_that_was_killed_is_in_nobody_s_way(folder: Path, reaped: bool) -> None:
    first = start(folder)
    taken(folder)
    os.killpg(first.pid, signal.SIGKILL)
    os.waitid(os.P_PID, first.pid, os.WEXITED if reaped else os.WEXITED | os.WNOWAIT)
    (folder / "go").touch()
    second = start(folder)
    told = second.communicate(timeout=60)[0]
    assert second.returncode == 0, told


def test_a_run_elsewhere_is_believed_until_the_lock_is_broken(folder: Path) -> None:
    (folder / "go").touch()
    (folder / "lock").write_text(json.dumps({"who": "bert@laptop", "machine": "m", "boot": "b", "pid": 1, "since": 0}))
    second = start(folder)
    told = " ".join(second.communicate(timeout=60)[0].split())
    assert second.returncode != 0
    assert "bert@laptop works on this host" in told
    broken = start(folder, "-e", "run_lock_break=true")
    told = broken.communicate(timeout=60)[0]
    assert broken.returncode == 0, told


def test_a_lock_that_tells_nothing_is_nobody_s(folder: Path) -> None:
    (folder / "go").touch()
    (folder / "lock").write_text('{"who": "bert@')
    run = start(folder)
    told = run.communicate(timeout=60)[0]
    assert run.returncode == 0, told
    assert not (folder / "lock").exists()


def test_check_mode_takes_nothing(folder: Path) -> None:
    (folder / "go").touch()
    run = start(folder, "--check")
    told = run.communicate(timeout=60)[0]
    assert run.returncode == 0, told
    assert not (folder / "lock").exists()


def test_a_file_that_cannot_be_written_is_named(folder: Path) -> None:
    run = start(folder, "-e", f"folder={folder}/missing")
    told = " ".join(run.communicate(timeout=60)[0].split())
    assert run.returncode != 0
    assert f"{folder}/missing/lock: " in told
    assert "run as root" in told
