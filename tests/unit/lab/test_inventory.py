# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from lab import cli
from lab.instance import Lab
from lab.inventory import inventory

ROOT = Path(__file__).resolve().parents[3]


def test_groups_and_variables() -> None:
    lab = Lab("demo")
    data = json.loads(json.dumps(inventory(lab)))
    assert data["proxmox"] == {"hosts": ["pve"]}
    assert data["sglang"] == {"hosts": ["ct200"]}
    ct200 = data["_meta"]["hostvars"]["ct200"]
    assert ct200["ansible_host"] == str(lab.ct_address)
    assert ct200["ansible_user"] == "root"
    assert ct200["ansible_python_interpreter"] == "/usr/bin/python3"
    assert ct200["ansible_ssh_private_key_file"] == str(lab.key)
    arguments = ct200["ansible_ssh_common_args"].split()
    assert f"UserKnownHostsFile={lab.known_hosts}" in arguments
    assert "StrictHostKeyChecking=yes" in arguments
    assert f"ControlPath={lab.control}/%C" in arguments


def test_lab_that_is_not_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lab.instance.STATE_ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["lab", "inventory", "--id", "absent", "--list"])
    assert cli.main() == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "error: lab 'absent' is not up: run `make sandbox`\n"


def test_inventory_script_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "deep" / "hosts.sh"
    link.parent.mkdir()
    link.symlink_to(ROOT / "inventories/sandbox/hosts.sh")
    environment = {**os.environ, "GPUSERVE_LAB": "not-there"}
    done = subprocess.run([link, "--list"], capture_output=True, text=True, cwd="/", env=environment)
    assert done.returncode == 1
    assert "lab 'not-there' is not up" in done.stderr
