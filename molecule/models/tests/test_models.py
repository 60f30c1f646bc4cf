# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator would look at after a download, and what a bad day looks like."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLAYBOOK = "molecule/models/converge.yml"
PAGED = "/srv/models/paged"
SERVED = "/srv/hub/lab/paged"

testinfra_hosts = ["ansible://ct200"]


@pytest.fixture
def pve(host):
    return host.get_host("ansible://pve", ansible_inventory=host.backend.ansible_inventory)


def command(*arguments: str, **variables: object) -> list[str]:
    """The scenario's playbook with other variables."""
    return [
        *("ansible-playbook", PLAYBOOK, "-i", "inventories/sandbox"),
        *(["-e", json.dumps(variables)] if variables else []),
        *arguments,
    ]


def play(*arguments: str, **variables: object) -> str:
    done = subprocess.run(command(*arguments, **variables), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def changed(output: str) -> dict[str, int]:
    recap = output.split("PLAY RECAP")[1]
    return {host: int(count) for host, count in re.findall(r"^(\S+)\s*:.*changed=(\d+)", recap, re.MULTILINE)}


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
    assert told["origin"] == "lab/paged"
    assert re.fullmatch("[0-9a-f]{40}", told["commit"])
    assert {f"./{name}": file["sha256"] for name, file in told["files"].items()} == hashes(pve, SERVED)


def test_decay_is_found_and_only_what_is_broken_comes_again(host):
    path = f"{PAGED}/model-1.safetensors"
    host.check_output(
        "touch -r %s /tmp/time && printf X | dd of=%s bs=1 seek=1000 conv=notrunc status=none && touch -r /tmp/time %s",
        *(path, path, path),
    )
    assert changed(play("--limit", "ct200"))["ct200"] == 0
    output = play("--limit", "ct200", hf_models_verify="sha256")
    assert changed(output)["ct200"] == 1
    assert changed(play("--limit", "ct200", hf_models_verify="sha256"))["ct200"] == 0


def test_check_mode_on_a_host_without_the_model_writes_nothing(host):
    model = {"repo_id": "lab/tiny-eagle3", "allow_moving": True, "dest": "/srv/models/looked-at"}
    assert changed(play("--check", "--limit", "ct200", hf_models_models=[model]))["ct200"] == 1
    assert not host.file("/srv/models/looked-at").exists


def test_a_transfer_outlives_its_connection(host, pve):
    """The ssh sessions of the run are ended while it goes on; its output tells how far it is all the same."""
    address = host.check_output("getent hosts pve").split()[0]
    model = {"repo_id": "lab/paged", "allow_moving": True, "dest": "/srv/models/slow"}
    variables = {"hf_models_endpoint": f"http://{address}:8092", "hf_models_models": [model]}
    running = subprocess.Popen(
        command("--limit", "ct200", **variables), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    status = host.file("/srv/models/slow/.gpuserve/status.json")
    for _ in range(100):
        if status.exists:
            break
        time.sleep(0.2)
    subprocess.run(
        ["python3", "-m", "lab", "exec", "ct200", "--", "pkill", "-f", "sshd: root"], cwd=ROOT, check=True, timeout=30
    )
    output, _ = running.communicate(timeout=120)
    assert running.returncode == 0, output
    assert changed(output)["ct200"] == 1
    assert re.search(r"ct200: hf_models_models\[0\]: brought .* of 50\.\d MB \(\d+ %\), .*MB/s", output), output
    assert hashes(pve, SERVED).items() <= hashes(host, "/srv/models/slow").items()


def test_a_model_goes_when_it_is_no_longer_wanted(host):
    models = [{"dest": "/srv/models/slow", "state": "absent"}]
    assert changed(play("--limit", "ct200", hf_models_models=models))["ct200"] == 1
    assert not host.file("/srv/models/slow").exists
    assert changed(play("--limit", "ct200", hf_models_models=models))["ct200"] == 0


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"repo_id": "lab/nowhere", "allow_moving": True}, "check the spelling of the repository"),
        ({"repo_id": "lab/paged", "revision": "f" * 40}, "has no such revision (HTTP 404); fix: correct the revision"),
        ({"repo_id": "lab/paged", "revision": "main"}, "expected a commit of 40 hexadecimal digits"),
    ],
)
def test_what_cannot_be_had_is_a_sentence(model, told):
    model = {**model, "dest": "/srv/models/never"}
    done = subprocess.run(
        command("--limit", "ct200", hf_models_models=[model]), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    text = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert "hf_models_models[0]: " in text
    assert told in text
    assert "Traceback" not in text
