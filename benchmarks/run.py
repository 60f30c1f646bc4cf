#!/usr/bin/env python
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the main playbook costs when there is nothing to do, on the running sandbox.

Against `ansible all -m ping` and `ansible all -m setup` on the same inventory, in turns; of several the fastest counts.
Then the tasks that take longest; what the main playbook, run at once, adds to a restart of the container; and the run
with nothing to do for 16 hosts: the one container gets 16 addresses, each with a name, so that each has a connection of
its own as 16 containers would. Its one engine is not asked by all of them: a replay of its answers stands in for an
engine of each one's own, for one host as for 16. The Proxmox host is one, and all processors are this machine's, so
beside it stands what as many calls and tasks of ansible.builtin cost.

Run it with the checkout's own Python while a sandbox is up (make sandbox): make bench-run
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# On the Proxmox host; arguments: the container, whether to wait. The container starts anew, and its engine with it.
# Prints when, and with "wait" how long it took from there until the engine answered that it is healthy.
RESTART = """
import subprocess, sys, time
vmid, wait = sys.argv[1:]
asked = "import urllib.request as r; r.urlopen('http://127.0.0.1:30000/health', timeout=30)"
ask = ["pct", "exec", vmid, "--", "python3", "-c", asked]
subprocess.run(["pct", "stop", vmid], check=True)
begun = time.time()
subprocess.run(["pct", "start", vmid], check=True)
while wait == "wait" and subprocess.run(ask, capture_output=True).returncode:
    time.sleep(0.2)
print("begun", begun, "seconds", time.time() - begun)
"""
PORT, REPLAY_PORT = 30000, 30001
# In the network of the container: who asks the engine on loopback asks the replay.
REDIRECT = f"""
table ip gpuserve-bench {{
  chain output {{
    type nat hook output priority -100
    ip daddr 127.0.0.1 tcp dport {PORT} redirect to :{REPLAY_PORT}
  }}
}}
"""
# What a run with nothing to do asks of the Proxmox host and of a container, and about as many tasks on the controller.
PING = {"ansible.builtin.ping": {}}
SHELL = {"ansible.builtin.raw": "true"}
DEBUG = {"ansible.builtin.debug": {"msg": "bare"}}
BARE = {"proxmox": [SHELL, PING, PING, *[DEBUG] * 10, SHELL], "sglang": [SHELL, PING, *[DEBUG] * 22, SHELL]}
PLAYBOOK = "playbooks/k26_eagle3.yml"
INVENTORY = "inventories/sandbox"


def machine_cpu() -> float:
    """CPU seconds that this machine has spent: the lab's containers run on it."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
    busy = sum(fields) - fields[3] - fields[4]
    return busy / os.sysconf("SC_CLK_TCK")


def run(*command: str, **environment: str) -> tuple[float, float, str]:
    """Wall seconds, CPU seconds of the whole machine, and what was said."""
    cpu, begun = machine_cpu(), time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "ANSIBLE_NOCOLOR": "1", **environment}, capture_output=True, text=True
    )
    wall, spent = time.monotonic() - begun, machine_cpu() - cpu
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return wall, spent, done.stdout


def fastest(runs: int, *command: str) -> tuple[float, float, str]:
    """Of so many runs."""
    return min(run(*command) for _ in range(runs))


def nothing_to_do(said: str) -> None:
    """A run that changed something measures something else."""
    if set(re.findall(r"changed=(\d+)", said)) != {"0"}:
        sys.exit(f"that run changed something; run the main playbook once before:\n{said[-3000:]}")


def restart(wait: str) -> tuple[float, float]:
    """When the container was started anew, in seconds since the epoch, and the seconds until what was waited for."""
    module = ("-m", "ansible.builtin.command", "-a", json.dumps({"argv": ["python3", "-c", RESTART, "200", wait]}))
    told = re.search(r"begun ([\d.]+) seconds ([\d.]+)", run("ansible", "proxmox", "-i", INVENTORY, *module)[2])
    if told is None:
        sys.exit("the container's start could not be timed")
    return float(told[1]), float(told[2])


def recovery(job: tuple[str, ...]) -> tuple[float, float]:
    """The seconds from a start of the container to an engine that answers, and to the end of a run begun at once."""
    alone = restart("wait")[1]
    begun = restart("go on")[0]
    run(*job)
    return alone, time.time() - begun


def sandbox() -> dict[str, Any]:
    """The sandbox's inventory, as ansible-inventory tells it."""
    return dict(json.loads(run("ansible-inventory", "-i", f"{INVENTORY}/hosts.sh", "--list")[2]))


@contextmanager
def many(count: int) -> Iterator[str]:
    """An inventory of the sandbox with its container under ``count`` names, each with an address of its own."""
    told = sandbox()
    variables = told["_meta"]["hostvars"]
    host, container = told["proxmox"]["hosts"][0], told["sglang"]["hosts"][0]
    own = ip_address(variables[container]["ansible_host"])
    # ssh knows the container's key by its own address.
    arguments = f"{variables[container]['ansible_ssh_common_args']} -o HostKeyAlias={own}"
    names = {
        f"{container}-{number}": variables[container]
        | {"ansible_host": str(own + number), "ansible_ssh_common_args": arguments}
        for number in range(1, count + 1)
    }
    groups = {"proxmox": {"hosts": {host: variables[host]}}, "sglang": {"hosts": names}}
    further = [name["ansible_host"] for name in names.values()]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hosts.json").write_text(json.dumps({"all": {"children": groups}}))
        (Path(folder) / "group_vars").symlink_to(ROOT / INVENTORY / "group_vars")
        addresses("replace", further)
        try:
            # 16 connections made at once are too many for one sshd (MaxStartups).
            run("ansible", "sglang", "-i", f"{folder}/hosts.json", "-f", "4", "-m", "ansible.builtin.ping")
            yield f"{folder}/hosts.json"
        finally:
            addresses("del", further)


def network_of(address: str) -> str:
    """The network namespace on this machine that has an address of the lab, as a path."""
    spaces: dict[Path, Path] = {}
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        # Its process may have ended meanwhile.
        with suppress(OSError):
            spaces[path.readlink()] = path
    for path in spaces.values():
        listed = subprocess.run(["nsenter", f"--net={path}", "ip", "-json", "address"], capture_output=True, text=True)
        if f'"{address}"' in listed.stdout:
            return str(path)
    sys.exit(f"no network of this machine has the container's address, {address}")


@contextmanager
def light_engine() -> Iterator[None]:
    """The container's engine answers what it answered before, at no cost (replay.py)."""
    told = sandbox()
    address = told["_meta"]["hostvars"][told["sglang"]["hosts"][0]]["ansible_host"]
    inside = ("nsenter", f"--net={network_of(address)}")
    script = str(Path(__file__).with_name("replay.py"))
    replay = subprocess.Popen([*inside, sys.executable, script, str(REPLAY_PORT), address, str(PORT)])
    try:
        subprocess.run([*inside, "nft", "-f", "-"], input=REDIRECT, text=True, check=True)
        yield
    finally:
        subprocess.run([*inside, "nft", "delete", "table", "ip", "gpuserve-bench"], check=False)
        replay.terminate()
        replay.wait()


def addresses(verb: str, further: list[str]) -> None:
    """Give the container further addresses, or take them from it."""
    lines = "; ".join(f"ip address {verb} {address}/32 dev eth0" for address in further)
    module = ("-m", "ansible.builtin.command", "-a", json.dumps({"argv": ["sh", "-ec", lines]}))
    run("ansible", "sglang", "-i", INVENTORY, *module)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="how often each is run")
    parser.add_argument("--hosts", type=int, default=16, help="how many names the container gets; 0 leaves that out")
    options = parser.parse_args()
    job = ("ansible-playbook", PLAYBOOK, "-i")
    commands = {
        "ansible all -m ping": ("ansible", "all", "-i", INVENTORY, "-m", "ansible.builtin.ping"),
        "ansible all -m setup": ("ansible", "all", "-i", INVENTORY, "-m", "ansible.builtin.setup"),
        "main playbook, nothing to do": (*job, INVENTORY),
    }
    best: dict[str, tuple[float, float]] = {}
    for _ in range(options.runs):
        for name, command in commands.items():
            wall, spent, said = run(*command)
            if command[:-1] == job:
                nothing_to_do(said)
            best[name] = min(best.get(name, (wall, spent)), (wall, spent))
    for name, (wall, spent) in best.items():
        print(f"{name:<32}{wall:6.1f} s  {spent:6.1f} CPU s")
    ping, one = best["ansible all -m ping"], best["main playbook, nothing to do"]
    print(f"{'times the ping':<32}{one[0] / ping[0]:6.1f}")
    profile = run(*commands["main playbook, nothing to do"], ANSIBLE_CALLBACKS_ENABLED="ansible.posix.profile_tasks")[2]
    print("\nThe tasks that take longest:")
    for line in re.findall(r"^(.+? -+ +[\d.]+s)$", profile, re.MULTILINE)[:12]:
        print(f"  {line}")
    pairs = [recovery(commands["main playbook, nothing to do"]) for _ in range(options.runs)]
    bare, recovered = (min(figures) for figures in zip(*pairs))
    print(f"\nstart of the container until its engine answers: {bare:.1f} s")
    print(f"until the end of a run of the main playbook: {recovered:.1f} s, {recovered - bare:.1f} s more")
    if options.hosts:
        with light_engine(), many(options.hosts) as inventory, tempfile.TemporaryDirectory() as folder:
            bare = str(Path(folder) / "bare.json")
            plays = [{"hosts": group, "gather_facts": False, "tasks": tasks} for group, tasks in BARE.items()]
            Path(bare).write_text(json.dumps(plays))
            all_at_once = (inventory, "-f", str(options.hosts))
            one_bare = fastest(options.runs, "ansible-playbook", bare, "-i", INVENTORY)
            many_bare = fastest(options.runs, "ansible-playbook", bare, "-i", *all_at_once)
            light, _, said = fastest(options.runs, *job, INVENTORY)
            nothing_to_do(said)
            wall, spent, said = fastest(options.runs, *job, *all_at_once)
            nothing_to_do(said)
        print(f"\nlight engines, nothing to do: {light:.1f} s for one host,")
        print(f"{wall:.1f} s for {options.hosts}, {wall / light:.1f} times")
        print(f"CPU seconds of one host: {spent / options.hosts:.1f}, with its share of the controller's")
        print(f"as many calls and tasks of bare Ansible (ping, raw, debug): {one_bare[0]:.1f} s for one host,")
        print(f"{many_bare[0]:.1f} s for {options.hosts}, {many_bare[0] / one_bare[0]:.1f} times")


if __name__ == "__main__":
    main()
