# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.store import Proof, Record, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "main")


def record(name: str, written: float = 1.0) -> Record:
    return Record(name, {"args": "a"}, ["--port", "1"], {"A": "h"}, "/opt/engine", [], written)


def write(store: Store, name: str, written: float = 1.0) -> None:
    store.write(record(name, written), "the unit", "A=1\n", "")


def test_what_is_written_is_read(store: Store) -> None:
    assert store.differs(record("r1"), "the unit", "A=1\n", "")
    write(store, "r1")
    assert store.record("r1") == record("r1")
    assert store.unit("r1") == "the unit"
    assert store.secrets("r1") == ("A=1\n", "")
    # Another time is no difference.
    assert not store.differs(record("r1", 2.0), "the unit", "A=1\n", "")


@pytest.mark.parametrize(
    "other",
    [
        (replace(record("r1"), args=["--port", "2"]), "the unit", "A=1\n", ""),
        (record("r1"), "another unit", "A=1\n", ""),
        (record("r1"), "the unit", "A=2\n", ""),
        (record("r1"), "the unit", "A=1\n", "api-key: x\n"),
    ],
    ids=["arguments", "unit", "environment", "keys"],
)
def test_what_differs(store: Store, other: tuple[Record, str, str, str]) -> None:
    write(store, "r1")
    assert store.differs(*other)


def test_secrets_are_the_owner_s_alone(store: Store) -> None:
    write(store, "r1")
    modes = {path.name: path.stat().st_mode & 0o777 for path in [store.path("r1"), *store.path("r1").iterdir()]}
    assert modes == {"r1": 0o700, "environment": 0o600, "keys.yaml": 0o600, "release.json": 0o600, "unit": 0o644}


def test_a_half_written_release_is_none(store: Store) -> None:
    write(store, "r1")
    (store.path("r1") / "release.json").write_text('{"release": "r1", "par')
    assert store.records() == []
    (store.path("r1") / "release.json").write_text(json.dumps({"release": "r1"}))
    assert store.record("r1") is None


def test_the_link_moves_at_once(store: Store) -> None:
    assert store.current is None
    write(store, "r1")
    write(store, "r2")
    store.switch("r1")
    # A killed run left this behind.
    (store.folder / ".current.new").symlink_to("nowhere")
    store.switch("r2")
    assert store.current == "r2"
    assert (store.folder / "current" / "unit").read_text() == "the unit"


def test_the_good_one_is_the_one_that_passed_last(store: Store) -> None:
    for name in ("r1", "r2", "r3"):
        write(store, name)
    assert store.good() is None
    store.prove("r2", Proof(True, 10.0, "6 passed"))
    store.prove("r1", Proof(True, 20.0, "6 passed"))
    store.prove("r3", Proof(False, 30.0, "accept length 1.00"))
    assert store.good() == record("r1")
    assert store.good(besides="r1") == record("r2")
    assert store.proof("r3") == Proof(False, 30.0, "accept length 1.00")


def test_old_ones_go_and_those_in_use_stay(store: Store) -> None:
    for number in range(6):
        write(store, f"r{number}", float(number))
    assert store.prune(2, ["r0", None]) == ["r3", "r2", "r1"]
    assert [one.release for one in store.records()] == ["r5", "r4", "r0"]
    assert not store.path("r1").exists()
