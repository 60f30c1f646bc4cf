# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.images import Image, cache, debian_sources
from lab.process import LabError

TARGETS = """\
Debian Debian http://mirror.example/debian/
Debian Debian http://mirror.example/debian/
Debian Debian-Security http://security.example/debian-security/
Example Third Party https://third.example/apt/
Debian Debian Backports http://mirror.example/debian/
"""


def test_sources_are_debians_alone() -> None:
    text = debian_sources(TARGETS, "bookworm")
    assert text is not None
    assert "URIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates\n" in text
    assert "URIs: http://security.example/debian-security/\nSuites: bookworm-security\n" in text
    assert "third.example" not in text
    assert text.count("Types: deb") == 2


@pytest.mark.parametrize("targets", ["", "Example Third https://third.example/\n", "  \n"])
def test_no_debian_archive(targets: str) -> None:
    assert debian_sources(targets, "bookworm") is None


def test_key_follows_what_it_is_made_from() -> None:
    images = [
        Image("base", "bookworm", "a", ()),
        Image("pvebase", "bookworm", "a", ()),
        Image("base", "trixie", "a", ()),
        Image("base", "bookworm", "b", ()),
        Image("base", "bookworm", "a", ('Acquire::http::Proxy "http://proxy.example:3128";',)),
    ]
    assert len({image.key for image in images}) == len(images)
    assert images[0].key == Image("base", "bookworm", "a", ()).key


def test_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUSERVE_CACHE", str(tmp_path / "c"))
    assert cache() == tmp_path / "c"
    monkeypatch.delenv("GPUSERVE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache() == tmp_path / "gpuserve-sglang"


def test_cache_that_no_overlay_can_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUSERVE_CACHE", str(tmp_path / "a:b"))
    with pytest.raises(LabError, match="GPUSERVE_CACHE"):
        cache()
