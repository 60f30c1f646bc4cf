# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.filter.argv import FilterModule

argv = FilterModule().filters()["argv"]


def test_argv() -> None:
    assert argv({"tp_size": 8, "enable-metrics": True}) == ["--tp-size", "8", "--enable-metrics"]


@pytest.mark.parametrize("flags", [["tp_size"], "tp_size", {"--tp-size": 8}])
def test_argv_refuses(flags: object) -> None:
    with pytest.raises(AnsibleFilterError, match=r"gpuserve\.sglang\.argv"):
        argv(flags)
