# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""rsync itself is real; the ssh in its way runs on this machine what it is told to run on the other."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import fetch, manifest, snapshot, transfer
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Lock

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="this machine has no rsync")

COMMIT = "1" * 40


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of what ssh was asked, one line a call."""
    asked = tmp_path / "asked"
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "ssh"
    script.write_text(
        "#!/bin/bash\n"
        # One write a line: several calls run at once.
        f'printf -v line "%q " "$@"; echo "$line" >> {shlex.quote(str(asked))}\n'
        "while [[ $1 == -* ]]; do case $1 in -o|-i|-l) shift 2;; *) shift;; esac; done\n"
        'if [[ $1 == *dead* ]]; then echo "ssh: connect to host $1: no route" >&2; exit 255; fi\n'
        'shift; exec "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return asked


@pytest.fixture
def seeded(model: Path, tmp_path: Path) -> Path:
    """A folder with a model and its manifest, as the other host has it."""
    folder = tmp_path / "their models"
    request = snapshot.Request(folder, source=model)
    snapshot.make_work(request)
    snapshot.bring(request, snapshot.plan(request), Lock(request.work, "test"))
    read = manifest.read(folder)
    assert read is not None
    dataclasses.replace(read, origin="lab/tiny", commit=COMMIT).write(folder)
    return folder


def request(seeded: Path, tmp_path: Path, address: str = "root@gpu1") -> snapshot.Request:
    seed = fetch.Seed(address, str(seeded), "/root/.ssh/fleet", 30.0)
    return snapshot.Request(tmp_path / "dest", repo_id="lab/tiny", seed=seed, stall_timeout=30.0)


def hold(wanted: snapshot.Request) -> snapshot.Plan:
    planned = snapshot.plan(wanted)
    snapshot.make_work(wanted)
    lock = Lock(wanted.work, "test")
    try:
        return snapshot.bring(wanted, planned, lock)
    finally:
        lock.release()


def test_another_host_s_copy_is_brought_and_proved(ssh: Path, seeded: Path, tmp_path: Path) -> None:
    wanted = request(seeded, tmp_path)
    assert hold(wanted).commit == COMMIT
    assert manifest.listing(wanted.dest) == manifest.listing(seeded)
    assert snapshot.plan(wanted).in_place
    assert all("BatchMode=yes" in line and "-i /root/.ssh/fleet" in line for line in ssh.read_text().splitlines())


def test_what_is_not_what_their_manifest_says_is_refused(ssh: Path, seeded: Path, tmp_path: Path) -> None:
    (seeded / "model.safetensors").write_bytes(bytes(1 << 20))
    with pytest.raises(snapshot.SnapshotError, match=r"model\.safetensors of root@gpu1:.* came wrong 3 times"):
        hold(request(seeded, tmp_path))
    assert not (tmp_path / "dest" / "model.safetensors").exists()


def test_a_partial_file_is_continued(ssh: Path, seeded: Path, tmp_path: Path) -> None:
    wanted = request(seeded, tmp_path)
    (large,) = (entry for entry in snapshot.plan(wanted).missing if entry.path == "model.safetensors")
    snapshot.make_work(wanted)
    transfer.partial(wanted.staging, large).write_bytes((seeded / large.path).read_bytes()[:500_000])
    assert snapshot.plan(wanted).missing_bytes < sum(entry.size for entry in snapshot.plan(wanted).missing)
    hold(wanted)
    assert snapshot.plan(wanted).in_place


def test_another_commit_there_is_told(ssh: Path, seeded: Path, tmp_path: Path) -> None:
    wanted = dataclasses.replace(request(seeded, tmp_path), revision="2" * 40)
    with pytest.raises(snapshot.SnapshotError, match=f"holds lab/tiny at {COMMIT}, wanted is lab/tiny at 2222"):
        snapshot.plan(wanted)


def test_a_host_without_the_model_is_told(ssh: Path, tmp_path: Path) -> None:
    with pytest.raises(snapshot.SnapshotError, match=r"status 23 .*; fix: bring the model to root@gpu1 first"):
        snapshot.plan(request(tmp_path / "empty", tmp_path))


def test_a_host_out_of_reach_is_told(ssh: Path, tmp_path: Path) -> None:
    with pytest.raises(
        snapshot.SnapshotError, match=r"status \d+ .*no route.*; fix: let this host's root reach root@dead by ssh"
    ):
        snapshot.plan(request(tmp_path, tmp_path, "root@dead"))


def test_a_host_without_rsync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(snapshot.SnapshotError, match="this host has no rsync"):
        snapshot.plan(request(tmp_path, tmp_path))
