# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of the scenario's playbook, and what it said."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCENARIO = Path(__file__).parents[1]
INVENTORY = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "inventory"


@dataclass(frozen=True)
class Run:
    """What each host's tasks returned, by the task's name, and Ansible's count of them."""

    results: dict[str, dict[str, dict[str, Any]]]
    stats: dict[str, dict[str, int]]

    def changed(self, host: str) -> int:
        return self.stats[host]["changed"]

    def failure(self, host: str) -> str:
        """The message that the host's run ended with."""
        assert self.stats[host]["failures"] == 1, self.stats
        message = next(one["msg"] for one in self.results[host].values() if one.get("failed"))
        return message if isinstance(message, str) else "\n".join(message)

    def driver(self, host: str) -> dict[str, Any]:
        """What the role's module returned."""
        return next(one for name, one in self.results[host].items() if "Hold every package" in name)

    def said(self, host: str) -> str:
        """All messages."""
        return "\n".join(str(one.get("msg", "")) for one in self.results[host].values())

    def check(self, host: str, name: str) -> dict[str, str]:
        return next(one for one in self.driver(host)["checks"] if one["id"] == name)


def play(
    limit: str, *arguments: str, inventory: Path = INVENTORY, playbook: str = "converge.yml", **variables: Any
) -> Run:
    """Run a playbook of the scenario for one group."""
    command = ["ansible-playbook", str(SCENARIO / playbook), "-i", str(inventory), "--limit", limit]
    command += ["--extra-vars", json.dumps(variables), *arguments]
    environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    told = json.loads(done.stdout)
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for one in (task for played in told["plays"] for task in played["tasks"]):
        for host, result in one["hosts"].items():
            results.setdefault(host, {})[one["task"]["name"]] = result
    return Run(results, told["stats"])
