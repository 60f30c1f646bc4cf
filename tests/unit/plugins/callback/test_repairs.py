# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list at the end of a run, by a real ansible-playbook on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Say something
      ansible.builtin.debug:
        msg: no change
    - name: Hold the file
      ansible.builtin.copy:
        dest: "{{ folder }}/file"
        content: text
        mode: "0600"
"""


@pytest.fixture
def play(tmp_path: Path) -> Path:
    (tmp_path / "play.yml").write_text(PLAY)
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            "ansible-playbook",
            "play.yml",
            "-i",
            "one,",
            "-c",
            "local",
            "-e",
            f"folder={folder}",
            "-e",
            f"ansible_python_interpreter={sys.executable}",
            *arguments,
        ],
        cwd=folder,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".build/collections"),
            "ANSIBLE_CALLBACKS_ENABLED": "gpuserve.sglang.repairs",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.partition("REPAIRS")[2].partition("\n")[2].strip()


def test_what_was_changed_is_listed_and_nothing_is_said_to_be_nothing(play: Path) -> None:
    assert run(play, "--check") == "one: would change 1:\n  - Hold the file"
    assert run(play) == "one: changed 1:\n  - Hold the file"
    assert run(play) == "one: changed nothing"
