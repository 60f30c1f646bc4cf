# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task runs it: options in, JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import converge
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.dpkg import Package
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.host import Running
from ansible_collections.gpuserve.sglang.plugins.modules import nvidia_driver_packages

from tests.fixtures.modules import in_process

BASE = {
    "kernel_packages": {"open": "nvidia-kernel-open-dkms", "proprietary": "nvidia-kernel-dkms"},
    "host_packages": ["nvidia-driver-cuda"],
    "container_packages": ["libcuda1"],
}


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: Any, **options: Any
) -> tuple[dict[str, Any], converge.Request]:
    asked: list[converge.Request] = []

    def work(request: converge.Request, check_mode: bool) -> converge.Outcome:
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        outcome: converge.Outcome = answer
        return outcome

    monkeypatch.setattr(converge, "converge", work)
    return in_process(capsys, nvidia_driver_packages, **{**BASE, **options}), asked[0]


def outcome(*checks: Check) -> converge.Outcome:
    return converge.Outcome(
        scope="host",
        running=Running("570.172.08", "open"),
        version="580.95.05",
        checks=list(checks),
        changed=True,
        before={"libcuda1": Package("libcuda1", "570.172.08-1", True, True)},
        after={"libcuda1": "580.95.05-1"},
        held=frozenset({"libcuda1"}),
        files=[converge.File(Path("/etc/apt/preferences.d/x"), None, "Pin\n")],
        reboot_reasons=["why"],
    )


def test_parameters_arrive(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "scope": "host",
        "repository_url": "https://m/",
        "repository_key": "text",
        "module_options": {"nvidia_uvm": {"uvm_disable_hmm": 1}},
        "runfile": "/srv/driver.run",
        "coming_version": "590.44.01",
    }
    _, request = run(capsys, monkeypatch, outcome(), **options)
    assert (request.scope, request.absent, request.flavour) == ("host", False, "open")
    assert request.options == {"nvidia_uvm": {"uvm_disable_hmm": "1"}}
    assert request.repository is not None
    assert request.repository.key == "text"
    assert request.coming == "590.44.01"
    assert request.runfile is not None
    assert "--no-kernel-modules" in request.runfile.arguments
    _, request = run(capsys, monkeypatch, outcome())
    assert (request.scope, request.repository, request.runfile) == ("", None, None)


def test_result_and_diff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(capsys, monkeypatch, outcome(Check("a", "pass", "b", "c")))
    assert (result["changed"], result["version"], result["reboot_reasons"]) == (True, "580.95.05", ["why"])
    assert result["settled"] is False
    assert result["msg"] == "nvidia_driver: 580.95.05 (host): 1 passed"
    assert [(one["before"], one["after"]) for one in result["diff"]] == [
        ("libcuda1 570.172.08-1 hold\n", "libcuda1 580.95.05-1 hold\n"),
        ("", "Pin\n"),
    ]


def test_a_refusal_changed_nothing_and_keeps_its_checks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, _ = run(capsys, monkeypatch, outcome(Check("a.b", "fail", "this", "that", "do so")))
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].endswith("[a.b] expected this; found that; fix: do so")
    assert result["checks"][0]["id"] == "a.b"


def test_what_broke_off_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(capsys, monkeypatch, converge.DriverError("apt broke off: E: disk full"))
    assert (result["failed"], result["msg"]) == (True, "nvidia_driver: apt broke off: E: disk full")
