# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where nothing is off one look is all that is asked of a container; what is not settled is said or refused as ever."""

from __future__ import annotations

from tests.fixtures import plays

testinfra_hosts = ["ansible://ct200"]

# Tasks of the roles that have nothing to do then.
LEFT_OUT = ("Look at the engine's venv", "Hold the compiler", "Hold each model", "Take the release")
UNCHANGED = {"ct200": 0, "pve": 0}


def run(**variables: object) -> tuple[int, str]:
    return plays.run(*plays.playbook("playbooks/k26_eagle3.yml", **variables))


def test_the_roles_are_left_out(host) -> None:
    # The inventory may refer to the roles' own variables all the same.
    own = {"sglang_server_venv": "{{ sglang_install_venv }}", "sglang_server_cuda_home": "{{ cuda_toolkit_home }}"}
    status, output = run(**own)
    assert (status, plays.changed(output)) == (0, UNCHANGED), output
    assert [task for task in LEFT_OUT if task in output] == []
    # The engine was asked in the look, and its card is shown.
    assert "Ask what runs whether it still does what it did" not in output
    assert "accept length" in output


def test_a_compiler_that_is_not_managed_is_said(host) -> None:
    status, output = run(cuda_toolkit_state="unmanaged", cuda_toolkit_unmanaged_reason="the site brings its own")
    assert (status, plays.changed(output)) == (0, UNCHANGED), output
    assert "cuda_toolkit: SKIPPED on ct200" in plays.unfolded(output)


def test_variables_of_a_role_that_is_left_out_are_validated(host) -> None:
    for variables, word in (
        ({"cuda_toolkit_state": "presnt"}, "cuda_toolkit_state"),
        ({"cuda_toolkit_version": "13.x"}, "cuda_toolkit_version"),
        ({"sglang_install_requirements": {"sglang": "0.5.20"}}, "sglang_install_requirements"),
    ):
        status, output = run(**variables)
        assert status != 0, output
        assert word in plays.unfolded(output)
        assert plays.changed(output) == UNCHANGED


def test_no_environment_of_an_instance_is_shown(host) -> None:
    secret = "hf_shownnowhere"
    instances = [{"name": "main", "environment": {"HF_TOKEN": secret}}]
    status, output = plays.run(
        *plays.playbook("playbooks/k26_eagle3.yml", sglang_server_instances=instances), "--check", "-v"
    )
    assert status == 0, output
    assert secret not in output
