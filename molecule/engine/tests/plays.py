# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the scenario's playbook, and what it said of the container."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCENARIO = Path(__file__).parents[1]
INVENTORY = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "inventory"
HOST = "ct200"


@dataclass(frozen=True)
class Run:
    """What the tasks returned, by their names, and Ansible's count of them."""

    results: dict[str, dict[str, Any]]
    stats: dict[str, int]

    @property
    def changed(self) -> int:
        assert self.stats["failures"] == 0, self.failure
        return self.stats["changed"]

    @property
    def failure(self) -> str:
        """The message that the run ended with."""
        return next(str(one["msg"]) for one in self.results.values() if one.get("failed"))

    @property
    def look(self) -> dict[str, Any]:
        return self._named("Look at the engine's venv")

    @property
    def held(self) -> dict[str, Any]:
        return self._named("Hold the engine's venv")

    def _named(self, words: str) -> dict[str, Any]:
        return next(one for name, one in self.results.items() if words in name)


def start(*arguments: str, **variables: Any) -> subprocess.Popen[str]:
    """Begin a run of the playbook."""
    command = ["ansible-playbook", str(SCENARIO / "converge.yml"), "-i", str(INVENTORY)]
    command += ["--extra-vars", json.dumps(variables), *arguments]
    environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def end(started: subprocess.Popen[str]) -> Run:
    """Wait for a run."""
    stdout, stderr = started.communicate()
    assert stdout.startswith("{"), stdout + stderr
    told = json.loads(stdout)
    tasks = [task for played in told["plays"] for task in played["tasks"]]
    results = {task["task"]["name"]: task["hosts"][HOST] for task in tasks if HOST in task["hosts"]}
    return Run(results, told["stats"][HOST])


def play(*arguments: str, **variables: Any) -> Run:
    """Run the playbook."""
    return end(start(*arguments, **variables))
