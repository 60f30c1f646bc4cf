# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import remote_code, snapshot

from lab.hub import HubServer


def judged(request: snapshot.Request) -> Check:
    return remote_code.judge(request, snapshot.plan(request), "models[0]")


@pytest.fixture
def request_(hub: HubServer, model: Path, tmp_path: Path) -> snapshot.Request:
    """A repository whose model brings code."""
    (model / "modeling_tiny.py").write_text("import os\n")
    hub.add("lab/coded", model)
    return snapshot.Request(tmp_path / "dest", repo_id="lab/coded", endpoint=hub.endpoint, python=sys.executable)


def test_code_of_a_commit_that_nobody_pinned_is_a_warning_with_the_line_that_pins_it(
    request_: snapshot.Request,
) -> None:
    commit = snapshot.plan(request_).commit
    check = judged(request_)
    assert (check.id, check.status) == ("model.remote_code", "warn")
    assert check.actual == f"modeling_tiny.py of lab/coded at {commit}, which models[0] does not pin"
    assert check.fix == f"read them, then, to pin models[0], write into it: revision: {commit}"


def test_code_of_a_pinned_commit_passes(request_: snapshot.Request) -> None:
    commit = snapshot.plan(request_).commit
    check = judged(dataclasses.replace(request_, revision=commit))
    assert (check.status, check.actual) == ("pass", f"modeling_tiny.py of lab/coded at {commit}")


def test_a_branch_by_its_name_is_no_pin(request_: snapshot.Request) -> None:
    assert judged(dataclasses.replace(request_, revision="main")).status == "warn"


def test_code_that_the_patterns_leave_out_is_not_there_to_run(request_: snapshot.Request) -> None:
    check = judged(dataclasses.replace(request_, ignore=("*.py",)))
    assert (check.status, check.actual) == ("pass", "lab/coded brings none: no Python among its 4 files")


def test_a_folder_of_no_known_commit_is_a_warning(request_: snapshot.Request, model: Path, tmp_path: Path) -> None:
    check = judged(snapshot.Request(tmp_path / "other", source=model))
    assert check.status == "warn"
    assert check.actual == f"modeling_tiny.py of {model}, of which no commit is known"
    assert check.fix.startswith("give models[0] repo_id and revision as well")


def test_many_files_are_counted(request_: snapshot.Request, model: Path, tmp_path: Path) -> None:
    for name in "abcd":
        (model / f"{name}.py").touch()
    actual = judged(snapshot.Request(tmp_path / "other", source=model)).actual
    assert actual.startswith("a.py, b.py, c.py and 2 more of ")
