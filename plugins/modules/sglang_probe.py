#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_probe
short_description: Prove that a server serves and that its speculation is accepted
version_added: 0.1.0
description:
  - Waits until the server answers, and ends at once with the cause when its unit ends. M(gpuserve.sglang.sglang_ready)
    before it shows how far the start is.
  - Compares the arguments in effect with those asked for, generates a completion and judges its accept length.
author:
  - gpuserve contributors (@gpuserve)
options:
  url:
    description: Where the server is reached from the host that runs this module.
    type: str
    required: true
  unit:
    description: Its systemd unit. Without it only O(timeout) ends the wait.
    type: str
  api_key:
    description: The key that the server asks for.
    type: str
  timeout:
    description: How long the server may take to come up, in seconds.
    type: int
    default: 1800
  algorithm:
    description: The speculative algorithm that was asked for. None means no speculation.
    type: str
  numbers:
    description:
      - The speculative numbers that were asked for, by the name that C(/get_server_info) gives them, for example
        C(speculative_num_steps).
    type: dict
    default: {}
  accept_length_floor:
    description: The accept length under which speculation does not pay. 1.00 means that nothing was accepted.
    type: float
    default: 1.3
  prompt:
    description: The prompt of the completion.
    type: str
    default: Write one sentence about the sea.
  max_new_tokens:
    description: The length of the completion, in tokens.
    type: int
    default: 64
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Prove the server
  gpuserve.sglang.sglang_probe:
    url: http://127.0.0.1:30000
    unit: sglang@main.service
    algorithm: EAGLE3
    numbers:
      speculative_num_steps: 3
"""

RETURN = r"""
ready_after:
  description: How long the server took to answer, in seconds.
  returned: when it answered
  type: float
in_effect:
  description: The arguments that the server says are in effect.
  returned: when it answered
  type: dict
completion:
  description: The text that was generated.
  returned: when it answered
  type: str
accept_length:
  description: Tokens per step of the base model, its own included. Null without speculation.
  returned: when it answered
  type: float
diagnosis:
  description: Why the unit ended, as M(gpuserve.sglang.sglang_diagnose) returns it. Null without O(unit).
  returned: when it did not answer
  type: dict
checks:
  description: What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
  returned: when it answered
  type: list
  elements: dict
summary:
  description: One sentence about the checks.
  returned: when it answered
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import checks, probe, ready, unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis import matcher
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "unit": {"type": "str"},
            "api_key": {"type": "str", "no_log": True},
            "timeout": {"type": "int", "default": 1800},
            "algorithm": {"type": "str"},
            "numbers": {"type": "dict", "default": {}},
            "accept_length_floor": {"type": "float", "default": 1.3},
            "prompt": {"type": "str", "default": "Write one sentence about the sea."},
            # A number of tokens, no secret, whatever its name looks like.
            "max_new_tokens": {"type": "int", "default": 64, "no_log": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    server = api.Server(params["url"], params["api_key"])
    try:
        # A number that was given on Ansible's command line is a string.
        numbers = {name: int(value) for name, value in params["numbers"].items()}
    except (TypeError, ValueError):
        module.fail_json(msg=f"numbers must map names to whole numbers, found {params['numbers']}")
    expected = probe.Expected(params["algorithm"], numbers, params["accept_length_floor"])
    try:
        ready_after = ready.wait(server, params["unit"], params["timeout"])
        in_effect = api.effective(server.info())
        generation = server.generate(params["prompt"], params["max_new_tokens"])
    except ready.NotReady as error:
        diagnosis = None if error.diagnosis is None else matcher.as_dict(error.diagnosis)
        module.fail_json(msg=str(error), diagnosis=diagnosis)
    except (unit.UnitError, api.ApiError) as error:
        module.fail_json(msg=str(error))
    judged = probe.judge(expected, in_effect, generation)
    result = {
        "changed": False,
        "ready_after": round(ready_after, 1),
        "in_effect": in_effect,
        "completion": generation.text,
        "accept_length": generation.accept_length,
        "checks": checks.as_dicts(judged),
        "summary": checks.summary(params["url"], judged),
    }
    if checks.failing(judged):
        module.fail_json(msg=checks.failure_message(params["url"], judged), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
