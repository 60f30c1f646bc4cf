# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's run killed at random points of a first deploy and of an upgrade.

What it has begun on a host goes on there to the end of its task, as after the loss of a controller.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.hosts import close_connections
from lab.instance import VMID, Lab
from tests.faults.matrix import host
from tests.faults.matrix.devices import RULES
from tests.faults.matrix.faults import Fault
from tests.faults.matrix.host import CT, PVE, Run

# Another one for each run, so that each tries other points; the same one for all of pytest's workers.
SEED = os.environ.setdefault("GPUSERVE_FAULT_SEED", str(random.randrange(10**6)))
# The points are spread over a run, one in each part of it: of its time in seconds, and every other one of its tasks. A
# machine that is busy takes longer, installations take most of the time, and most tasks are short.
DEPLOYS, DEPLOY_SECONDS, DEPLOY_TASKS = 20, 115.0, 86
UPGRADES, UPGRADE_SECONDS, UPGRADE_TASKS = 6, 60.0, 66
NEXT = "/opt/next"
_KEPT = f"/root/{VMID}.conf"


def _delta() -> tuple[Path, Path]:
    """What the container changed on its image, and the same as it was before any deploy."""
    delta = Lab(Lab.default()).guest_delta(VMID)
    return delta, delta.with_name("bare")


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", "--no-target-directory", source, target], check=True)


def keep_bare() -> None:
    """Keep the container as it is before any deploy."""
    PVE.check_output(f"pct stop {VMID} && cp {RULES} {_KEPT}")
    _copy(*_delta())
    PVE.check_output(f"pct start {VMID}")


def keep_downloads() -> None:
    """What apt brought does not come anew for each point."""
    delta, bare = _delta()
    if any((bare / "var/cache/apt/archives").glob("*.deb")):
        return
    for folder in ("var/cache/apt", "var/lib/apt"):
        (bare / folder).parent.mkdir(parents=True, exist_ok=True)
        _copy(delta / folder, bare / folder)


def make_bare() -> None:
    """Have a container again that no deploy has touched, on a host that makes no nodes."""
    delta, bare = _delta()
    close_connections(Lab(Lab.default()))
    PVE.check_output(f"pct stop {VMID} && cp {_KEPT} {RULES}")
    PVE.run("systemctl disable --now nvidia-device-nodes")
    PVE.check_output(
        "rm -f /dev/nvidia* /usr/local/sbin/nvidia-device-nodes /etc/udev/rules.d/70-nvidia-device-nodes.rules"
        " /etc/systemd/system/nvidia-device-nodes.service && systemctl daemon-reload"
    )
    shutil.rmtree(delta)
    _copy(bare, delta)
    PVE.check_output(f"pct start {VMID}")
    host.wait("the container is up", "systemctl is-active ssh")


@dataclass(frozen=True)
class Point:
    """``seconds`` after the begin of a run, or of its task of that number."""

    seconds: float
    task: int = 0

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s after the begin of {f'task {self.task} of ' if self.task else ''}"

    @classmethod
    def drawn(cls, what: str, number: int, count: int, seconds: float, tasks: int) -> Point:
        """One in the part ``number`` of ``count``."""
        chance = random.Random(f"{SEED} {what} {number}")
        share = (number + chance.random()) / count
        return cls(chance.uniform(0, 2), 1 + int(share * tasks)) if number % 2 else cls(share * seconds)

    def kill(self, **variables: object) -> Run:
        """A run that dies there."""
        running = host.start(**variables)
        while running.tasks() < self.task and running.process.poll() is None:
            time.sleep(0.05)
        time.sleep(self.seconds)
        return running.kill()


def _kill_deploy(point: Point) -> Run:
    make_bare()
    return point.kill()


def _go_back() -> None:
    back = host.run()
    assert back.status == 0, back.ending
    CT.check_output(f"rm -r {NEXT}")


def _deploys() -> Iterator[Fault]:
    for number in range(DEPLOYS):
        point = Point.drawn("deploy", number, DEPLOYS, DEPLOY_SECONDS, DEPLOY_TASKS)
        yield Fault(
            f"deploy-killed-{number:02}",
            f"The controller is killed {point}a first deploy.",
            partial(_kill_deploy, point),
            tidy=keep_downloads,
            bare=True,
        )


def _upgrades() -> Iterator[Fault]:
    for number in range(UPGRADES):
        point = Point.drawn("upgrade", number, UPGRADES, UPGRADE_SECONDS, UPGRADE_TASKS)
        # Another engine in a venv of its own, and a flag that takes a restart. No two points have the same release.
        upgraded: dict[str, object] = {
            "sglang_install_root": NEXT,
            "sglang_server_venv": f"{NEXT}/{Path(host.VENV).name}",
            "sglang_server_context_length": 1024 + number,
        }
        yield Fault(
            f"upgrade-killed-{number:02}",
            f"The controller is killed {point}an upgrade.",
            partial(point.kill, **upgraded),
            variables=upgraded,
            tidy=_go_back,
        )


FAULTS = (*_deploys(), *_upgrades())
