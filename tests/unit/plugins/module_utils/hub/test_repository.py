# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import repository

from lab.hub import HubServer, page, status

TOKEN = "hf_secret"


def resolve(hub: HubServer, name: str = "lab/tiny", revision: str = "main", token: str | None = None):
    return repository.resolve(name, revision, hub.endpoint, token, 5.0)


def test_a_branch_is_resolved_to_its_commit_and_files(hub: HubServer, model: Path) -> None:
    added = hub.add("lab/tiny", model)
    found = resolve(hub)
    assert found.commit == added.commit
    assert found.files["model.safetensors"] == 1 << 20
    assert sorted(found.files) == [".gitattributes", "config.json", "model.safetensors", "original/params.json"]


@pytest.mark.parametrize(
    ("name", "revision", "token", "told"),
    [
        ("lab/absent", "main", TOKEN, "not found (HTTP 404); check the spelling"),
        ("lab/absent", "main", None, "access refused (HTTP 401); give a token"),
        ("lab/gated", "main", None, "access refused (HTTP 401); give a token"),
        ("lab/gated", "main", "hf_wrong", "access refused (HTTP 403); accept the model's terms"),
        ("lab/gated", "v9", TOKEN, "not found (HTTP 404)"),
    ],
)
def test_a_refusal_is_a_sentence_with_what_to_do(
    hub: HubServer, model: Path, name: str, revision: str, token: str | None, told: str
) -> None:
    hub.add("lab/gated", model, token=TOKEN, gated=True)
    with pytest.raises(repository.HubError) as caught:
        resolve(hub, name, revision, token)
    assert str(caught.value).startswith(f"{name} at revision {revision} on {hub.endpoint}: ")
    assert told in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_hub_that_fails_is_told_apart_from_one_that_refuses(hub: HubServer, model: Path) -> None:
    hub.add("lab/tiny", model)
    hub.faults.append(status(503))
    with pytest.raises(repository.HubError, match=r"HTTP 503; try again later or set the endpoint"):
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
    with pytest.raises(repository.HubError, match=r"no answer \(.*refused\); check the network"):
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
