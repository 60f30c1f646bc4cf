# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight's tables: with a driver and without, with models in their folders and on the Hub alone."""

from __future__ import annotations

import re

import pytest

from tests.fixtures import plays

testinfra_hosts = ["ansible://ct200"]

HOSTS = ["pve", "ct200"]
WANTED = {
    "sglang_server_model_path": "/srv/models/base",
    "sglang_server_speculative_draft_model_path": "/srv/models/drafter",
    "hf_models_models": [
        {"dest": "/srv/models/base", "repo_id": "lab/tiny-llama", "allow_moving": True},
        {"dest": "/srv/models/drafter", "repo_id": "lab/tiny-eagle3", "allow_moving": True},
    ],
}
# What fails where a driver is expected and none is: of the lab's nodes none answers.
WITHOUT_DRIVER = ["driver.loaded", "node.nvidia-uvm", "node.nvidia0", "node.nvidiactl"]


def tables(output: str) -> dict[str, dict[str, str]]:
    """By host the status of each check in its table, as the last play shows it under the host's own name."""
    told = output.split("PLAY [Tell]")[1].split("PLAY RECAP")[0]
    found: dict[str, dict[str, str]] = {}
    host = ""
    for line in told.splitlines():
        text = line.strip().removeprefix("- ").strip("'\"")
        if text in HOSTS:
            host = text
        row = re.match(r"(pass|warn|fail|skipped) +([\w.-]+)", text)
        if row and host:
            found.setdefault(host, {})[row[2]] = row[1]
    return found


@pytest.mark.parametrize("name", HOSTS)
def test_what_was_not_checked_is_in_each_host_s_table_and_is_no_pass(sound: str, name: str) -> None:
    told = tables(sound)[name]
    unseen = [*WITHOUT_DRIVER, "driver.version", "cuda.init", "gpu.count"]
    assert {check: told[check] for check in unseen} == dict.fromkeys(unseen, "skipped")
    # The callback doubles an apostrophe.
    reason = r"driver\.version +nvidia_driver_state is unmanaged: the lab'+s kernel has no NVIDIA module"
    assert len(re.findall(reason, plays.unfolded(sound))) == len(HOSTS)


@pytest.fixture(scope="module")
def sound() -> str:
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml"))
    assert status == 0, output
    return output


def test_what_served_before_is_judged_all_the_same(sound: str) -> None:
    rows = tables(sound)["ct200"]
    assert "release.served_before" not in rows
    assert [name for name in rows if name.startswith("args.")], rows
    assert [name for name in rows if name.startswith("drafter.")], rows


def test_every_table_is_shown_when_the_host_fails() -> None:
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", gpu_health_driver="required"))
    assert status != 0, output
    told = tables(output)
    assert sorted(told) == sorted(HOSTS)
    for host in HOSTS:
        assert sorted(name for name, status in told[host].items() if status == "fail") == WITHOUT_DRIVER, output
    assert "[driver.loaded] expected" in plays.unfolded(output)


def test_what_is_ignored_is_shown_and_lets_it_pass() -> None:
    variables = {"gpu_health_driver": "required", "gpu_health_ignore": WITHOUT_DRIVER}
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", **variables))
    assert status == 0, output
    assert tables(output)["pve"]["driver.loaded"] == "fail"
    assert "gpu_health_ignore lets pass: node.nvidiactl" in plays.unfolded(output)


def test_code_of_models_has_its_row_where_the_engine_runs_it(sound: str) -> None:
    assert "model.remote_code" not in tables(sound)["ct200"]
    trusting = [{"name": "main", "extra_args": {"trust_remote_code": True}}]
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", sglang_server_instances=trusting))
    assert status == 0, output
    assert tables(output)["ct200"]["model.remote_code"] == "pass"
    assert "lab/tiny-llama brings none: no Python among its" in plays.unfolded(output)


def test_models_in_their_folders_are_judged(sound: str) -> None:
    told = tables(sound)["ct200"]
    assert (told["drafter.hidden_size"], told["base.readable"]) == ("pass", "pass")
    assert (told["engine.source"], told["engine.compressed_tensors"]) == ("pass", "pass")


def test_an_engine_that_is_not_installed_yet_is_not_checked() -> None:
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", sglang_server_venv="/opt/sglang/nowhere"))
    assert status == 0, output
    assert tables(output)["ct200"]["engine.source"] == "skipped"
    assert "/opt/sglang/nowhere" in plays.unfolded(output)


def test_models_that_are_on_the_hub_alone_are_judged_from_there(host) -> None:
    status, output = plays.run(*plays.playbook("playbooks/preflight.yml", **WANTED))
    assert status == 0, output
    assert set(plays.changed(output).values()) == {0}, output
    told = tables(output)["ct200"]
    assert (told["drafter.hidden_size"], told["base.readable"]) == ("pass", "pass")
    assert told["model.space"] == "pass"
    # How many weights there are is known when they are here.
    assert told["drafter.weights"] == "skipped"
    for model in WANTED["hf_models_models"]:
        assert not host.file(model["dest"]).exists
