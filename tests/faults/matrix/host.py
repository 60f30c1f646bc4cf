# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's two hosts as the fault matrix sees them: commands on them, runs of the main job, the proof after one."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab.hosts import host_command
from lab.instance import Lab
from tests.fixtures import nodes, plays

JOB = "playbooks/k26_eagle3.yml"
UNIT = "sglang@main.service"
VENV = "/opt/sglang/engine-0.5.20"
MODELS = "/srv/models"
BASE, DRAFTER = f"{MODELS}/tiny-llama", f"{MODELS}/tiny-eagle3"
GRANTED = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
# What the lab's Hub serves.
HUB = "/srv/hub/lab"
PORT = 30000
# Under this one speculation costs more than it brings: what the role's gate takes, too.
FLOOR = 1.3
_RUN_LIMIT = 900
# What lies below the models and is no part of one.
_OWN = "-path '*/.gpuserve' -prune -o -name '.gpuserve*' -prune -o"


@dataclass(frozen=True)
class Host:
    """One of the two, reached without its network and without ssh."""

    name: str

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A shell script, %s in it being quoted arguments."""
        text = script % tuple(map(shlex.quote, arguments)) if arguments else script
        return subprocess.run(
            host_command(Lab(Lab.default()), self.name, ["sh", "-c", text]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_RUN_LIMIT,
        )

    def check_output(self, script: str, *arguments: str) -> str:
        """Its output, without the last newline; it must not fail."""
        done = self.run(script, *arguments)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")


PVE, CT = Host("pve"), Host("ct200")


@dataclass(frozen=True)
class Run:
    """A run of the main job: ``said`` is its output without folded lines."""

    status: int
    output: str
    seconds: float

    @property
    def said(self) -> str:
        return plays.unfolded(self.output)

    @property
    def ending(self) -> str:
        """For a test that fails."""
        return "\n".join(self.output.splitlines()[-60:])

    @property
    def last_task(self) -> str:
        """Where it ended; empty if that was before any."""
        return (re.findall(r"^TASK \[(?:\S+ : )?(.+?)\] \*", self.output, re.MULTILINE) or [""])[-1]

    @property
    def repairs(self) -> list[str]:
        """What it changed, as its own list at the end tells."""
        told = self.output.partition("REPAIRS")[2]
        names = re.findall(r"^  - (.+)$", told, re.MULTILINE)
        return [re.sub(r"^\w+ \| ", "", name) for name in names]


@dataclass(frozen=True)
class Running:
    """A run that goes on. It writes into a file: a pipe that nobody reads would stop it."""

    process: subprocess.Popen[str]
    output: IO[str]
    began: float

    def tasks(self) -> int:
        """How many have begun."""
        return Path(f"/proc/self/fd/{self.output.fileno()}").read_bytes().count(b"\nTASK [")

    def end(self) -> Run:
        """Wait for it."""
        status = self.process.wait(_RUN_LIMIT)
        seconds = time.monotonic() - self.began
        self.output.seek(0)
        return Run(status, self.output.read(), seconds)

    def kill(self) -> Run:
        """End it as no handler can catch; a worker of its in the middle of a task ends that first."""
        # It may have ended before.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.end()


def start(**variables: object) -> Running:
    """The main job. Verbose, so that what a look found is in its output."""
    output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the run
    return Running(plays.start(*plays.playbook(JOB, "-v", **variables), output=output), output, time.monotonic())


def run(**variables: object) -> Run:
    return start(**variables).end()


def wait(what: str, script: str, host: Host = CT, seconds: float = 120) -> None:
    """Until a command succeeds on a host."""
    until = time.monotonic() + seconds
    while host.run(script).returncode != 0:
        assert time.monotonic() < until, f"after {seconds} s still not: {what}"
        time.sleep(0.2)


@contextmanager
def playing(**variables: object) -> Iterator[list[Run]]:
    """A run that goes on while the body does something to it; afterwards the list holds it."""
    ended = list[Run]()
    running = start(**variables)
    try:
        yield ended
        ended.append(running.end())
    finally:
        if running.process.poll() is None:
            running.kill()


def models(where: Host = PVE, folder: str = HUB) -> dict[str, str]:
    """The files of the models and their hashes, as they are on a host: those that the Hub has, where none is named."""
    wanted = " ".join(Path(model).name for model in (BASE, DRAFTER))
    told = where.check_output(f"cd {folder} && find {wanted} {_OWN} -type f -print0 | xargs -0r sha256sum")
    return {name: digest for digest, name in (line.split(None, 1) for line in told.splitlines())}


def completion() -> tuple[str, float]:
    """A text of the server's, asked over the network, and its accept length."""
    parameters = {"temperature": 0, "max_new_tokens": 64, "ignore_eos": True}
    body = json.dumps({"text": "hello world", "sampling_params": parameters}).encode()
    request = urllib.request.Request(
        f"http://{Lab(Lab.default()).ct_address}:{PORT}/generate", body, {"Content-Type": "application/json"}
    )
    # The lab is reached directly, whatever proxy this machine has.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        told = json.load(answer)
    return told["text"], told["meta_info"]["spec_accept_length"]


def prove(job: Run, had: dict[str, str], **variables: object) -> None:
    """What is looked at after a first deploy: `job` is the run that has just ended, `had` the models as they were."""
    card = re.search(r"^ *- accept length +(\d+\.\d+)$", job.output, re.MULTILINE)
    assert card is not None, job.ending
    assert float(card[1]) > FLOOR
    text, accept_length = completion()
    assert "serve tokens on a tiny random model" in text
    assert accept_length > FLOOR
    # Permitted by the device rules; the lab has no driver that would answer.
    for node in GRANTED:
        assert CT.check_output("python3 -c %s %s", nodes.OPEN, node) == "ENXIO", node
    assert models(CT, MODELS) == had
    again = run(**variables)
    assert again.status == 0, again.ending
    assert plays.changed(again.output) == {"pve": 0, "ct200": 0}, again.ending
