# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import repository
from huggingface_hub.utils import filter_repo_objects

from lab.hub import PAGE, Handler, HubServer, page, status

TOKEN = "hf_secret"


def resolve(hub: HubServer, name: str = "lab/tiny", revision: str = "main", token: str | None = None):
    return repository.resolve(name, revision, hub.endpoint, token, 5.0)


def test_a_branch_is_resolved_to_its_commit_and_files(hub: HubServer, model: Path) -> None:
    added = hub.add("lab/tiny", model)
    found = resolve(hub)
    assert found.commit == added.commit
    by_path = {entry.path: entry for entry in found.entries}
    assert sorted(by_path) == [".gitattributes", "config.json", "model.safetensors", "original/params.json"]
    data = (model / "model.safetensors").read_bytes()
    assert by_path["model.safetensors"] == repository.Entry(
        "model.safetensors", 1 << 20, sha256=hashlib.sha256(data).hexdigest()
    )
    assert by_path["config.json"].sha256 is None
    assert by_path["config.json"].blob == hashlib.sha1(b"blob 24\0" + (model / "config.json").read_bytes()).hexdigest()


def test_the_list_of_files_is_whole_though_it_comes_in_pages(hub: HubServer, model: Path) -> None:
    for number in range(2 * PAGE + 20):
        (model / f"model-{number:05}.safetensors").write_bytes(b"%d" % number)
    hub.add("lab/tiny", model)
    assert len(resolve(hub).entries) == 2 * PAGE + 24
    assert sum("/tree/" in request.path for request in hub.seen) == 3


def test_a_list_without_an_end_is_given_up(hub: HubServer, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.add("lab/tiny", model).commit
    monkeypatch.setattr(repository, "_PAGES_LIMIT", 3)

    def same_page(handler: Handler, path: str) -> bool:
        handler.send(200, b"[]", {"Link": f'<{hub.endpoint}{path}?cursor=1>; rel="next"'})
        return True

    hub.faults.append(same_page)
    with pytest.raises(repository.HubError, match="has no end"):
        resolve(hub, revision=commit)


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/passwd", "a/../../b", "", ".gpuserve/lock", ".gpuserve-manifest.json"]
)
def test_a_file_that_leads_out_of_the_folder_is_refused(hub: HubServer, model: Path, path: str) -> None:
    commit = hub.add("lab/tiny", model).commit
    told = json.dumps([{"type": "file", "path": path, "size": 1, "oid": "0" * 40}]).encode()
    hub.faults.append(lambda handler, _: handler.send(200, told, {}) is None)
    with pytest.raises(repository.HubError, match="a path that no model may have; fix: use another endpoint"):
        resolve(hub, revision=commit)


def test_patterns_choose_as_huggingface_hub_does() -> None:
    paths = ["config.json", "model.safetensors", "original/params.json", "original/deep/x.pth", "README.md"]
    for allow, ignore in (
        ([], []),
        (["*.json"], []),
        (["original/"], ["*.pth"]),
        ([], ["*.md", "original/*"]),
        (["none"], []),
    ):
        ours = repository.chosen([repository.Entry(path, 1) for path in paths], allow, ignore)
        theirs = filter_repo_objects(paths, allow_patterns=allow or None, ignore_patterns=ignore or None)
        assert [entry.path for entry in ours] == list(theirs)


@pytest.mark.parametrize(
    ("name", "revision", "token", "told"),
    [
        ("lab/absent", "main", TOKEN, "not found (HTTP 404); fix: check the spelling"),
        (
            "lab/absent",
            "main",
            None,
            "access refused (HTTP 401); fix: check the spelling of the repository, or give a token",
        ),
        (
            "lab/gated",
            "main",
            None,
            "is gated (HTTP 401); fix: accept the model's terms on its page and give the token",
        ),
        (
            "lab/gated",
            "main",
            "hf_wrong",
            "is gated (HTTP 403); fix: accept the model's terms on its page with the account",
        ),
        (
            "lab/private",
            "main",
            "hf_wrong",
            "access refused (HTTP 403); fix: check the spelling of the repository, and that",
        ),
        ("lab/gated", "v9", TOKEN, "the repository has no such revision (HTTP 404); fix: correct the revision"),
    ],
)
def test_a_refusal_is_a_sentence_with_what_to_do(
    hub: HubServer, model: Path, name: str, revision: str, token: str | None, told: str
) -> None:
    hub.add("lab/gated", model, token=TOKEN, gated=True)
    hub.add("lab/private", model, token=TOKEN)
    with pytest.raises(repository.HubError) as caught:
        resolve(hub, name, revision, token)
    assert str(caught.value).startswith(f"{name} at revision {revision} on {hub.endpoint}: ")
    assert told in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_hub_that_fails_is_told_apart_from_one_that_refuses(hub: HubServer, model: Path) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(status(503, times=1))
    hub.faults.append(status(429))
    with pytest.raises(repository.HubError, match=r"HTTP 503; fix: try again later or set the endpoint"):
        resolve(hub)
    with pytest.raises(repository.HubError, match=r"too many requests \(HTTP 429\); fix: wait some minutes"):
        resolve(hub)


def test_a_login_page_is_no_repository(hub: HubServer, model: Path) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(page("main"))
    with pytest.raises(repository.HubError, match="check that the endpoint is a Hub"):
        resolve(hub)


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(repository.HubError, match=r"no answer \(.*refused\); fix: check the network"):
        repository.resolve("lab/tiny", "main", endpoint, None, 5.0)


def test_the_endpoint_is_the_given_one_then_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert repository.endpoint_or_default("https://hub.example/") == "https://hub.example"
    assert repository.endpoint_or_default(None) == "https://mirror.example"
    monkeypatch.delenv("HF_ENDPOINT")
    assert repository.endpoint_or_default("") == repository.DEFAULT_ENDPOINT


def test_a_commit_cannot_move_and_a_branch_can() -> None:
    assert repository.is_commit("0" * 40)
    assert not repository.is_commit("main")
    assert not repository.is_commit("0" * 39)
