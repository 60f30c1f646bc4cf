#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Will base and drafter fit into the GPUs, and how many tokens are left?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: vram_plan
short_description: Work out whether base and drafter fit into the GPUs, and for how many tokens
version_added: 0.1.0
description:
  - Adds up, for one GPU, the weights of a base model and of a drafter as the engine shares them out, and what is left
    for the key-value cache.
  - Reads weight headers only, of a directory or of a repository on the Hub. Nothing is changed.
  - What no file tells is assumed; the assumptions are part of the result and can be changed.
author:
  - gpuserve contributors (@gpuserve)
options:
  drafter:
    description: The drafter, written like O(base).
    type: str
  algorithm:
    description: The speculative algorithm, as C(--speculative-algorithm) gets it.
    type: str
  gpus:
    description:
      - The memory of each GPU in bytes, as the driver counts it.
      - With an empty list the weights are added up and the rest is not checked.
    type: list
    elements: int
    required: true
  mem_fraction:
    description: The value of C(--mem-fraction-static).
    type: float
    required: true
  context_length:
    description: Tokens that one request must be able to hold. The base's own limit is looked at when not set.
    type: int
  kv_cache_dtype:
    description: The value of C(--kv-cache-dtype).
    type: str
    choices: [auto, bf16, bfloat16, fp8_e4m3, fp8_e5m2]
    default: auto
  assumptions:
    description: Bytes per GPU that no file tells, in place of the ones that are built in and returned.
    type: dict
    default: {}
    suboptions:
      context:
        description: What the driver and the communication library take before anything is loaded.
        type: int
      load:
        description: What loading takes beside the weights.
        type: int
      graphs:
        description: CUDA graphs without a drafter.
        type: int
      graphs_with_drafter:
        description: CUDA graphs with a drafter.
        type: int
      activations:
        description: Activations of the largest batch.
        type: int
      images:
        description: What a base that takes images needs for them.
        type: int
  timeout:
    description: Seconds that reading both models may take in all.
    type: int
    default: 120
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
  - gpuserve.sglang.judging
  - gpuserve.sglang.judging.pair
"""

EXAMPLES = r"""
- name: Refuse a model that does not fit
  gpuserve.sglang.vram_plan:
    base: /opt/models/Kimi-K2.6
    drafter: /opt/models/kimi-k2.6-eagle3
    algorithm: EAGLE3
    gpus: "{{ ansible_facts['gpuserve_gpus']['gpus'] | map(attribute='memory') }}"
    tp_size: 8
    mem_fraction: 0.85
    context_length: 65536
    names:
      mem_fraction: sglang_server_mem_fraction_static

- name: See what a model would leave on eight cards of 96 GB
  gpuserve.sglang.vram_plan:
    base: moonshotai/Kimi-K2.6
    gpus: "{{ [102642081792] * 8 }}"
    tp_size: 8
    mem_fraction: 0.85
    kv_cache_dtype: fp8_e4m3
    fail_on: never
  register: plan
"""

RETURN = r"""
fits:
  description: No check failed; null when it could not be worked out.
  type: bool
  returned: always
summary:
  description: One sentence, counting the checks by status.
  type: str
  returned: always
checks:
  description: What was looked at.
  type: list
  elements: dict
  returned: always
  contains:
    id:
      description: Stable name of the check.
      type: str
    status:
      description: One of pass, warn, fail and skipped.
      type: str
    expected:
      description: What would be right.
      type: str
    actual:
      description: What was found, or why it was not looked at.
      type: str
    fix:
      description: The one thing to do next.
      type: str
    source:
      description: Where the rule comes from.
      type: str
plan:
  description: The sum for one GPU, in bytes unless the name says tokens; null when it could not be worked out.
  type: dict
  returned: always
  contains:
    memory:
      description: Memory of the smallest GPU used.
      type: int
    before_load:
      description: Free before loading, after what is assumed for the driver.
      type: int
    share:
      description: The part that the engine plans with.
      type: int
    base_weights:
      description: Weights of the base.
      type: int
    drafter_weights:
      description: Weights of the drafter.
      type: int
    load:
      description: Assumed for loading.
      type: int
    kv_cache:
      description: Left for the key-value cache.
      type: int
    kv_per_token_base:
      description: Bytes of a token in the base's cache.
      type: int
    kv_per_token_drafter:
      description: Bytes of a token in the drafter's cache.
      type: int
    kv_per_token_counted:
      description: Bytes of a token as the engine counts them for both.
      type: int
    max_total_tokens:
      description: Tokens that the cache holds.
      type: int
    tokens_without_drafter:
      description: Tokens that it would hold without the drafter.
      type: int
    largest_context:
      description: Tokens of the longest request.
      type: int
    outside:
      description: What stays outside the engine's share.
      type: int
    needed_outside:
      description: What is assumed to be needed there.
      type: int
models:
  description: For base and drafter, where they were read and the bytes of their weights, split and replicated.
  type: dict
  returned: always
assumptions:
  description: The assumptions used, in bytes.
  type: dict
  returned: always
bytes_read:
  description: Bytes read from the network.
  type: int
  returned: always
seconds:
  description: Time that it took.
  type: float
  returned: always
"""

import time
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule, env_fallback
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts, failing, failure_message
from ansible_collections.gpuserve.sglang.plugins.module_utils.vram import Assumptions, Question, plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base": {"type": "str", "required": True},
            "drafter": {"type": "str"},
            "base_revision": {"type": "str", "default": "main"},
            "drafter_revision": {"type": "str", "default": "main"},
            "algorithm": {"type": "str"},
            "gpus": {"type": "list", "elements": "int", "required": True},
            "mem_fraction": {"type": "float", "required": True},
            "tp_size": {"type": "int", "default": 1},
            "context_length": {"type": "int"},
            "kv_cache_dtype": {
                "type": "str",
                "choices": ["auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"],
                "default": "auto",
            },
            "assumptions": {
                "type": "dict",
                "default": {},
                "options": {
                    "context": {"type": "int"},
                    "load": {"type": "int"},
                    "graphs": {"type": "int"},
                    "graphs_with_drafter": {"type": "int"},
                    "activations": {"type": "int"},
                    "images": {"type": "int"},
                },
            },
            "endpoint": {"type": "str", "fallback": (env_fallback, ["HF_ENDPOINT"])},
            "token": {"type": "str", "no_log": True},
            "timeout": {"type": "int", "default": 120},
            "names": {"type": "dict", "default": {}},
            "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    fail_on = options.pop("fail_on")
    assumed = {key: value for key, value in options.pop("assumptions").items() if value is not None}
    question = Question(**options, assumptions=Assumptions(**assumed))
    started = time.monotonic()
    try:
        answer = plan(question)
    except ValueError as error:
        module.fail_json(msg=str(error))
    result = {
        "changed": False,
        "fits": answer.fits,
        "summary": answer.summary,
        "checks": as_dicts(answer.checks),
        "plan": asdict(answer.plan) if answer.plan is not None else None,
        "models": answer.models,
        "assumptions": asdict(question.assumptions),
        "bytes_read": answer.cost.bytes_read,
        "seconds": round(time.monotonic() - started, 3),
    }
    if failing(answer.checks, fail_on):
        module.fail_json(msg=failure_message(answer.subject, answer.checks, fail_on), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
