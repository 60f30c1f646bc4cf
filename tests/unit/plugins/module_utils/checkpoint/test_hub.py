# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading from a Hub by ranges: what it costs, what it never does, and what each refusal says."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.errors import BudgetError, CheckpointError
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.hub import Hub, Limits, cached, open_source
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.reader import read_checkpoint
from ansible_collections.gpuserve.sglang.plugins.module_utils.checkpoint.source import Cost, Directory
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.ask import MAX_BYTES, Question, ask
from huggingface_hub import snapshot_download

from lab import hub as hub_server
from lab.hub import HubServer
from tests.fixtures import checkpoints as small

TOKEN = "hf_abcdefghij"


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))


def source(hub: HubServer, name: str = "org/model", token: str | None = None, seconds: float = 10.0) -> Hub:
    limits = Limits(1_000_000, 40, time.monotonic() + seconds)
    return Hub(name, "main", hub.endpoint, token, Cost(), limits, "the_variable")


@pytest.fixture
def model(hub: HubServer, tmp_path: Path) -> Path:
    config = small.llama_config()
    path = small.write(tmp_path / "model", config, small.llama_base_shapes(config), shards=3)
    hub.add("org/model", path)
    return path


def test_a_remote_checkpoint_is_the_local_one(hub: HubServer, model: Path) -> None:
    remote = read_checkpoint(source(hub), "base")
    local = read_checkpoint(Directory.open(str(model), "the_variable"), "base")
    assert remote.tensors == local.tensors
    assert remote.config.values == local.config.values
    assert remote.data("lm_head.weight", 10**6) == local.data("lm_head.weight", 10**6)


def test_a_pair_costs_headers_only(hub: HubServer, model: Path, tmp_path: Path) -> None:
    config = small.llama_drafter_config(vocab_size=small.VOCAB)
    shapes = small.llama_drafter_shapes(config)
    # As large as a drafter is: its weights must stay where they are.
    shapes["midlayer.mlp.ballast.weight"] = ("BF16", (4_000_000,))
    hub.add("org/drafter", small.write(tmp_path / "drafter", config, shapes))
    answer = ask(
        Question(base="org/model", drafter="org/drafter", algorithm="EAGLE3", engine="0.5.20", endpoint=hub.endpoint)
    )
    assert answer.compatible, [check.sentence() for check in answer.checks if check.status == "fail"]
    assert answer.cost.bytes_read == hub.sent < 200_000
    assert answer.cost.requests == len(hub.seen) <= 60
    assert not any(request.method == "GET" and request.store and not request.range for request in hub.seen)
    assert answer.base is not None
    assert answer.base["source"] == "hub"
    assert answer.base["commit"] == hub.repositories["org/model"].commit


def test_the_size_of_the_real_pair(hub: HubServer, tmp_path: Path) -> None:
    """An index of 24 MB and 64 shards, as that of a 1T model in INT4: the budget holds, and what it cost is told."""
    base = small.kimi_config(hidden_size=7168, num_hidden_layers=61, vocab_size=163840, num_attention_heads=64)
    folder = small.write(tmp_path / "base", base, {"x": ("U8", (1,))})
    (folder / "model.safetensors").unlink()
    entry = "language_model.model.layers.{}.mlp.experts.{}.{}_proj.weight_{}"
    names = (
        entry.format(layer, expert, part, kind)
        for layer in range(1, 61)
        for expert in range(384)
        for part in ("gate", "up", "down")
        for kind in ("packed", "scale", "shape")
    )
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model-00001-of-000064.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    assert (folder / "model.safetensors.index.json").stat().st_size > 20_000_000
    hub.add("moonshotai/Kimi-K2.6", folder)
    config = small.mla_drafter_config(hidden_size=7168, vocab_size=163840, num_attention_heads=64)
    shapes = {name: shape for name, shape in small.mla_drafter_shapes(config).items() if len(shape[1]) == 1}
    hub.add("org/kimi-k2.6-eagle3-mla", small.write(tmp_path / "drafter", config, shapes))
    question = Question(
        base="moonshotai/Kimi-K2.6",
        drafter="org/kimi-k2.6-eagle3-mla",
        algorithm="EAGLE3",
        engine="0.5.20",
        endpoint=hub.endpoint,
        tp_size=8,
    )
    answer = ask(question)
    assert answer.cost.bytes_read == hub.sent < MAX_BYTES
    assert answer.cost.requests == len(hub.seen) <= 60
    statuses = {check.id: check.status for check in answer.checks}
    assert statuses["drafter.hidden_size"] == "pass"
    assert statuses["base.weights"] == "skipped"
    assert statuses["drafter.made_for"] == "pass"


def test_the_revision_is_pinned_by_the_first_answer(hub: HubServer, model: Path) -> None:
    read_checkpoint(source(hub), "base").shard("model-00001-of-00003.safetensors")
    commit = hub.repositories["org/model"].commit
    asked = [request.path for request in hub.seen if not request.store]
    assert asked[0] == "/org/model/resolve/main/config.json"
    assert asked[1] == f"/org/model/resolve/{commit}/model-00001-of-00003.safetensors"


def test_the_token_reaches_the_hub_and_not_the_store(hub: HubServer, model: Path) -> None:
    hub.repositories["org/model"].token = TOKEN
    here = source(hub, token=TOKEN)
    read_checkpoint(here, "base").shard("model-00001-of-00003.safetensors")
    assert all(request.token for request in hub.seen if not request.store)
    assert [request.token for request in hub.seen if request.store] == [False]
    assert TOKEN not in repr(here)
    assert TOKEN not in repr(Question(base="a/b", engine="1", token=TOKEN))


def test_digests_without_the_files(hub: HubServer, model: Path) -> None:
    (model / "tokenizer.json").write_text("{}")
    local = Directory.open(str(model), "the_variable")
    for file in ("tokenizer.json", "model-00001-of-00003.safetensors"):
        theirs, ours = source(hub).digest(file), local.digest(file)
        assert theirs is not None
        assert ours is not None
        assert theirs.equals(ours) is True
        assert theirs.bytes == ours.bytes
    assert source(hub).digest("no.json") is None
    assert hub.sent == 0
    assert not any(request.store for request in hub.seen)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (hub_server.status(401), "HTTP 401 without a token: no such repository, or a private one"),
        (hub_server.status(403), "HTTP 403 without a token"),
        (hub_server.status(429, headers={"Retry-After": "3600"}), "HTTP 429: too many requests"),
        (hub_server.status(500), "HTTP 500"),
        (hub_server.status(503), "HTTP 503"),
        (hub_server.status(418), "HTTP 418"),
        (hub_server.page("config.json"), "a page of HTML"),
        (hub_server.cut_off("config.json"), "the connection ended after 8 of 1000 bytes"),
    ],
    ids=["401", "403", "429", "500", "503", "418", "HTML", "cut off"],
)
def test_what_the_hub_refuses(hub: HubServer, model: Path, fault: hub_server.Fault, message: str) -> None:
    hub.faults.append(fault)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(source(hub, seconds=3.0), "base")
    assert message in str(caught.value)


def test_a_repository_that_is_not_there(hub: HubServer) -> None:
    with pytest.raises(CheckpointError, match="correct the_variable, or give a token"):
        read_checkpoint(source(hub, "org/no"), "base")


def test_a_gated_repository(hub: HubServer, model: Path) -> None:
    hub.repositories["org/model"].token = TOKEN
    hub.repositories["org/model"].gated = True
    with pytest.raises(CheckpointError, match="accept the licence"):
        read_checkpoint(source(hub), "base")


def test_a_revision_that_is_not_there(hub: HubServer, model: Path) -> None:
    here = source(hub)
    here.revision = "v9"
    with pytest.raises(CheckpointError, match="no revision v9 of it; fix: correct the_variable_revision"):
        read_checkpoint(here, "base")


def test_patience_with_a_hub_that_asks_for_it(hub: HubServer, model: Path) -> None:
    hub.faults.append(hub_server.status(503, times=1, headers={"Retry-After": "0"}))
    assert read_checkpoint(source(hub), "base").config.need("hidden_size") == small.HIDDEN


def test_a_server_that_ignores_ranges_is_not_read_to_the_end(hub: HubServer, model: Path) -> None:
    hub.faults.append(hub_server.ignoring_ranges(".safetensors"))
    here = source(hub)
    read_checkpoint(here, "base").shard("model-00001-of-00003.safetensors")
    assert here.cost.bytes_read < 20_000
    with pytest.raises(CheckpointError, match="the server ignores range requests"):
        here.piece("model-00001-of-00003.safetensors", 100, 10)


def test_an_answer_that_drips_ends_with_the_time(hub: HubServer, model: Path) -> None:
    hub.faults.append(hub_server.dripping("config.json", 0.05))
    with pytest.raises(CheckpointError, match="no complete answer from"):
        read_checkpoint(source(hub, seconds=0.5), "base")


def test_no_route() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        limits = Limits(10**6, 10, time.monotonic() + 5)
        here = Hub("org/model", "main", endpoint, None, Cost(), limits, "the_variable")
        with pytest.raises(CheckpointError, match=r"no connection to .*; fix: let this host reach"):
            read_checkpoint(here, "base")


@pytest.mark.parametrize("endpoint", ["", "huggingface", "ftp://127.0.0.1", "http://", "http://[", "file:///etc"])
def test_an_endpoint_that_is_none(endpoint: str) -> None:
    limits = Limits(10**6, 10, time.monotonic() + 5)
    here = Hub("org/model", "main", endpoint, None, Cost(), limits, "the_variable")
    with pytest.raises(CheckpointError):
        read_checkpoint(here, "base")


def test_the_budget_of_bytes(hub: HubServer, model: Path) -> None:
    here = source(hub)
    here.limits.max_bytes = 1000
    with pytest.raises(BudgetError, match="the 1000 bytes granted"):
        here.piece("model-00001-of-00003.safetensors", 0, 2000)
    assert hub.seen == []


def test_the_budget_of_requests(hub: HubServer, model: Path) -> None:
    here = source(hub)
    here.limits.max_requests = 2
    for _ in range(2):
        here.piece("config.json", 0, 10)
    with pytest.raises(BudgetError, match="the 2 requests granted are used up"):
        here.piece("config.json", 0, 10)


@pytest.mark.parametrize("value", ["", "a b", "../x", "org/model/more", "-x/y", "http://host/org/model", "org/mod\nel"])
def test_a_value_that_names_no_checkpoint(value: str) -> None:
    with pytest.raises(CheckpointError, match="set the_variable to one of them"):
        open_source(value, "main", "the_variable", None, None, Cost(), Limits(1, 1, 0.0))


def cache(root: Path, model: Path, repository: str, commit: str) -> None:
    folder = root / ("models--" + repository.replace("/", "--"))
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "snapshots").mkdir()
    (folder / "snapshots" / commit).symlink_to(model)


def test_a_cached_repository_costs_nothing(hub: HubServer, model: Path, tmp_path: Path) -> None:
    cache(tmp_path / "hub-cache", model, "org/model", "c" * 40)
    cost = Cost()
    here = open_source("org/model", "main", "the_variable", hub.endpoint, None, cost, Limits(0, 0, 0.0))
    assert len(read_checkpoint(here, "base").tensors) == len(small.llama_base_shapes(small.llama_config()))
    assert here.describe()["commit"] == "c" * 40
    assert (cost.bytes_read, cost.requests, hub.seen) == (0, 0, [])
    assert cached("org/model", "c" * 40) is not None


def test_a_cache_without_all_weights_is_not_used(model: Path, tmp_path: Path) -> None:
    (model / "model-00002-of-00003.safetensors").unlink()
    cache(tmp_path / "hub-cache", model, "org/model", "c" * 40)
    assert cached("org/model", "main") is None
    assert cached("org/other", "main") is None


def test_the_server_is_one_that_the_hubs_own_client_takes(hub: HubServer, model: Path, tmp_path: Path) -> None:
    """The reusable server is no better than its likeness: the client library downloads a whole repository from it."""
    for number in range(60):
        (model / f"more-{number}.txt").write_text(str(number))
    got = snapshot_download("org/model", endpoint=hub.endpoint, cache_dir=tmp_path / "cache", token=False)
    theirs = {path.name: path.read_bytes() for path in Path(got).iterdir()}
    assert theirs == {path.name: path.read_bytes() for path in model.iterdir()}
    assert Path(got).name == hub.repositories["org/model"].commit
