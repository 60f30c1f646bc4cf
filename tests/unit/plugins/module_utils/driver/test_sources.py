# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import sources
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.sources import KeyFetchError, Repository

ARMOURED = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"


def lines(repository: Repository, keyring: str = "") -> list[str]:
    return repository.sources(keyring).splitlines()[1:]


def test_key_as_text_has_no_empty_line() -> None:
    assert lines(Repository("https://m/debian12/", key=ARMOURED)) == [
        "Types: deb",
        "URIs: https://m/debian12/",
        "Suites: /",
        "Signed-By:",
        " -----BEGIN PGP PUBLIC KEY BLOCK-----",
        " .",
        " abc",
        " -----END PGP PUBLIC KEY BLOCK-----",
    ]


def test_key_as_path_address_and_none() -> None:
    assert lines(Repository("u", key="/usr/share/keyrings/k.gpg"))[-1] == "Signed-By: /usr/share/keyrings/k.gpg"
    fetched = Repository("u", "stable", ("main", "extra"), "https://m/k.pub")
    assert fetched.key_url == "https://m/k.pub"
    assert lines(fetched, "/etc/apt/keyrings/k.asc")[2:] == [
        "Suites: stable",
        "Components: main extra",
        "Signed-By: /etc/apt/keyrings/k.asc",
    ]
    assert "Signed-By" not in Repository("u").sources("")


def test_key_is_fetched_over_https_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "apt-helper"
    helper.write_text('#!/bin/sh\n[ "$4" = https://m/k ] || { echo "E: no route" >&2; exit 100; }\nprintf key > "$5"\n')
    helper.chmod(0o755)
    monkeypatch.setattr(sources, "_APT_HELPER", str(helper))
    assert sources.fetch_key("https://m/k") == b"key"
    with pytest.raises(KeyFetchError, match="E: no route"):
        sources.fetch_key("https://m/gone")
    with pytest.raises(KeyFetchError, match="over https only"):
        sources.fetch_key("http://m/k")
    monkeypatch.setattr(sources, "_APT_HELPER", str(tmp_path / "none"))
    with pytest.raises(KeyFetchError, match="No such file"):
        sources.fetch_key("https://m/k")


def test_keyring_s_name_tells_its_format() -> None:
    assert sources.keyring(ARMOURED.encode()) == Path("etc/apt/keyrings/gpuserve-nvidia-driver.asc")
    assert sources.keyring(b"\x99\x02") == Path("etc/apt/keyrings/gpuserve-nvidia-driver.gpg")


def test_pin_wins_over_what_is_installed() -> None:
    text = sources.preferences("580.95.05")
    assert "Package: *nvidia* libcuda* " in text
    assert "Pin: version 580.95.05-*\nPin-Priority: 1001\n" in text
