# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator would look at after the main job."""

from __future__ import annotations

import json
import re

import pytest

from tests.fixtures import nodes, plays

testinfra_hosts = ["ansible://ct200"]

UNIT = "sglang@main.service"


def opened(host, path):
    """How open() of a node ends, from inside the container; whether a node exists proves nothing."""
    return host.check_output("python3 -c %s %s", nodes.OPEN, path)


def api(host, path, payload=None):
    """An answer of the server, asked from inside the container."""
    code = (
        "import sys, urllib.request as r; "
        "data = sys.argv[2].encode() or None; "
        "q = r.Request('http://127.0.0.1:30000' + sys.argv[1], data, {'Content-Type': 'application/json'}); "
        "print(r.urlopen(q, timeout=60).read().decode())"
    )
    return json.loads(host.check_output("python3 -c %s %s %s", code, path, json.dumps(payload) if payload else ""))


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-eagle3"])
def test_models_came_from_the_hub(host, name):
    told = json.loads(host.file(f"/srv/models/{name}/.gpuserve-manifest.json").content_string)
    assert told["origin"] == f"lab/{name}"
    assert re.fullmatch("[0-9a-f]{40}", told["commit"])


def test_unit_is_active_and_enabled(host):
    service = host.service(UNIT)
    assert service.is_running, host.check_output("journalctl -u %s -n 30 --no-pager", UNIT)
    assert service.is_enabled


def test_completion_is_speculated(host):
    parameters = {"temperature": 0, "max_new_tokens": 64, "ignore_eos": True}
    told = api(host, "/generate", {"text": "hello world", "sampling_params": parameters})
    assert "serve tokens on a tiny random model" in told["text"]
    assert told["meta_info"]["spec_accept_length"] > 1.5


def test_server_says_eagle3(host):
    told = api(host, "/get_server_info")
    assert told["speculative_algorithm"] == "EAGLE3"
    assert told["speculative_num_draft_tokens"] == 2


@pytest.mark.parametrize("node", ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"])
def test_granted_node_is_permitted(host, node):
    # Permitted by the device rules; the lab has no driver that would answer.
    assert opened(host, node) == "ENXIO"


def test_node_that_was_not_granted_is_refused(host):
    node = "/tmp/ungranted"
    host.run_test("rm -f %s", node)
    host.check_output("mknod %s c 195 7", node)
    assert opened(host, node) == "EPERM"
    host.check_output("rm %s", node)


def test_environment_is_root_s_alone(host):
    settings = host.file("/etc/sglang/main/current/environment")
    assert (settings.user, settings.mode) == ("root", 0o600)


def test_engine_does_not_run_as_root(host):
    pid = host.check_output("systemctl show -p MainPID --value %s", UNIT)
    assert host.check_output("stat -c %%U /proc/%s", pid) == "sglang"


@pytest.mark.parametrize("architecture", ["sm_90", "sm_120"])
def test_compiler_compiles_and_links(host, architecture):
    # The role's own proof, which it remembers only when machine code of this architecture was linked ...
    assert architecture in json.loads(host.file("/opt/cuda-toolkit/home/proof.json").content_string)
    # ... and once more by hand, as a build does that has nothing but CUDA_HOME.
    host.check_output("echo '__global__ void probe(float *x) { *x = expf(*x); }' > /tmp/probe.cu")
    nvcc = "/opt/cuda-toolkit/home/bin/nvcc -shared -Xcompiler -fPIC -L/opt/cuda-toolkit/home/lib64 -lcudart"
    host.check_output(f"{nvcc} -arch={architecture} -o /tmp/probe.so /tmp/probe.cu")
    assert host.check_output("grep -c %s /tmp/probe.so", architecture) != "0"
    host.check_output("rm /tmp/probe.cu /tmp/probe.so")


def test_compiler_that_the_engine_brings_is_not_installed_again(host):
    status, output = plays.run(*plays.playbook("molecule/default/toolkit.yml"))
    assert status == 0, output
    assert host.check_output("readlink -f /srv/other-toolkit/home/bin/nvcc").startswith("/opt/cuda-toolkit/13.0/lib/")
    assert host.check_output("ls /srv/other-toolkit").split() == ["bin", "home"]
    host.check_output("rm -r /srv/other-toolkit")


def test_service_answers_again_after_the_container_was_restarted(host):
    pve = host.get_host("ansible://pve", ansible_inventory=host.backend.ansible_inventory)
    pve.check_output("pct stop 200")
    pve.check_output("pct start 200")
    wait = "for i in $(seq 120); do curl -sf http://127.0.0.1:30000/health && exit 0; sleep 1; done; exit 1"
    code = wait.replace("curl -sf", "python3 -c 'import sys,urllib.request as r; r.urlopen(sys.argv[1], timeout=10)'")
    pve.check_output("pct exec 200 -- sh -c %s", code.replace("&& exit", "2>/dev/null && exit"))
