# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles are whole, mean something to the roles and the engine, and give way to the inventory."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import rules, traps
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.command_line import argv
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.situation import Situation
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version

from scripts.profiles import DOCUMENT, PROFILES, document, profiles, variables

ROOT = Path(__file__).parents[3]
PLAYBOOK = Path(__file__).with_name("profile.yml")
NAMES = ["k26_baseline", "k26_eagle3", "k26_eagle3_1_mla", "k26_eagle3_mla", "qwen36_27b_dflash"]
# What the worked example installs, and the profiles were written for.
ENGINE = "0.5.20"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# --- as data ---------------------------------------------------------------------------------------------------------


def test_each_file_holds_the_profile_of_its_name() -> None:
    assert {path.stem: list(read(path)) for path in PROFILES.iterdir()} == {name: [name] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_is_whole(name: str) -> None:
    profile = profiles()[name]
    assert set(profile) - {"base"} == {"title", "evidence", "limits", "variables"}
    for told in ("evidence", "limits"):
        assert profile[told]
        assert all(isinstance(sentence, str) and sentence.endswith(".") for sentence in profile[told])


@pytest.mark.parametrize("name", NAMES)
def test_a_base_has_no_base(name: str) -> None:
    base = profiles()[name].get("base")
    assert base is None or "base" not in profiles()[base]


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_sets_variables_of_roles_and_not_the_site_s(name: str) -> None:
    known: set[str] = set()
    for path in ROOT.glob("roles/*/meta/argument_specs.yml"):
        known |= set(read(path)["argument_specs"]["main"]["options"])
    assert sorted(set(variables(name)) - known) == []
    site = "venv|version|host|port|environment|cuda_home|user|home|groups|instances|endpoint|token|python"
    assert [
        variable for variable in variables(name) if re.fullmatch(rf"(hf_models|sglang_server)_.*({site})", variable)
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_model_that_is_served_is_brought(name: str) -> None:
    told = variables(name)
    paths = [told["sglang_server_model_path"], told.get("sglang_server_speculative_draft_model_path")]
    assert [model["dest"] for model in told["hf_models_models"]] == [path for path in paths if path]


@pytest.mark.parametrize("name", NAMES)
def test_no_commit_is_made_up(name: str) -> None:
    assert all(model["allow_moving"] and "revision" not in model for model in variables(name)["hf_models_models"])
    assert re.findall(r"\b[0-9a-f]{40}\b", (PROFILES / f"{name}.yml").read_text(encoding="utf-8")) == []


def test_each_profile_has_its_playbook_and_the_other_way_round() -> None:
    plays = {path.stem: read(path) for path in (ROOT / "playbooks").glob("*.yml")}
    imports = {
        stem: [(play["ansible.builtin.import_playbook"], play["vars"]) for play in told]
        for stem, told in plays.items()
        if "ansible.builtin.import_playbook" in told[0]
    }
    assert imports == {name: [("serve.yml", {"serve_profile": name})] for name in NAMES}


def test_the_document_is_the_profiles() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run scripts/profiles.py"


def test_the_sandbox_leaves_the_profile_nothing_to_set() -> None:
    inventory = read(ROOT / "inventories" / "sandbox" / "group_vars" / "sglang.yml")
    assert sorted(set(variables("k26_eagle3")) - set(inventory)) == []


# --- as the engine's flags -------------------------------------------------------------------------------------------


def judged(name: str, **changed: object) -> dict[str, str]:
    """The status of each check of the flags, by our own rules, as no engine is asked."""
    told = {**variables(name), **changed}
    own = {key.removeprefix("sglang_server_"): value for key, value in told.items() if key.startswith("sglang_server_")}
    extra = own.pop("extra_args")
    situation = Situation.of(argv({**own, **extra}), parse_version(ENGINE))
    return {check.id: check.status for check in [*rules.judge(situation), *traps.judge(situation)]}


@pytest.mark.parametrize("name", NAMES)
def test_no_rule_refuses_a_profile_s_flags(name: str) -> None:
    statuses = judged(name)
    assert FAIL not in statuses.values(), statuses
    if variables(name)["sglang_server_speculative_algorithm"]:
        passed = {"args.flags", "args.algorithm", "args.drafter_path"}
        assert {statuses[check] for check in passed} == {PASS}


def test_the_rules_would_refuse_them() -> None:
    assert judged("k26_eagle3", sglang_server_speculative_num_steps=1)["args.chain_length"] == FAIL
    assert judged("k26_eagle3", sglang_server_speculative_eagle_topk=None)["args.three_numbers"] == FAIL
    assert judged("qwen36_27b_dflash", sglang_server_speculative_algorithm="DDTREE")["args.algorithm"] == FAIL
    assert judged("qwen36_27b_dflash", sglang_server_speculative_draft_model_path=None)["args.drafter_path"] == FAIL


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("k26_")])
def test_kimi_has_its_parsers_and_its_memory(name: str) -> None:
    told = variables(name)
    assert (told["sglang_server_tp_size"], told["sglang_server_mem_fraction_static"]) == (8, 0.85)
    extra = told["sglang_server_extra_args"]
    assert (extra["tool_call_parser"], extra["reasoning_parser"], extra["trust_remote_code"]) == (
        "kimi_k2",
        "kimi_k2",
        True,
    )
    assert "quantization" not in extra


# --- as a host's variables -------------------------------------------------------------------------------------------


def taken(tmp_path: Path, hosts: dict[str, dict[str, Any]], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run with these hosts. Returns the exit status, each host's variables, and what was said."""
    # Nobody listens there: a task that went to the host would fail.
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "vars": nowhere}}))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
    }
    command = [str(ROOT / ".build/venv/bin/ansible-playbook"), "-i", str(tmp_path / "hosts.yml"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    tasks = [task for play in json.loads(done.stdout)["plays"] for task in play["tasks"]]
    told = [task["hosts"] for task in tasks if task["task"]["name"] == "Show the variables"]
    return done.returncode, {name: result["msg"] for hosts in told for name, result in hosts.items()}, done.stdout


@pytest.mark.parametrize("arguments", [(), ("--check",)], ids=["run", "check mode"])
def test_hosts_take_what_their_inventory_leaves_open(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    hosts: dict[str, dict[str, Any]] = {name: {"serve_profile": name} for name in NAMES}
    hosts["none"] = {}
    hosts["empty"] = {"serve_profile": ""}
    hosts["own"] = {
        "serve_profile": "k26_eagle3",
        "sglang_server_tp_size": 4,
        "sglang_server_mem_fraction_static": None,
        "sglang_server_extra_args": "{{ profile.variables.sglang_server_extra_args | combine({'log_level': 'info'}) }}",
    }
    status, told, said = taken(tmp_path, hosts, *arguments, str(PLAYBOOK))
    assert status == 0, said
    assert (told["none"], told["empty"]) == ({}, {})
    assert {name: told[name] for name in NAMES} == {name: variables(name) for name in NAMES}
    wanted = variables("k26_eagle3")
    extra = {**wanted["sglang_server_extra_args"], "log_level": "info"}
    own = {"sglang_server_tp_size": 4, "sglang_server_mem_fraction_static": None, "sglang_server_extra_args": extra}
    assert told["own"] == {**wanted, **own}


def test_an_extra_variable_wins_and_names_the_profile_too(tmp_path: Path) -> None:
    extra = json.dumps({"serve_profile": "k26_eagle3", "sglang_server_speculative_num_steps": 5})
    hosts: dict[str, dict[str, Any]] = {"kimi": {"serve_profile": "qwen36_27b_dflash"}}
    status, told, said = taken(tmp_path, hosts, "-e", extra, str(PLAYBOOK))
    assert status == 0, said
    assert told["kimi"] == {**variables("k26_eagle3"), "sglang_server_speculative_num_steps": 5}


def test_an_unknown_profile_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    status, told, said = taken(tmp_path, {"kimi": {"serve_profile": "k26_eagle"}}, str(PLAYBOOK))
    assert (status, told) == (2, {})
    assert f"expected one of {', '.join(NAMES)} as serve_profile; found k26_eagle; fix: write one of them" in said


def test_a_second_profile_in_one_run_is_refused(tmp_path: Path) -> None:
    once = {"ansible.builtin.import_playbook": str(PLAYBOOK)}
    other = {**once, "vars": {"serve_profile": "k26_baseline"}}
    (tmp_path / "site.yml").write_text(json.dumps([once, once, other]))
    hosts: dict[str, dict[str, Any]] = {"kimi": {"serve_profile": "k26_eagle3"}}
    status, told, said = taken(tmp_path, hosts, str(tmp_path / "site.yml"))
    assert (status, told["kimi"]) == (2, variables("k26_eagle3"))
    assert "expected k26_eagle3, which this run took before, as serve_profile; found k26_baseline" in said
    assert "fix: give each profile a run of ansible-playbook of its own" in said
