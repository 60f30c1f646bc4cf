# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import job, lock, space, trouble
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Progress, Report

CONTEXT = multiprocessing.get_context("fork")


def ended(status: Path) -> dict[str, Any]:
    """The status once it holds a result."""
    for _ in range(500):
        told: dict[str, Any] = json.loads(status.read_text())
        if "result" in told:
            return told
        time.sleep(0.02)
    raise AssertionError("no result came")


def start(folder: Path, work: Any) -> Path:
    """Start a job as a module does, in a process that ends at once."""
    status = job.Status(folder)

    def module() -> None:
        job.start(status, work, lock.Lock(folder, "lab/tiny"))

    process = CONTEXT.Process(target=module)
    process.start()
    process.join()
    return status.path


def test_a_job_outlives_the_one_who_began_it_and_tells_its_result(tmp_path: Path) -> None:
    def work(report: Report) -> dict[str, Any]:
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        report(Progress("bring", 1, 2, 0, 1))
        return {"changed": True, "parent": os.getppid()}

    status = start(tmp_path, work)
    owner = lock.read(tmp_path)
    assert owner is not None
    assert owner.pid == json.loads(status.read_text())["pid"] != os.getpid()
    with pytest.raises(lock.Busy, match=f"process {owner.pid} on {socket.gethostname()}, which brings lab/tiny since"):
        lock.Lock(tmp_path, "other")
    (tmp_path / "go").touch()
    assert ended(status)["result"]["changed"]


def test_a_job_that_fails_unforeseen_says_so(tmp_path: Path) -> None:
    def work(report: Report) -> dict[str, Any]:
        raise ZeroDivisionError("by nought")

    assert ended(start(tmp_path, work))["result"] == {
        "failed": True,
        "msg": "the transfer ended with ZeroDivisionError: by nought",
    }


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    first = lock.Lock(tmp_path, "one")
    with pytest.raises(lock.Busy):
        lock.Lock(tmp_path, "two")
    first.release()
    lock.Lock(tmp_path, "two").release()


def test_a_full_disk_does_not_silence_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = job.Status(tmp_path)
    status.report(Progress("bring", 1, 2, 0, 1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    status.end({"failed": True, "msg": "the disk is full"})
    assert json.loads(status.path.read_text())["result"]["msg"] == "the disk is full"


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        (Progress("begin", 0, 0, 0, 0), "begins"),
        (
            Progress("bring", 119_000_000_000, 595_000_000_000, 12, 96, 1.19e9),
            "brought 119 GB of 595 GB (20 %), 12 of 96 files, 1.2 GB/s, 6 min 40 s left",
        ),
        (
            Progress("check", 1, 3, 0, 2, 0.0, "no byte for 60 s: begun again"),
            "checked 1 B of 3 B (33 %), 0 of 2 files; no byte for 60 s: begun again",
        ),
    ],
)
def test_how_it_goes_is_a_sentence(progress: Progress, told: str) -> None:
    assert job.sentence(progress) == told


def test_amounts_and_durations_are_for_persons() -> None:
    assert [space.amount(size) for size in (0, 999, 1000, 999_600, 9_318_000_000, 595_100_000_000)] == [
        *("0 B", "999 B", "1.0 kB", "1.0 MB", "9.3 GB", "595 GB")
    ]
    assert [job.duration(seconds) for seconds in (5, 65, 3700)] == ["5 s", "1 min 05 s", "1 h 01 min"]


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "the disk is full; fix: free some space"),
        (errno.EDQUOT, "the disk quota is used up; fix: raise the quota"),
        (errno.EROFS, "the file system is read-only; fix: mount it writable"),
        (errno.EACCES, "permission denied; fix: let this user write there"),
        (errno.EIO, "input/output error; fix: look into the kernel log"),
        (errno.EMFILE, "Too many open files; fix: put that right and run again"),
    ],
)
def test_errors_of_a_disk_name_it_and_the_fix(number: int, told: str) -> None:
    error = OSError(number, os.strerror(number), "/srv/models/tiny")
    assert str(trouble.explain(error, "/elsewhere")).startswith(f"/srv/models/tiny: {told}")
    assert str(trouble.explain(OSError(number, os.strerror(number)), "/elsewhere")).startswith("/elsewhere: ")
