# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import (
    manifest,
    repository,
    snapshot,
    space,
    transfer,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Lock
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Progress

from lab.hub import Handler, HubServer, altered, cut_at, is_large, silent, status

SIZE = 1 << 20


def hold(request: snapshot.Request) -> snapshot.Plan:
    """Plan, and bring what is missing; the plan as it was carried out."""
    planned = snapshot.plan(request)
    if planned.in_place:
        return planned
    snapshot.make_work(request)
    lock = Lock(request.work, "test")
    try:
        return snapshot.bring(request, planned, lock)
    finally:
        lock.release()


def missing(planned: snapshot.Plan) -> list[str]:
    return sorted(entry.path for entry in planned.missing)


def contents(folder: Path) -> dict[str, bytes]:
    """The model's files below a folder, without what is ours."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".gpuserve")
    }


@pytest.fixture
def from_hub(hub: HubServer, tmp_path: Path) -> snapshot.Request:
    return snapshot.Request(
        tmp_path / "dest",
        repo_id="lab/tiny",
        endpoint=hub.endpoint,
        python=sys.executable,
        stall_timeout=2.0,
        timeout=5.0,
    )


# --- out of a folder -------------------------------------------------------------------------------------------------


def test_a_folder_is_copied_once(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    first = snapshot.plan(request)
    assert (first.in_place, first.changes, first.commit, first.location) == (False, True, None, str(model))
    assert first.missing_bytes == sum(manifest.listing(model).values())
    assert not request.dest.exists()
    assert hold(request).location == str(request.dest)
    assert manifest.listing(request.dest) == manifest.listing(model)
    second = snapshot.plan(request)
    assert (second.in_place, second.missing, second.location) == (True, (), str(request.dest))


def test_a_folder_that_is_gone_is_not_asked_again(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    shutil.rmtree(model)
    assert snapshot.plan(request).in_place


@pytest.mark.parametrize("text", ['{"model_type": "mistral"}\n', '{"model_type": "LLAMA"}\n'])
def test_a_folder_that_holds_other_files_now_is_copied_again(model: Path, tmp_path: Path, text: str) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    (model / "config.json").write_text(text)
    (model / "added.json").write_text("{}\n")
    hold(request)
    assert (request.dest / "config.json").read_text() == text
    assert (request.dest / "added.json").exists()
    assert snapshot.plan(request).in_place


@pytest.mark.parametrize(("name", "told"), [("absent", "does not exist"), ("", "has no config.json")])
def test_a_source_without_a_model_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(snapshot.SnapshotError, match=told):
        snapshot.plan(snapshot.Request(tmp_path / "dest", source=tmp_path / name))


def test_a_file_that_lies_there_is_not_believed_for_its_size(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    request.dest.mkdir()
    (request.dest / "config.json").write_text('{"model_type": "XXXXX"}\n')
    hold(request)
    assert (request.dest / "config.json").read_bytes() == (model / "config.json").read_bytes()


def test_a_folder_with_a_manifest_passes_its_commit_and_hashes_on(
    hub: HubServer, model: Path, tmp_path: Path, from_hub: snapshot.Request
) -> None:
    commit = hub.add("lab/tiny", model).commit
    hold(from_hub)
    asked = len(hub.seen)
    plain = snapshot.Request(tmp_path / "plain", source=from_hub.dest)
    assert hold(plain).commit == commit
    named = dataclasses.replace(plain, dest=tmp_path / "named", repo_id="lab/tiny", revision=commit)
    assert hold(named).commit == commit
    read = manifest.read(named.dest)
    assert read is not None
    assert (read.origin, read.commit) == ("lab/tiny", commit)
    assert len(hub.seen) == asked
    (from_hub.dest / "model.safetensors").write_bytes(bytes(SIZE))
    with pytest.raises(snapshot.SnapshotError, match=r"model\.safetensors of .* came wrong 3 times: expected"):
        hold(dataclasses.replace(plain, dest=tmp_path / "third"))
    assert not (tmp_path / "third" / "model.safetensors").exists()


def test_a_folder_without_one_is_proved_by_the_hub_s_list(
    hub: HubServer, model: Path, tmp_path: Path, from_hub: snapshot.Request
) -> None:
    commit = hub.add("lab/tiny", model).commit
    copied = shutil.copytree(model, tmp_path / "copied")
    request = dataclasses.replace(from_hub, source=copied, python=None)
    assert hold(request).commit == commit
    assert all("/tree/" in seen.path or "/revision/" in seen.path for seen in hub.seen)
    (copied / "config.json").write_text('{"model_type": "XXXXX"}\n')
    with pytest.raises(snapshot.SnapshotError, match=r"config\.json of .* came wrong"):
        hold(dataclasses.replace(request, dest=tmp_path / "other"))


# --- from a Hub ------------------------------------------------------------------------------------------------------


def test_a_repository_is_downloaded_at_its_commit(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    added = hub.add("lab/tiny", model)
    request = dataclasses.replace(from_hub, revision=added.commit)
    looked = snapshot.plan(request)
    assert (looked.commit, looked.location) == (added.commit, f"lab/tiny@{added.commit}")
    assert hold(request).location == str(request.dest)
    assert contents(request.dest) == contents(model)
    read = manifest.read(request.dest)
    assert read is not None
    assert read.digests == {name: sha256_of(model / name) for name in contents(model)}
    asked = len(hub.seen)
    assert snapshot.plan(request).in_place
    assert len(hub.seen) == asked


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_branch_keeps_the_commit_of_the_first_run(
    hub: HubServer, model: Path, tmp_path: Path, from_hub: snapshot.Request
) -> None:
    first = hub.add("lab/tiny", model).commit
    hold(from_hub)
    moved = shutil.copytree(model, tmp_path / "moved")
    (moved / "config.json").write_text("{}\n")
    (moved / "original" / "params.json").unlink()
    second = hub.add("lab/tiny", moved).commit
    assert snapshot.plan(from_hub).commit == first
    pinned = dataclasses.replace(from_hub, revision=second)
    sent = hub.sent_of("model.safetensors")
    assert missing(hold(pinned)) == ["config.json"]
    assert (pinned.dest / "config.json").read_text() == "{}\n"
    assert hub.sent_of("model.safetensors") == sent
    assert snapshot.plan(pinned).others == ("original/params.json",)
    pruned = dataclasses.replace(pinned, prune=True)
    assert snapshot.plan(pruned).changes
    hold(pruned)
    assert snapshot.plan(pruned).in_place
    assert not (pinned.dest / "original").exists()


def test_a_model_that_somebody_else_downloaded_is_adopted(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    shutil.copytree(model, from_hub.dest)
    (from_hub.dest / ".cache" / "huggingface").mkdir(parents=True)
    (from_hub.dest / ".cache" / "huggingface" / "note").write_text("theirs")
    planned = snapshot.plan(from_hub)
    assert (planned.changes, planned.missing, len(planned.unproven), planned.others) == (True, (), 4, ())
    hold(from_hub)
    assert snapshot.plan(from_hub).in_place
    assert not any("/resolve/" in seen.path for seen in hub.seen)


def test_patterns_choose_and_are_remembered(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    request = dataclasses.replace(from_hub, allow=("*.json",), ignore=("original/*",))
    hold(request)
    assert list(contents(request.dest)) == ["config.json"]
    assert snapshot.plan(request).in_place
    assert missing(snapshot.plan(from_hub)) == [".gitattributes", "model.safetensors", "original/params.json"]
    with pytest.raises(snapshot.SnapshotError, match="no file that the patterns choose; fix: correct allow_patterns"):
        snapshot.plan(dataclasses.replace(from_hub, allow=("*.gguf",)))


def test_other_patterns_do_not_follow_a_branch_that_moved(
    hub: HubServer, model: Path, tmp_path: Path, from_hub: snapshot.Request
) -> None:
    first = hub.add("lab/tiny", model).commit
    hold(dataclasses.replace(from_hub, allow=("*.json",)))
    moved = shutil.copytree(model, tmp_path / "moved")
    (moved / "modeling_tiny.py").write_text("unread\n")
    second = hub.add("lab/tiny", moved).commit
    planned = snapshot.plan(from_hub)
    assert (planned.commit, missing(planned)) == (first, [".gitattributes", "model.safetensors"])
    assert snapshot.plan(dataclasses.replace(from_hub, revision=second)).commit == second
    # Another repository in the same folder is a first run again.
    other = hub.add("lab/other", moved).commit
    assert snapshot.plan(dataclasses.replace(from_hub, repo_id="lab/other")).commit == other


def test_a_gated_repository_needs_its_token_which_the_store_does_not_see(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model, token="hf_secret", gated=True)
    with pytest.raises(repository.HubError, match="give the token"):
        hold(from_hub)
    hold(dataclasses.replace(from_hub, token="hf_secret"))
    assert snapshot.plan(from_hub).in_place
    stored = [seen for seen in hub.seen if seen.store]
    assert stored
    assert not any(seen.token for seen in stored)


def test_the_token_is_in_no_process_list_and_no_environment(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model, token="hf_secret", gated=True)
    seen: list[bytes] = []

    def look(handler: Handler, path: str) -> bool:
        """While a file is asked for, the process that asks is there to be looked at."""
        if path.endswith("/config.json"):
            children = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=True)
            for pid in children.stdout.split():
                with contextlib.suppress(OSError):
                    seen.extend(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        return False

    hub.faults.append(look)
    hold(dataclasses.replace(from_hub, token="hf_secret"))
    assert any(b"huggingface_hub" in text for text in seen)
    assert not any(b"hf_secret" in text for text in seen)


@pytest.mark.parametrize("python", [None, "/nonexistent/python"])
def test_a_download_without_huggingface_hub_says_what_to_install(
    hub: HubServer, model: Path, from_hub: snapshot.Request, python: str | None
) -> None:
    hub.add("lab/tiny", model)
    with pytest.raises(snapshot.SnapshotError, match="needs a Python with huggingface_hub"):
        hold(dataclasses.replace(from_hub, python=python))


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_broken_connection_is_continued_where_it_broke(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    (model / "big.safetensors").write_bytes(os.urandom(8 * SIZE))
    hub.add("lab/tiny", model)
    hub.faults.append(cut_at("big.safetensors", 5 * SIZE))
    hold(from_hub)
    assert contents(from_hub.dest) == contents(model)
    begun, continued = (seen.range for seen in hub.seen if seen.path.endswith("//big.safetensors"))
    assert (begun, continued[:6]) == ("", "bytes=")
    assert hub.sent_of("big.safetensors") <= 9 * SIZE


def test_a_silent_server_is_left_and_asked_again(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(silent("model.safetensors", times=1))
    notes: list[str] = []
    planned = snapshot.plan(from_hub)
    snapshot.make_work(from_hub)
    lock = Lock(from_hub.work, "test")
    snapshot.bring(from_hub, planned, lock, lambda progress: notes.append(progress.note))
    assert snapshot.plan(from_hub).in_place
    assert "no byte for 2 s: begun again" in notes


def test_a_xet_store_that_hangs_is_left_for_plain_http(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    pytest.importorskip("hf_xet")
    hub.add("lab/tiny", model, xet=True)
    asked: list[str] = []

    def hang(handler, path: str) -> bool:
        if not handler.is_store or "//" in path:
            return False
        asked.append(path)
        handler.connection.settimeout(30)
        handler.connection.recv(1)
        return True

    hub.faults.append(hang)
    hold(from_hub)
    assert asked
    assert contents(from_hub.dest) == contents(model)


def test_nothing_for_too_long_is_told_and_what_came_is_kept(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(silent("model.safetensors"))
    request = dataclasses.replace(from_hub, stall_timeout=0.5, xet=False)
    with pytest.raises(snapshot.SnapshotError, match=r"no byte of lab/tiny@\w+ came for \d+ s.*what is there is kept"):
        hold(request)
    assert contents(request.dest) == {}
    hub.faults.clear()
    small = hub.sent_of("config.json")
    hold(request)
    assert hub.sent_of("config.json") == small


def test_content_that_is_not_what_was_announced_never_gets_its_name(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(altered("model.safetensors", times=1))
    hold(from_hub)
    assert contents(from_hub.dest) == contents(model)
    hub.faults[:] = [altered("model.safetensors")]
    other = dataclasses.replace(from_hub, dest=from_hub.dest.with_name("other"))
    with pytest.raises(
        snapshot.SnapshotError, match=r"came wrong 3 times: expected 1048576 bytes with SHA-256 \w+; found"
    ):
        hold(other)
    assert contents(other.dest) == {}


def test_a_server_that_sends_too_little_is_told(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(altered("model.safetensors", keep=1000))
    with pytest.raises(
        snapshot.SnapshotError, match=r"does not grow beyond 1000 of 1048576 bytes: .*Consistency check"
    ):
        hold(from_hub)


def test_a_server_that_announces_another_length_is_told(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    commit = hub.add("lab/tiny", model).commit

    def short(handler, path: str) -> bool:
        if not path.endswith("/config.json"):
            return False
        handler.send(200, b"{}", {"ETag": '"0"', "X-Repo-Commit": commit})
        return True

    hub.faults.append(short)
    with pytest.raises(
        snapshot.SnapshotError, match="the server announces 2 bytes, its list of files tells another size"
    ):
        hold(from_hub)


@pytest.mark.parametrize(
    ("code", "header", "told"),
    [
        (404, "EntryNotFound", r"a file of the list is gone \(HTTP 404\)"),
        (404, "RepoNotFound", r"not found \(HTTP 404\); fix: check the spelling"),
        (403, "GatedRepo", r"is gated \(HTTP 403\); fix: accept the model's terms"),
    ],
)
def test_a_repository_that_closes_meanwhile_stops_the_transfer(
    hub: HubServer, model: Path, from_hub: snapshot.Request, code: int, header: str, told: str
) -> None:
    hub.add("lab/tiny", model)

    def gone(handler, path: str) -> bool:
        if "/resolve/" in path:
            handler.refuse(code, header)
        return "/resolve/" in path

    hub.faults.append(gone)
    with pytest.raises(snapshot.SnapshotError, match=told):
        hold(from_hub)


def test_a_server_that_is_overloaded_for_a_while_is_waited_for(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(status(503, times=2, file="config.json"))
    hold(from_hub)
    assert contents(from_hub.dest) == contents(model)


def test_only_a_damaged_file_is_brought_again(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    (from_hub.dest / "model.safetensors").write_bytes(b"short")
    (from_hub.dest / "config.json").write_text('{"model_type": "XXXXX"}\n')
    planned = snapshot.plan(from_hub)
    assert planned.location.startswith("lab/tiny@")
    assert ([e.path for e in planned.missing], [e.path for e in planned.unproven]) == (
        ["model.safetensors"],
        ["config.json"],
    )
    assert missing(hold(from_hub)) == ["config.json", "model.safetensors"]
    assert contents(from_hub.dest) == contents(model)


def test_a_touched_file_with_the_same_content_changes_nothing(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    os.utime(from_hub.dest / "config.json", ns=(1, 1))
    assert not snapshot.plan(from_hub).in_place
    assert not hold(from_hub).changes
    assert snapshot.plan(from_hub).in_place


def test_it_is_remembered_from_when_until_when_a_file_was_wrong(
    hub: HubServer, model: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    # What was not there was loaded by nobody.
    (from_hub.dest / "config.json").unlink()
    hold(from_hub)
    os.utime(from_hub.dest / "model.safetensors", (1, 1))
    hold(from_hub)
    assert manifest.wrong(from_hub.dest) == []
    begun = time.time()
    for number, name in enumerate(["config.json", "model.safetensors"]):
        (from_hub.dest / name).write_bytes(b"wrong")
        os.utime(from_hub.dest / name, (number + 5, number + 5))
    hold(from_hub)
    [(since, until)] = manifest.wrong(from_hub.dest)
    assert since == 5
    assert begun <= until <= time.time()
    (from_hub.dest / "config.json").write_bytes(b"wrong")
    hold(from_hub)
    assert manifest.wrong(from_hub.dest)[0] == (since, until)
    assert len(manifest.wrong(from_hub.dest)) == 2


def test_files_of_another_revision_were_not_wrong(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    first = hub.add("lab/tiny", model)
    hold(dataclasses.replace(from_hub, revision=first.commit))
    (model / "config.json").write_text('{"model_type": "mistral"}\n')
    second = hub.add("lab/tiny", model)
    assert missing(hold(dataclasses.replace(from_hub, revision=second.commit))) == ["config.json"]
    assert manifest.wrong(from_hub.dest) == []


def test_a_run_that_dies_before_the_manifest_has_remembered_what_was_wrong(
    hub: HubServer, model: Path, from_hub: snapshot.Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    (from_hub.dest / "model.safetensors").write_bytes(b"wrong")
    with monkeypatch.context() as dies:
        dies.setattr(manifest.Manifest, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            hold(from_hub)
    assert not (from_hub.dest / manifest.NAME).exists()
    hold(from_hub)
    assert len(manifest.wrong(from_hub.dest)) == 1


def test_decay_is_found_by_sha256_alone_and_repaired(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    path = from_hub.dest / "model.safetensors"
    before = path.stat()
    path.write_bytes(bytes(SIZE))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert snapshot.plan(from_hub).in_place
    careful = dataclasses.replace(from_hub, verify=snapshot.SHA256)
    proved = snapshot.prove(careful, snapshot.plan(careful))
    assert (proved.changes, missing(proved)) == (True, ["model.safetensors"])
    assert missing(hold(careful)) == ["model.safetensors"]
    assert contents(from_hub.dest) == contents(model)
    assert not hold(careful).changes


def test_none_believes_the_manifest(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    (from_hub.dest / "model.safetensors").unlink()
    assert snapshot.plan(dataclasses.replace(from_hub, verify=snapshot.NONE)).in_place
    assert not snapshot.plan(from_hub).in_place


def test_a_run_that_dies_between_the_names_and_the_manifest_is_finished_without_a_download(
    hub: HubServer, model: Path, from_hub: snapshot.Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("lab/tiny", model)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(manifest.Manifest, "write", die)
        with pytest.raises(KeyboardInterrupt):
            hold(from_hub)
    assert contents(from_hub.dest) == contents(model)
    assert not snapshot.plan(from_hub).answered
    sent = sum(seen.sent for seen in hub.seen if "/resolve/" in seen.path or seen.store)
    hold(from_hub)
    assert snapshot.plan(from_hub).in_place
    assert sum(seen.sent for seen in hub.seen if "/resolve/" in seen.path or seen.store) == sent


def test_the_old_commit_stays_whole_until_the_new_one_is_proved(
    hub: HubServer, model: Path, tmp_path: Path, from_hub: snapshot.Request
) -> None:
    hub.add("lab/tiny", model)
    hold(from_hub)
    moved = shutil.copytree(model, tmp_path / "moved")
    (moved / "model.safetensors").write_bytes(os.urandom(SIZE))
    (moved / "config.json").write_text("{}\n")
    second = hub.add("lab/tiny", moved).commit
    hub.faults.append(altered("model.safetensors"))
    with pytest.raises(snapshot.SnapshotError, match="came wrong"):
        hold(dataclasses.replace(from_hub, revision=second))
    assert contents(from_hub.dest) == contents(model)
    assert snapshot.plan(from_hub).in_place


# --- the disk --------------------------------------------------------------------------------------------------------


def statvfs(**changes: int):
    fields = {"f_bavail": 1 << 30, "f_frsize": 4096, "f_files": 1000, "f_favail": 1000, **changes}
    return lambda _: namedtuple("Statvfs", fields)(**fields)


def test_too_little_space_stops_before_the_first_byte(
    hub: HubServer, model: Path, from_hub: snapshot.Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("lab/tiny", model)
    monkeypatch.setattr(space.os, "statvfs", statvfs(f_bavail=300_000))
    with pytest.raises(snapshot.SnapshotError) as caught:
        hold(dataclasses.replace(from_hub, reserve_bytes=2_000_000_000))
    assert str(caught.value) == (
        f"{from_hub.dest} has 1.2 GB free; 1.0 MB are missing and 2.0 GB stay in reserve; fix: free 772 MB there "
        "or choose another folder"
    )
    assert not any("/resolve/" in seen.path for seen in hub.seen)
    hold(dataclasses.replace(from_hub, reserve_bytes=0))


def test_room_is_judged_where_the_folder_is_not_made_yet(tmp_path: Path) -> None:
    nowhere = tmp_path / "not" / "yet"
    assert space.judge(nowhere, 1, 1, 0).status == "pass"
    short = space.judge(nowhere, 1, 1, 10**18)
    assert (short.status, short.actual.split(" has ")[0]) == ("fail", str(nowhere))
    # What is whole needs no room.
    assert space.judge(nowhere, 0, 0, 10**18).status == "pass"


def test_too_few_inodes_are_named(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space.os, "statvfs", statvfs(f_favail=2))
    with pytest.raises(snapshot.SnapshotError, match=r"room for 2 more files \(inodes\); 3 are missing"):
        hold(snapshot.Request(tmp_path / "dest", source=model))
    monkeypatch.setattr(space.os, "statvfs", statvfs(f_favail=0, f_files=0))
    hold(snapshot.Request(tmp_path / "dest", source=model))


def test_what_is_staged_is_not_counted_as_missing(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    planned = snapshot.plan(from_hub)
    (large,) = (entry for entry in planned.missing if entry.sha256)
    snapshot.make_work(from_hub)
    transfer.partial(from_hub.staging, large).write_bytes((model / large.path).read_bytes()[:1000])
    assert snapshot.plan(from_hub).missing_bytes == planned.missing_bytes - 1000
    hold(from_hub)
    assert hub.sent_of("model.safetensors") == SIZE - 1000


def test_a_file_in_the_way_is_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "dest").write_text("a file")
    with pytest.raises(
        snapshot.SnapshotError, match=r"dest/\.gpuserve.*a part of the path is a file; fix: choose another"
    ):
        hold(snapshot.Request(tmp_path / "dest", source=model))
    (tmp_path / "other" / "config.json").mkdir(parents=True)
    with pytest.raises(snapshot.SnapshotError, match=r"other/config\.json is a folder"):
        hold(snapshot.Request(tmp_path / "other", source=model))


# --- removal ---------------------------------------------------------------------------------------------------------


def test_a_removal_takes_what_the_manifest_names_and_leaves_the_rest(model: Path, tmp_path: Path) -> None:
    request = snapshot.Request(tmp_path / "dest", source=model)
    hold(request)
    (request.dest / "notes.txt").write_text("mine")
    removal = snapshot.plan_removal(request.dest)
    assert (sorted(removal.files), removal.others) == (sorted(manifest.listing(model)), ("notes.txt",))
    snapshot.remove(request.dest, removal, prune=False)
    assert [path.name for path in request.dest.rglob("*")] == ["notes.txt"]
    assert not snapshot.plan_removal(request.dest).there
    snapshot.remove(request.dest, snapshot.plan_removal(request.dest), prune=True)
    assert not request.dest.exists()


def test_progress_reaches_the_total(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    told: list[Progress] = []
    planned = snapshot.plan(from_hub)
    snapshot.make_work(from_hub)
    snapshot.bring(from_hub, planned, Lock(from_hub.work, "test"), told.append)
    assert (told[-1].done, told[-1].files_done) == (planned.missing_bytes, 4)


def test_the_hub_of_these_tests_has_a_store(model: Path) -> None:
    assert is_large("model.safetensors", HubServer().add("lab/tiny", model).file(model / "model.safetensors"))


def test_nobody_there_any_more(hub: HubServer, model: Path, from_hub: snapshot.Request) -> None:
    hub.add("lab/tiny", model)
    planned = snapshot.plan(from_hub)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        elsewhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
    request = dataclasses.replace(from_hub, endpoint=elsewhere, stall_timeout=0.5)
    snapshot.make_work(request)
    with pytest.raises(snapshot.SnapshotError, match=r"no byte of .* came for .*check the network and run again"):
        snapshot.bring(request, planned, Lock(request.work, "test"))
