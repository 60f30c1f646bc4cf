#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hf_snapshot costs, against the tools that do a part of its work, on this machine and from one server.

download  the same files from the same Hub on loopback: `hf download`, which hashes nothing, and hf_snapshot, over
          connections as fast as those of a network; with --rate 0 the CPUs are the limit, and a hash has its price
          until the bytes are on the disk (in a folder on tmpfs there is none to wait for)
no-op     a task of a playbook on a model of 100 files and 20 GB that is there (the files are sparse)
verify    every byte again: sha256sum on all CPUs, and hf_snapshot with verify: sha256

Of several runs that take turns the fastest counts: it is the one that the rest of the machine disturbed least.

Run it with the checkout's own Python (make setup): .build/venv/bin/python benchmarks/download.py
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / ".build/collections")]

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest  # noqa: E402

MODULE = "ansible_collections.gpuserve.sglang.plugins.modules.hf_snapshot"
REPOSITORY = "bench/model"
WORKERS = 8


def timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def module(**parameters: object) -> dict[str, object]:
    """One run of the module, as Ansible runs it on a host."""
    done = subprocess.run(
        [sys.executable, "-m", MODULE, json.dumps({"ANSIBLE_MODULE_ARGS": parameters})],
        env={"PYTHONPATH": str(ROOT / ".build/collections"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    told: dict[str, object] = json.loads(done.stdout)
    if told.get("failed"):
        raise SystemExit(str(told["msg"]))
    return told


@contextlib.contextmanager
def hub(folder: Path, rate: float | None) -> Iterator[str]:
    """A Hub in a process of its own; its endpoint."""
    command = [sys.executable, "-m", "lab.hub", str(folder), *(["--rate", str(rate)] if rate else [])]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        yield next(line.strip() for line in lines if line.startswith("http"))
    finally:
        process.kill()
        process.wait()


def make_model(folder: Path, files: int, size: int) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}\n")
    for number in range(files):
        with (folder / f"model-{number:05}.safetensors").open("wb") as opened:
            for _ in range(size >> 20):
                opened.write(os.urandom(1 << 20))


def bench_download(folder: Path, model: Path, rounds: int, rate: float | None) -> dict[str, object]:
    total = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    theirs, ours = [], []
    with hub(folder / "hub", rate) as endpoint:
        environment = {
            **os.environ,
            "HF_ENDPOINT": endpoint,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(folder / "home"),
        }
        environment["HF_HUB_DISABLE_TELEMETRY"] = environment["HF_HUB_DISABLE_UPDATE_CHECK"] = "1"

        def with_hf(dest: Path) -> None:
            command = [sys.executable, "-m", "huggingface_hub.cli.hf", "download", REPOSITORY]
            command += ["--local-dir", str(dest), "--max-workers", str(WORKERS)]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def with_module(dest: Path) -> None:
            module(
                dest=str(dest),
                repo_id=REPOSITORY,
                allow_moving=True,
                endpoint=endpoint,
                python=sys.executable,
                max_workers=WORKERS,
                reserve_bytes=0,
            )

        for _ in range(rounds):
            for seconds, work in ((theirs, with_hf), (ours, with_module)):
                dest = folder / "dest"
                seconds.append(timed(lambda: (work(dest), os.sync())))  # noqa: B023
                shutil.rmtree(dest)
                os.sync()
        with_module(folder / "kept")
    told = {"bytes": total, "hf_seconds": min(theirs), "ours_seconds": min(ours)}
    return {**told, "ratio": told["hf_seconds"] / told["ours_seconds"], "hf": theirs, "ours": ours}


def bench_verify(folder: Path, rounds: int) -> dict[str, object]:
    dest = folder / "kept"
    total = sum(path.stat().st_size for path in dest.rglob("*") if path.is_file())
    cpus = len(os.sched_getaffinity(0))
    listing = "\0".join(str(path) for path in dest.glob("*.safetensors"))
    command = ["xargs", "-0", "-n1", f"-P{cpus}", "sha256sum"]
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(
            timed(lambda: subprocess.run(command, input=listing, text=True, check=True, stdout=subprocess.DEVNULL))
        )
        parameters = {"dest": str(dest), "repo_id": REPOSITORY, "allow_moving": True, "verify": "sha256"}
        ours.append(timed(lambda: module(**parameters)))  # noqa: B023
    told = {"bytes": total, "cpus": cpus, "sha256sum_seconds": min(theirs)}
    told["ours_seconds"] = min(ours)
    return {**told, "ratio": told["sha256sum_seconds"] / told["ours_seconds"]}


def bench_noop(folder: Path, files: int, size: int) -> dict[str, object]:
    """A task on sparse files: a look at them reads none, so that they need no disk."""
    dest = folder / "sparse"
    dest.mkdir()
    names = ["config.json", *(f"model-{number:05}.safetensors" for number in range(files - 1))]
    held = {}
    for name in names:
        path = dest / name
        path.touch()
        os.truncate(path, size)
        held[name] = manifest.Held(size, hashlib.sha256(name.encode()).hexdigest(), path.stat().st_mtime_ns)
    manifest.Manifest(REPOSITORY, "1" * 40, held).write(dest)
    task = {"gpuserve.sglang.hf_snapshot": {"dest": str(dest), "repo_id": REPOSITORY, "revision": "1" * 40}}

    def play(tasks: int) -> None:
        path = folder / "play.yml"
        head = {"hosts": "localhost", "connection": "local", "gather_facts": False}
        path.write_text(json.dumps([{**head, "tasks": [task] * tasks}]))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", str(path)]
        command += ["-e", f"ansible_python_interpreter={sys.executable}"]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        assert "changed=0" in done.stdout

    # What Ansible's own start costs falls out of the difference.
    task_seconds = (timed(lambda: play(11)) - timed(lambda: play(1))) / 10
    alone = timed(lambda: module(dest=str(dest), repo_id=REPOSITORY, revision="1" * 40))
    return {"files": files, "bytes": files * size, "task_seconds": task_seconds, "module_seconds": alone}


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a figure must reach."""

    name: str
    figure: float
    limit: float
    at_least: bool

    @property
    def reached(self) -> bool:
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{'ok  ' if self.reached else 'MISS'} {self.name}: {self.figure:.2f} (goal {sign} {self.limit})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to work; a new folder in the temporary one by default")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--mib", type=int, default=256, help="size of each file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rate",
        type=float,
        default=25e6,
        help=f"bytes per second of each of {WORKERS} connections (default: %(default).0f); 0: as fast as the CPUs go",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
        folder = Path(made)
        model = folder / "hub" / REPOSITORY
        make_model(model, arguments.files, arguments.mib << 20)
        told = {
            "download": bench_download(folder, model, arguments.rounds, arguments.rate),
            "verify": bench_verify(folder, arguments.rounds),
            "noop": bench_noop(folder, 100, 200_000_000),
        }
    print(json.dumps(told, indent=1))
    goals = (
        Goal("throughput against hf download", float(told["download"]["ratio"]), 0.95, True),
        Goal("verification against sha256sum on all CPUs", float(told["verify"]["ratio"]), 0.8, True),
        Goal("no-op of 100 files and 20 GB, seconds of a task", float(told["noop"]["task_seconds"]), 1.0, False),
    )
    for goal in goals:
        print(goal)
    return 0 if all(goal.reached for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
