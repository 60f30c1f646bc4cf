# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extra arguments of sglang_server: which would silently replace others, and how messages call them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def shown(given: dict[str, object]) -> dict[str, Any]:
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
    }
    play = str(Path(__file__).with_name("extra_args.yml"))
    command = [str(ROOT / ".build/venv/bin/ansible-playbook"), "-i", "localhost,", play]
    told = json.dumps({"given": given})
    done = subprocess.run(
        [*command, "-e", told], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (task,) = (task for task in json.loads(done.stdout)["plays"][0]["tasks"] if task["task"]["name"] == "Show it")
    message: dict[str, Any] = task["hosts"]["localhost"]["msg"]
    return message


@pytest.mark.parametrize(
    ("given", "replaced"),
    [
        ({"dtype": "float32", "trust-remote-code": True}, []),
        # Nothing else of the role would see this drafter.
        ({"speculative-draft-model": "/srv/models/drafter"}, ["speculative_draft_model_path"]),
        ({"tp-size": 4, "dtype": "float32"}, ["tp_size"]),
        ({"attention-backend": "triton", "attention_backend": "fa3"}, ["attention_backend"]),
    ],
)
def test_what_would_silently_replace_another_value(given: dict[str, object], replaced: list[str]) -> None:
    assert shown(given)["replaced"] == replaced


def test_messages_name_the_variable_that_gives_a_flag() -> None:
    names = shown({"tp": 4, "log_level": "debug"})["names"]
    assert names["--tp"] == "sglang_server_extra_args.tp"
    assert names["--tp-size"] == "sglang_server_tp_size"
    assert names["--port"] == "sglang_server_instances[main].port"
    assert names["--log-level"] == "sglang_server_instances[main].extra_args.log-level"


def test_their_order_makes_no_other_release() -> None:
    first, second = (
        {"dtype": "float32", "attention-backend": "triton"},
        {"attention_backend": "triton", "dtype": "float32"},
    )
    assert shown(first)["argv"] == shown(second)["argv"]
