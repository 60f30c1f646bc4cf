# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpuserve.sglang.plugins.filter.systemd_exec import FilterModule

systemd_exec = FilterModule().filters()["systemd_exec"]


def test_systemd_exec() -> None:
    assert systemd_exec(["/bin/true", "a b", "100%"]) == '/bin/true "a b" 100%%'


@pytest.mark.parametrize("words", ["/bin/true", ["/bin/true", 8], ["/bin/true", "a\nb"], ["true"]])
def test_systemd_exec_refuses(words: object) -> None:
    with pytest.raises(AnsibleFilterError, match=r"gpuserve\.sglang\.systemd_exec"):
        systemd_exec(words)
