# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worked example resolves and renders, and nothing connects to it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CT200 = ROOT / "inventories" / "ct200"


def ansible_playbook(*arguments: str) -> str:
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
    }
    command = [str(ROOT / ".build/venv/bin/ansible-playbook"), "-i", str(CT200), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("playbook", sorted(path.name for path in (ROOT / "playbooks").glob("*.yml")))
def test_a_playbook_resolves_every_name(playbook: str) -> None:
    ansible_playbook(f"playbooks/{playbook}", "--syntax-check")


def rendered(task: str, **variables: object) -> Any:
    """What a task of render.yml shows of the worked example."""
    extra = ("-e", json.dumps(variables))
    told = json.loads(ansible_playbook(str(Path(__file__).with_name("render.yml")), *extra))
    (found,) = (one for one in told["plays"][0]["tasks"] if one["task"]["name"] == task)
    return found["hosts"]["ct200"]["msg"]


def test_rendered_command_is_the_documented_one() -> None:
    command = shlex.split(rendered("Show the command"))
    assert command[:3] == ["/opt/sglang/engine-0.5.20/bin/python", "-m", "sglang.launch_server"]
    flags = dict(zip(command, command[1:]))
    assert flags["--tp-size"] == "8"
    assert flags["--mem-fraction-static"] == "0.85"
    assert flags["--speculative-algorithm"] == "EAGLE3"
    numbers = [flags[f"--speculative-{name}"] for name in ("num-steps", "eagle-topk", "num-draft-tokens")]
    assert numbers == ["3", "1", "4"]
    assert "--trust-remote-code" in command
    assert "--context-length" not in command


def test_rendered_command_without_speculation() -> None:
    command = rendered("Show the command", serve_profile="k26_baseline")
    assert "--speculative" not in command
    assert "--reasoning-parser kimi_k2 --tool-call-parser kimi_k2" in command


def test_rendered_command_of_a_dflash_drafter() -> None:
    command = rendered("Show the command", serve_profile="qwen36_27b_dflash")
    assert "--speculative-algorithm DFLASH" in command
    assert "--speculative-num-draft-tokens 8" in command
    assert "--speculative-num-steps" not in command
    assert "--trust-remote-code" not in command


def test_code_of_models_is_judged_where_the_engine_runs_it() -> None:
    told = {
        "id": "model.remote_code",
        "status": "warn",
        "expected": "",
        "actual": "not pinned",
        "fix": "pin it",
        "source": "",
    }
    code = {"/srv/models/moonshotai/Kimi-K2.6": told, "/srv/models/nobody/asked": told}
    base, drafter = rendered("Show what is known of the models' code", sglang_server_model_code=code)
    assert base == told
    # What nothing was said of is not passed.
    assert (drafter["id"], drafter["status"]) == ("model.remote_code", "skipped")
    assert drafter["actual"] == "where the files in /srv/models/lightseekorg/kimi-k2.6-eagle3 came from was not told"
    assert (
        rendered("Show what is known of the models' code", sglang_server_extra_args={}, sglang_server_model_code=code)
        == []
    )


def test_no_commit_is_made_up() -> None:
    text = (CT200 / "group_vars" / "sglang.yml").read_text(encoding="utf-8")
    assert re.findall(r"\b[0-9a-f]{40}\b", text) == []


@pytest.mark.parametrize("inventory", sorted(path.name for path in (ROOT / "inventories").iterdir()))
def test_inventory_sets_only_what_a_role_knows(inventory: str) -> None:
    roles = [path.parent.parent for path in ROOT.glob("roles/*/meta/argument_specs.yml")]
    known = set()
    for role in roles:
        specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
        known |= {name for entry in specs.values() for name in entry["options"]}
    prefixes = tuple(f"{role.name}_" for role in roles)
    settings: set[str] = set()
    for path in (ROOT / "inventories" / inventory / "group_vars").glob("*.yml"):
        settings |= set(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert settings
    assert sorted(name for name in settings if name.startswith(prefixes) and name not in known) == []
