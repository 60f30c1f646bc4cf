# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import Refused, told


def raising(error: Exception) -> dict[str, Any]:
    def answer(_: Mapping[str, Any]) -> dict[str, Any]:
        raise error

    return told(answer, {})


def test_an_answer_is_told_as_it_is() -> None:
    assert told(lambda arguments: {"settled": arguments["held"]}, {"held": True}) == {"settled": True}


def test_what_is_refused_is_told_with_what_was_found() -> None:
    assert raising(Refused("wrong", {"models": [1]})) == {"failed": True, "msg": "wrong", "models": [1]}


def test_what_cannot_be_read_fails_and_a_fault_of_our_own_is_not_hidden() -> None:
    told_error = raising(PermissionError(13, "Permission denied", "/opt/engine"))
    assert told_error["failed"]
    assert "Permission denied: '/opt/engine'" in told_error["msg"]
    with pytest.raises(KeyError):
        raising(KeyError("models"))
