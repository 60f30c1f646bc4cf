# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator would look at after a download, and what a bad day looks like."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from tests.fixtures import plays

PAGED = "/srv/models/paged"
SERVED = "/srv/hub/scenario/paged"

testinfra_hosts = ["ansible://ct200"]


@pytest.fixture
def pve(host):
    return host.get_host("ansible://pve", ansible_inventory=host.backend.ansible_inventory)


def command(*arguments: str, **variables: object) -> tuple[str, ...]:
    """The scenario's playbook on the container, with other variables."""
    return plays.playbook("molecule/models/converge.yml", "--limit", "ct200", *arguments, **variables)


def play(*arguments: str, **variables: object) -> int:
    """One run that must not fail. Returns how many tasks changed something."""
    status, output = plays.run(*command(*arguments, **variables))
    assert status == 0, output
    return plays.changed(output)["ct200"]


def hashes(host, folder: str) -> dict[str, str]:
    told = host.check_output("cd %s && find . -path ./.gpuserve -prune -o -type f -print0 | xargs -0 sha256sum", folder)
    return {name: digest for digest, name in (line.split(None, 1) for line in told.splitlines())}


def test_both_hosts_hold_what_the_hub_serves(host, pve):
    served = hashes(pve, SERVED)
    assert len(served) == 123
    for there in (host, pve):
        held = hashes(there, PAGED)
        assert held.pop("./.gpuserve-manifest.json")
        assert held == served


def test_the_manifest_names_commit_and_hashes(host, pve):
    told = json.loads(host.file(f"{PAGED}/.gpuserve-manifest.json").content_string)
    assert told["origin"] == "scenario/paged"
    assert re.fullmatch("[0-9a-f]{40}", told["commit"])
    assert {f"./{name}": file["sha256"] for name, file in told["files"].items()} == hashes(pve, SERVED)


def test_decay_is_found_and_only_what_is_broken_comes_again(host):
    path = f"{PAGED}/model-1.safetensors"
    host.check_output(
        "touch -r %s /tmp/time && printf X | dd of=%s bs=1 seek=1000 conv=notrunc status=none && touch -r /tmp/time %s",
        *(path, path, path),
    )
    assert play() == 0
    assert play(hf_models_verify="sha256") == 1
    assert play(hf_models_verify="sha256") == 0


def test_check_mode_on_a_host_without_the_model_writes_nothing(host):
    model = {"repo_id": "lab/tiny-eagle3", "allow_moving": True, "dest": "/srv/models/looked-at"}
    assert play("--check", hf_models_models=[model]) == 1
    assert not host.file("/srv/models/looked-at").exists


@pytest.fixture
def slow_hub(pve):
    """The address of a second Hub with the same repositories that takes its time."""
    served = "/usr/bin/python3 /usr/lib/gpuserve-lab/hub.py /srv/hub --address pve --port 8092 --rate 1000000"
    pve.check_output(f"systemd-run --unit=slow-hub --service-type=notify --collect {served}")
    yield "http://pve:8092"
    pve.check_output("systemctl stop slow-hub")


def test_a_transfer_outlives_its_connection(host, pve, slow_hub):
    """The ssh sessions of the run are ended while it goes on; its output tells how far it is all the same."""
    model = {"repo_id": "scenario/paged", "allow_moving": True, "dest": "/srv/models/slow"}
    running = plays.start(*command(hf_models_endpoint=slow_hub, hf_models_models=[model]))
    status = host.file("/srv/models/slow/.gpuserve/status.json")
    for _ in range(100):
        if status.exists:
            break
        time.sleep(0.2)
    subprocess.run(
        ["python3", "-m", "lab", "exec", "ct200", "--", "pkill", "-f", "sshd: root"],
        cwd=plays.ROOT,
        check=True,
        timeout=30,
    )
    output, _ = running.communicate(timeout=120)
    assert running.returncode == 0, output
    assert plays.changed(output)["ct200"] == 1
    assert re.search(r"ct200: hf_models_models\[0\]: brought .* of 50\.\d MB \(\d+ %\), .*MB/s", output), output
    assert hashes(pve, SERVED).items() <= hashes(host, "/srv/models/slow").items()


def test_a_model_goes_when_it_is_no_longer_wanted(host):
    models = [{"dest": "/srv/models/slow", "state": "absent"}]
    assert play(hf_models_models=models) == 1
    assert not host.file("/srv/models/slow").exists
    assert play(hf_models_models=models) == 0


@pytest.fixture
def small_disk(host):
    """A file system of 20 MB, unmounted afterwards."""
    host.check_output("mkdir -p /srv/small && mount -t tmpfs -o size=20m tmpfs /srv/small")
    yield "/srv/small"
    host.check_output("umount /srv/small")


@pytest.mark.parametrize(
    ("command_before", "told"),
    [
        (
            "true",
            r"/srv/small/paged has 21\.0 MB free; 50\.3 MB are missing and 100 MB stay in reserve; fix: free 129 MB",
        ),
        ("mount -o remount,ro /srv/small", r"the file system is read-only; fix: mount it writable"),
    ],
    ids=["small", "read-only"],
)
def test_a_disk_that_will_not_do_is_told_before_the_first_byte(host, small_disk, command_before, told):
    host.check_output(command_before)
    model = {"repo_id": "scenario/paged", "allow_moving": True, "dest": f"{small_disk}/paged"}
    output = plays.run(*command(hf_models_models=[model]))[1]
    assert re.search(told, plays.unfolded(output)), output


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"repo_id": "lab/nowhere", "allow_moving": True}, "check the spelling of the repository"),
        (
            {"repo_id": "scenario/paged", "revision": "f" * 40},
            "has no such revision (HTTP 404); fix: correct the revision",
        ),
        ({"repo_id": "scenario/paged", "revision": "main"}, "expected a commit of 40 hexadecimal digits"),
    ],
)
def test_what_cannot_be_had_is_a_sentence(model, told):
    model = {**model, "dest": "/srv/models/never"}
    status, output = plays.run(*command(hf_models_models=[model]))
    assert status != 0
    text = plays.unfolded(output)
    assert "hf_models_models[0]: " in text
    assert told in text
    assert "Traceback" not in text
