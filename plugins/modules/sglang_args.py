#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_args
short_description: Judges an SGLang argument list before anything is started
version_added: 0.1.0
description:
  - Says whether SGLang would start with this argument list, and which of its values it would silently change.
  - Rules of the release are applied first, and answer at once when they refuse the list. Otherwise the engine's own
    parser and validation are run in its virtual environment, in a process of their own. Last come traps that the engine
    does not see before the weights are loaded, and what its parser takes without a word - an abbreviated flag, and a
    setting that is given twice.
  - No weights are loaded, no GPU is needed and nothing is fetched. What could not be judged is returned as a skipped
    check with the reason.
  - Do not put secrets into O(args), they are part of the task's log. Their values are not shown in the result.
author:
  - gpuserve contributors (@gpuserve)
options:
  args:
    description:
      - The exact list that follows C(python -m sglang.launch_server).
    type: list
    elements: str
    required: true
  version:
    description:
      - The SGLang release the list is meant for. Without it, it is the one that O(venv) holds.
      - Where O(venv) holds another release or none, that engine is not asked and only the rules are applied.
    type: str
  venv:
    description:
      - The virtual environment SGLang is, or will be, installed in.
    type: path
    required: true
  environment:
    description:
      - Environment variables the engine will be started with. The process gets them on top of a bare environment.
    type: dict
    default: {}
  allow_adjusted:
    description:
      - Flags whose silent change by the engine is accepted, for example V(speculative-num-draft-tokens).
        Such a change is then a warning. A change of any other speculative value is an error, one of a value that has
        nothing to do with speculation is a warning.
    type: list
    elements: str
    default: []
  timeout:
    description:
      - Seconds the engine's own judgement may take. A longer one is a failure that shows the last lines it wrote.
    type: int
    default: 120
  names:
    description:
      - For each flag the variable in which it was set. Messages name that variable beside the flag.
    type: dict
    default: {}
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
  - gpuserve.sglang.judging
"""

EXAMPLES = r"""
- name: Judge the arguments of the server
  gpuserve.sglang.sglang_args:
    venv: /opt/sglang/venv
    version: 0.5.20
    args:
      - --model-path
      - /srv/models/base
      - --speculative-algorithm
      - EAGLE3
      - --speculative-draft-model-path
      - /srv/models/drafter
      - --speculative-num-steps
      - "3"
      - --speculative-eagle-topk
      - "1"
      - --speculative-num-draft-tokens
      - "4"
    names:
      --speculative-num-steps: sglang_server_speculative_num_steps
"""

RETURN = r"""
valid:
  description: Whether no check failed. Skipped checks are listed in RV(checks), they count neither way.
  type: bool
  returned: always
resolved:
  description: Every setting as the engine resolved it, empty where the engine did not get that far.
  type: dict
  returned: always
not_binding:
  description:
    - The names in RV(resolved) that the engine decides by the GPU it finds, if it was asked where that GPU is not.
      Their values say nothing about the target.
  type: list
  elements: str
  returned: always
adjusted:
  description:
    - Values that the engine changes, each with C(flag), C(asked), C(effective), C(reason) and C(binding) (whether it
      will be changed on the target as well).
  type: list
  elements: dict
  returned: always
  sample:
    - flag: --speculative-num-draft-tokens
      asked: 3
      effective: 2
      reason: speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1
      binding: true
checks:
  description: The rules that were applied, each with id, status, expected, actual, fix and source.
  type: list
  elements: dict
  returned: always
summary:
  description: One sentence with the number of checks of each status.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import (
    as_dicts,
    failing,
    failure_message,
    summary,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.arguments import judge, secrets_in


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "args": {"type": "list", "elements": "str", "required": True},
            "version": {"type": "str"},
            "venv": {"type": "path", "required": True},
            "environment": {"type": "dict", "default": {}},
            "allow_adjusted": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 120},
            "names": {"type": "dict", "default": {}},
            "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    module.no_log_values.update(secrets_in(module.params["args"]))
    options = dict(module.params)
    fail_on = options.pop("fail_on")
    try:
        judgement = judge(**options)
    except ValueError as error:
        module.fail_json(msg=str(error))
    result = {
        "changed": False,
        "valid": judgement.valid,
        "resolved": judgement.resolved,
        "not_binding": judgement.not_binding,
        "adjusted": judgement.adjusted,
        "checks": as_dicts(judgement.checks),
        "summary": summary("SGLang arguments", judgement.checks),
    }
    if failing(judgement.checks, fail_on):
        module.fail_json(msg=failure_message("SGLang arguments", judgement.checks, fail_on), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
