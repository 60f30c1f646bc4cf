# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import debian

TOLD = """\
ca-certificates installed 20230311
lscpu-removed config-files 1.0
util-linux installed 2.38.1-5+deb12u3
"""


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "dpkg-query"
    script.write_text(f"#!/bin/sh\necho \"$@\" >'{tmp_path}/asked'\ncat <<'.'\n{TOLD}.\nexit 1\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "asked"


def test_what_is_not_installed_is_missing(dpkg: Path) -> None:
    assert debian.missing(["ca-certificates", "lscpu-removed", "python3-venv"]) == ["lscpu-removed", "python3-venv"]
    assert dpkg.read_text(encoding="utf-8").endswith(" ca-certificates lscpu-removed python3-venv\n")


@pytest.mark.usefixtures("dpkg")
def test_another_version_is_missing() -> None:
    names = ["util-linux=2.38.1-5+deb12u3", "ca-certificates=20240101"]
    assert debian.missing(names) == ["ca-certificates=20240101"]


def test_nothing_is_asked_when_nothing_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.missing([]) == []
    with pytest.raises(debian.DebianError, match="needs Debian"):
        debian.missing(["util-linux"])
