# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.algorithms import known_algorithms, takes_any_case
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.releases import Span
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.4.6.post5", "EAGLE EAGLE3 NEXTN"),
        ("0.5.5", "EAGLE EAGLE3 NEXTN STANDALONE NGRAM"),
        ("0.5.11", "EAGLE EAGLE3 NEXTN STANDALONE NGRAM DFLASH"),
        ("0.5.15.post1", "EAGLE EAGLE3 NEXTN STANDALONE NGRAM DFLASH FROZEN_KV_MTP"),
        ("0.5.20", "EAGLE EAGLE3 NEXTN STANDALONE NGRAM DFLASH FROZEN_KV_MTP DSPARK UNO"),
        ("0.6.0", "EAGLE EAGLE3 NEXTN STANDALONE NGRAM DFLASH FROZEN_KV_MTP DSPARK UNO"),
    ],
)
def test_known_algorithms(version: str, known: str) -> None:
    assert known_algorithms(version) == tuple(known.split())


@pytest.mark.parametrize(("version", "any_case"), [("0.5.11", False), ("0.5.12", True), ("0.5.11.post1", None)])
def test_case(version: str, any_case: bool | None) -> None:
    assert takes_any_case(parse_version(version)) is any_case


@pytest.mark.parametrize(
    ("version", "holds"),
    [
        ("0.5.5", False),
        ("0.5.6.post2", True),
        ("0.5.10", True),
        ("0.5.10.post1", True),
        ("0.5.11", False),
        # Between two releases that were read and differ, and outside of all that were read, nothing is known.
        ("0.5.6", None),
        ("0.4.5", None),
        ("0.6.0", None),
    ],
)
def test_span(version: str, holds: bool | None) -> None:
    assert Span(since="0.5.6.post2", until="0.5.10.post1").holds(parse_version(version)) is holds
