# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a task runs it: options in, JSON out."""

from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Device, Extras, LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.judge import Grant
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.survey import Question, Survey
from ansible_collections.gpuserve.sglang.plugins.modules import lxc_gpu_info

from tests.fixtures.modules import in_process

NODE = Device("/dev/nvidia0", 195, 0)
FOUND = Survey(
    (Check("lxc_gpu.200.exists", "pass", "a", "a"),),
    "proxmox",
    "dev",
    nodes=(NODE,),
    nodes_wrong=("/dev/nvidia0",),
    grants={"200": (NODE,), "201": ()},
    stopped=("200",),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    questions: list[Question] = []

    def look(question: Question) -> Survey:
        questions.append(question)
        return FOUND

    monkeypatch.setattr(lxc_gpu_info, "survey", look)
    return questions


def test_what_is_asked(capsys: pytest.CaptureFixture[str], asked: list[Question]) -> None:
    in_process(
        capsys,
        lxc_gpu_info,
        containers=[{"vmid": 200, "gpus": [0, "GPU-a"], "gid": 44}],
        caps=True,
        gpus=[0, 1],
        style="dev",
    )
    assert asked == [
        Question((Grant("200", [0, "GPU-a"], gid=44),), style="dev", gpus=(0, 1), extras=Extras(caps=True))
    ]


def test_what_is_told(capsys: pytest.CaptureFixture[str], asked: list[Question]) -> None:
    result = in_process(capsys, lxc_gpu_info, containers=[{"vmid": "200"}])
    assert (result["changed"], result["msg"]) == (False, "lxc_gpu: 1 passed")
    assert [(c["vmid"], c["state"], len(c["devices"])) for c in result["containers"]] == [
        ("200", "present", 1),
        ("201", "absent", 0),
    ]
    node = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0, "mode": "0666", "uid": 0, "gid": 0}
    assert result["nodes"] == result["containers"][0]["devices"] == [node]
    assert (result["nodes_wrong"], result["stopped"], result["restart"]) == (["/dev/nvidia0"], ["200"], [])


def test_a_check_that_fails_fails_the_task_and_is_returned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Check("lxc_gpu.999.exists", "fail", "a container", "no such id", "correct vmid")
    monkeypatch.setattr(lxc_gpu_info, "survey", lambda question: Survey((failed,), "proxmox", "dev"))
    result = in_process(capsys, lxc_gpu_info, containers=[{"vmid": "999"}])
    assert result["failed"] is True
    assert "expected a container; found no such id; fix: correct vmid" in result["msg"]
    assert result["checks"][0]["id"] == "lxc_gpu.999.exists"


def test_what_leaves_nothing_to_judge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(question: Question) -> Survey:
        raise LxcError("this user is not root")

    monkeypatch.setattr(lxc_gpu_info, "survey", refuse)
    result = in_process(capsys, lxc_gpu_info, containers=[])
    assert (result["failed"], result["msg"], result["checks"]) == (True, "this user is not root", [])
