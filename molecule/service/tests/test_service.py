# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a service: one story, step by step. The role runs alone, without the judgement before it."""

from __future__ import annotations

import json
import re
import time

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.command_line import systemd_exec

from tests.fixtures import memory, plays

testinfra_hosts = ["ansible://ct200"]

MAIN = "sglang@main.service"
ENGINE = "/opt/sglang/engine-0.5.20/bin/python"
RANDOM = "/srv/models/tiny-eagle3-random"
KEY = "sesame-0123456789"
# The right pair has 1.97. One that lacks weights computes with whatever its memory held, and is sometimes lucky.
HALFWAY = {"sglang_server_accept_length_floor": 1.5}

# Argument: a drafter. Beside it appears one of the same shape that never learned anything.
SCRAMBLE = """
import shutil, sys, torch
from pathlib import Path
from safetensors.torch import load_file, save_file
source, target = map(Path, sys.argv[1:])
shutil.copytree(source, target, dirs_exist_ok=True)
torch.manual_seed(1)
for file in target.glob("*.safetensors"):
    tensors = load_file(file)
    save_file({n: torch.randn_like(t) if t.is_floating_point() else t for n, t in tensors.items()}, file)
    file.chmod(0o644)
"""
# Every Python process of the engine's begins with it.
NOISE = "import os; os.write(2, os.urandom(300_000))"
# Arguments: port, tokens. Prints the status, and how many tokens came.
ASK = """
import json, sys, urllib.error, urllib.request
port, tokens, *key = sys.argv[1:]
body = {"text": "hello world", "sampling_params": {"temperature": 0, "max_new_tokens": int(tokens), "ignore_eos": True}}
headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + key[0]} if key else {})}
request = urllib.request.Request(f"http://127.0.0.1:{port}/generate", json.dumps(body).encode(), headers)
try:
    told = json.load(urllib.request.urlopen(request, timeout=100))
    print(200, told["meta_info"]["completion_tokens"])
except urllib.error.HTTPError as error:
    print(error.code, 0)
"""


def serve(*arguments: str, **variables: object) -> tuple[int, str]:
    """One run of the role. Returns its exit status and what it said."""
    status, output = plays.run(*plays.playbook("molecule/service/serve.yml", *arguments, **variables))
    return status, plays.unfolded(output)


def served(*arguments: str, **variables: object) -> str:
    """One run that must not fail."""
    status, output = serve(*arguments, **variables)
    assert status == 0, output
    return output


def changed(output: str) -> int:
    return int(re.search(r"ct200 : ok=\d+ changed=(\d+)", output)[1])


def instance(**settings: object) -> list[dict[str, object]]:
    return [{"name": "main", **settings}]


def show(host, name: str, unit: str = MAIN) -> str:
    return host.check_output("systemctl show -p %s --value %s", name, unit)


def ask(host, tokens: int = 8, port: int = 30000, *key: str) -> str:
    return host.check_output("python3 -c %s " + " ".join(["%s"] * (2 + len(key))), ASK, str(port), str(tokens), *key)


def wait_for(host, port: int = 30000) -> None:
    for _ in range(120):
        if host.run("python3 -c %s %s 2", ASK, str(port)).stdout.startswith("200"):
            return
        time.sleep(1)
    pytest.fail(host.check_output("journalctl -u %s -n 50 --no-pager", MAIN))


def test_it_serves_and_a_second_run_changes_nothing(host):
    output = served()
    assert changed(output) == 0
    assert "its gates passed when it was deployed" in output
    assert ask(host) == "200 8"


def test_the_release_on_disk_is_root_s_alone(host):
    folder = host.check_output("readlink -f /etc/sglang/main/current")
    assert host.file(folder).mode == 0o700
    assert host.file(f"{folder}/environment").mode == 0o600
    assert f"GPUSERVE_RELEASE={folder.split('/')[-1]}" in host.file(f"/etc/systemd/system/{MAIN}").content_string


def test_a_log_level_restarts_nothing(host):
    before = show(host, "MainPID")
    output = served(sglang_server_instances=instance(extra_args={"log_level": "warning"}))
    assert "waits for its next start: --log-level: not given -> warning" in output
    assert show(host, "MainPID") == before
    # Back, so that later journals tell something.
    assert "waits for its next start" not in served()


def test_check_mode_says_what_would_restart_it(host):
    before = show(host, "MainPID")
    output = served("--check", sglang_server_context_length=1024)
    assert "needs a restart of sglang@main.service: --context-length: 2048 -> 1024" in output
    assert "kernel caches" in output
    assert show(host, "MainPID") == before


def test_never_leaves_the_restart_to_the_operator(host):
    before = show(host, "MainPID")
    # Numbers that what runs cannot have: it is not judged by them.
    numbers = {"sglang_server_speculative_num_steps": 2, "sglang_server_speculative_num_draft_tokens": 3}
    output = served(**numbers, sglang_server_restart="never")
    assert "not restarted, as sglang_server_restart says" in output
    assert show(host, "MainPID") == before
    served()
    assert show(host, "MainPID") == before


def test_an_edit_by_hand_is_shown_and_undone(host):
    unit = f"/etc/systemd/system/{MAIN}"
    host.check_output("sed -i 's/--tp-size 1/--tp-size 2/' %s", unit)
    before = show(host, "MainPID")
    output = served("--diff")
    assert "-ExecStart=" in output
    assert "waits for its next start: the unit was edited by hand" in output
    assert "--tp-size 1" in host.file(unit).content_string
    # The engine was started before the edit.
    assert show(host, "MainPID") == before
    assert show(host, "NeedDaemonReload") == "no"


def test_a_drain_cuts_no_request(host):
    host.check_output(
        "rm -f /tmp/answers; for i in 1 2 3; do (python3 -c %s 30000 900 >>/tmp/answers 2>&1 &); done; sleep 1", ASK
    )
    output = served(sglang_server_context_length=1024, sglang_server_restart="drain")
    assert "no new requests are taken, those that run are waited for" in output
    assert host.check_output("sort /tmp/answers").splitlines() == ["200 900"] * 3
    assert json.loads(host.check_output("cat /etc/sglang/main/current/proof.json"))["passed"]


def test_a_stop_is_no_failure_and_a_kill_is_one(host):
    host.check_output("systemctl stop %s", MAIN)
    assert (show(host, "ActiveState"), show(host, "Result")) == ("inactive", "success")
    host.check_output("systemctl start %s", MAIN)
    wait_for(host)
    host.check_output("systemctl kill --signal=SIGKILL --kill-who=main %s", MAIN)
    time.sleep(2)
    assert show(host, "Result") == "signal"
    wait_for(host)
    assert show(host, "NRestarts") == "1"


def test_a_killed_scheduler_is_replaced(host):
    # More starts than the unit has in half an hour, were they not asked for.
    host.check_output("systemctl reset-failed %s", MAIN)
    before = show(host, "MainPID")
    host.check_output("pkill -KILL -f sglang::scheduler")
    for _ in range(60):
        if show(host, "MainPID") not in (before, "0"):
            break
        time.sleep(1)
    wait_for(host)
    assert changed(served(sglang_server_context_length=1024)) == 0


def test_the_wrong_algorithm_is_caught_by_its_accept_length(host):
    """It starts, it answers, its text is right: the accept length alone tells."""
    wrong = {**HALFWAY, "sglang_server_context_length": 1024, "sglang_server_speculative_algorithm": "EAGLE"}
    status, output = serve(**wrong)
    assert status != 0
    assert re.search(r"\[speculation.accept_length\] expected at least 1.50; found 1\.\d\d", output), output
    assert re.search(r"serves again \(.*\)\. There was no answer for about \d+ s", output)
    assert ask(host) == "200 8"
    # The next try is refused before anything is stopped.
    before = show(host, "MainPID")
    status, output = serve(**wrong)
    assert status != 0
    assert "failed its gates on" in output
    assert show(host, "MainPID") == before


def test_a_drafter_that_learned_nothing_is_caught(host):
    host.check_output("%s -c %s /srv/models/tiny-eagle3 %s", ENGINE, SCRAMBLE, RANDOM)
    status, output = serve(
        **HALFWAY, sglang_server_context_length=1024, sglang_server_speculative_draft_model_path=RANDOM
    )
    assert status != 0
    assert re.search(r"expected at least 1.50; found 1\.\d\d", output), output
    assert "serves again" in output
    assert ask(host) == "200 8"


def test_a_port_that_is_taken_is_told_before_anything_is_stopped(host):
    before = show(host, "MainPID")
    host.check_output("systemd-run --unit=squatter python3 -m http.server 30007 --bind 127.0.0.1; sleep 1")
    status, output = serve(sglang_server_context_length=1024, sglang_server_port=30007)
    host.check_output("systemctl stop squatter")
    assert status != 0
    assert re.search(r"port 30007 is taken by the process \d+ \(python3\)", output), output
    assert show(host, "MainPID") == before


def test_a_start_that_is_killed_for_lack_of_memory_is_told_and_is_no_reason_to_go_back(host):
    current = host.check_output("readlink /etc/sglang/main/current")
    host.check_output("systemctl stop %s", MAIN)
    run = plays.start(*plays.playbook("molecule/service/serve.yml", sglang_server_context_length=1024))
    with memory.short(MAIN, 100 << 20) as counts:
        output = plays.unfolded(run.communicate(timeout=300)[0])
        assert memory.killed(counts) > 0
    assert run.returncode != 0
    assert "does not do what it did when its gates passed" in output
    assert "instead of serving" in output
    assert "look into the kernel log of the host for 'Out of memory'" in output
    assert host.check_output("readlink /etc/sglang/main/current") == current
    # systemd started it again.
    wait_for(host)
    assert changed(served(sglang_server_context_length=1024)) == 0


def test_a_journal_full_of_binary_hides_nothing(host):
    host.check_output("mkdir -p /srv/noise && printf %%s %s > /srv/noise/sitecustomize.py", NOISE)
    noisy = instance(environment={"PYTHONPATH": "/srv/noise:/srv/lab/standins"}, context_length=1024)
    output = served(sglang_server_instances=noisy)
    assert "its gates passed now" in output
    noise = host.check_output("journalctl -u %s --since=-5min -o json --output-fields=MESSAGE -n 20000 | wc -c", MAIN)
    assert int(noise) > 1_000_000
    noisy[0]["speculative_draft_model_path"] = "/srv/models/none"
    status, output = serve(sglang_server_instances=noisy)
    assert status != 0
    assert "Cause [model.path]: there is no folder /srv/models/none, " in output
    assert re.search(r"\d{4} lines of the log were no text and are left out", output)
    assert "serves again" in output
    assert ask(host) == "200 8"


def test_status_and_rollback(host):
    status, output = plays.run(*plays.playbook("playbooks/status.yml"))
    assert status == 0, output
    assert re.search(r"release +[0-9a-f]{16} .*gates passed, current, runs", output)
    current = host.check_output("readlink /etc/sglang/main/current")
    status, output = plays.run(*plays.playbook("playbooks/rollback.yml"))
    assert status == 0, output
    assert host.check_output("readlink /etc/sglang/main/current") != current
    assert ask(host) == "200 8"


def test_a_rollback_to_what_is_not_there_changes_nothing(host):
    status, output = plays.run(*plays.playbook("playbooks/rollback.yml", rollback_release="0123456789abcdef"))
    assert status != 0
    assert "has no release 0123456789abcdef; there is:" in plays.unfolded(output)
    assert ask(host) == "200 8"


def test_two_instances_and_a_key_that_nobody_sees(host):
    both = [{"name": "main"}, {"name": "second", "port": 30001}]
    served(sglang_server_instances=both, sglang_server_api_key=KEY)
    for unit, port in ((MAIN, 30000), ("sglang@second.service", 30001)):
        assert ask(host, 4, port) == "401 0"
        assert ask(host, 4, port, KEY) == "200 4"
        assert host.run("pgrep -fa %s", KEY).stdout == ""
        assert KEY not in host.check_output("systemctl cat %s", unit)
    assert changed(served(sglang_server_instances=both, sglang_server_api_key=KEY)) == 0
    host.check_output("systemctl disable --now sglang@second.service")


def test_the_unit_is_hardened(host):
    # Lower is better; 9.6 is a unit that says nothing.
    told = host.run("systemd-analyze security --no-pager %s", MAIN).stdout
    score = float(re.search(r"Overall exposure level for .*: ([\d.]+)", told)[1])
    assert score <= 4.0, told


WORDS = ["", "a b", "100%", "%n", "$HOME", "${HOME}", ";", "\\n", '"', "'", "a\tb", '{"k": [1, "x y"]}', "=", "#", "é"]


def test_systemd_hands_over_the_very_words(host):
    """What the filter writes, read by a real systemd."""
    line = systemd_exec(["/usr/bin/python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *WORDS])
    host.check_output(
        "printf %%s %s > /run/systemd/system/words.service", f"[Service]\nType=oneshot\nExecStart={line}\n"
    )
    host.check_output("systemctl daemon-reload && systemctl start words && journalctl --sync")
    told = host.check_output("journalctl -u words -o cat --no-pager -n 20")
    assert json.loads(next(text for text in told.splitlines() if text.startswith("["))) == WORDS
