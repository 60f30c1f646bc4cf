# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from tests.fixtures.modules import run


def test_the_module_returns_facts_on_any_machine() -> None:
    facts = run("gpu_facts")["ansible_facts"]["gpuserve_gpus"]
    assert set(facts) == {"count", "driver", "cuda", "container", "reason", "gpus"}
    assert facts["count"] == len(facts["gpus"])
    assert facts["gpus"] or facts["reason"]
