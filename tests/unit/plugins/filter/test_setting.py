# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.filter.setting import FilterModule

setting = FilterModule().filters()["setting"]


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("speculative-draft-model", "speculative_draft_model_path"),
        ("speculative_draft_model", "speculative_draft_model_path"),
        ("tensor-parallel-size", "tp_size"),
        ("tp_size", "tp_size"),
        ("log-level", "log_level"),
    ],
)
def test_spellings(name: str, named: str) -> None:
    assert setting(name) == named


def test_no_name() -> None:
    with pytest.raises(AnsibleFilterError, match="takes a flag's name, not int"):
        setting(1)
