# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import pip


def shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


@pytest.mark.parametrize(
    ("printed", "fix"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "fix: a wheel is not the one"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
        (
            "WARNING: Retrying: Temporary failure in name resolution\nERROR: No matching distribution found for a",
            "the package index is not reached",
        ),
        ("ERROR: No matching distribution found for a==1.0", "there is no a==1.0 for this Python and machine"),
        ("ERROR: ResolutionImpossible: for help visit", "contradict each other"),
        ("Hashes are required in --require-hashes mode, but they are missing", "entries without a hash"),
        ("/usr/bin/python3: No module named pip", "install the distribution's python3-pip"),
    ],
)
def test_a_failure_that_is_known_tells_what_to_do(printed: str, fix: str) -> None:
    with pytest.raises(pip.PipError, match="pip install ended with 1") as error:
        pip.run(shell(f"cat >&2 <<'.'\n{printed}\n.\nexit 1"), "pip install")
    assert fix in str(error.value)
    assert printed.splitlines()[-1] in str(error.value)
    assert "Retrying" not in str(error.value)


def test_an_unknown_failure_tells_its_last_lines() -> None:
    with pytest.raises(pip.PipError) as error:
        pip.run(shell("seq 100; exit 3"), "x")
    assert str(error.value).splitlines() == ["x ended with 3:", *map(str, range(86, 101))]


def test_one_that_was_killed() -> None:
    with pytest.raises(pip.PipError, match="was killed by signal 9; run again, which finishes it"):
        pip.run(shell("kill -9 $$"), "pip install")


def test_one_that_is_not_there() -> None:
    with pytest.raises(pip.PipError, match="x: /nowhere/python cannot be run: No such file"):
        pip.run(["/nowhere/python"], "x")


def test_offline_no_setting_of_the_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://example.test/simple")
    monkeypatch.setenv("PYTHONPATH", "/srv")
    ask = ["/usr/bin/python3", "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    online, offline = (json.loads(pip.run(ask, "x", offline=offline)) for offline in (False, True))
    assert online["PIP_INDEX_URL"] == "https://example.test/simple"
    assert "PIP_INDEX_URL" not in offline
    assert offline["PIP_CONFIG_FILE"] == os.devnull
    assert "PYTHONPATH" not in online


def test_the_options_of_a_source() -> None:
    assert pip.Source().arguments() == []
    assert pip.Source("/srv/w", "https://a.test", ("https://b.test",)).arguments() == [
        "--no-index",
        "--find-links",
        "/srv/w",
    ]
    assert pip.Source(None, "https://a.test", ("https://b.test", "https://c.test")).arguments() == [
        "--index-url",
        "https://a.test",
        "--extra-index-url",
        "https://b.test",
        "--extra-index-url",
        "https://c.test",
    ]
