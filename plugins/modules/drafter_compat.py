#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does this drafter fit this base? Asked in seconds, before a byte of weights is loaded."""

from __future__ import annotations

DOCUMENTATION = r"""
module: drafter_compat
short_description: Prove that a drafter fits its base model, before anything is loaded
version_added: 0.1.0
description:
  - Reads the configuration, tokenizer files and weight headers of a base model and of a drafter for speculative
    decoding, and judges whether this SGLang release can serve the two together.
  - No weights are downloaded or loaded; nothing is changed.
  - What cannot be proven is reported as C(skipped) with the reason, never as passed.
author:
  - gpuserve contributors (@gpuserve)
options:
  drafter:
    description:
      - The drafter, written like O(base).
      - Without it only the base is read and judged, for V(EAGLE) and V(NEXTN) also whether it can draft for itself.
    type: str
  algorithm:
    description: The speculative algorithm, as C(--speculative-algorithm) gets it. Required with O(drafter).
    type: str
  engine:
    description:
      - The SGLang release that will serve the pair, for example V(0.5.20), or the directory of a Python venv that it is
        installed in.
      - With a venv its source is read as well, which proves that the base's class can serve this algorithm.
    type: str
    required: true
  context_length:
    description: The value of C(--context-length), when it will be given.
    type: int
  quantization:
    description: The value of C(--quantization), when it will be given.
    type: str
  draft_quantization:
    description: The value of C(--speculative-draft-model-quantization), when it will be given.
    type: str
  attention_backend:
    description: The value of C(--attention-backend), when it will be given.
    type: str
  draft_attention_backend:
    description: The value of C(--speculative-draft-attention-backend), when it will be given.
    type: str
  dtype:
    description: The value of C(--dtype).
    type: str
    default: auto
  trust_remote_code:
    description: Whether C(--trust-remote-code) will be given. Not judged when not set.
    type: bool
  allow_longer_context:
    description: Whether the engine gets C(SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1) in its environment.
    type: bool
    default: false
  timeout:
    description: Seconds that reading both models may take in all.
    type: int
    default: 60
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
  - gpuserve.sglang.judging
  - gpuserve.sglang.judging.pair
"""

EXAMPLES = r"""
- name: Refuse a drafter that does not fit
  gpuserve.sglang.drafter_compat:
    base: /opt/models/Kimi-K2.6
    drafter: /opt/models/kimi-k2.6-eagle3
    algorithm: EAGLE3
    engine: "0.5.20"
    tp_size: 8
    names:
      base: sglang_server_model_path
      drafter: sglang_server_speculative_draft_model_path

- name: Judge a pair before it is downloaded
  gpuserve.sglang.drafter_compat:
    base: moonshotai/Kimi-K2.6
    drafter: lightseekorg/kimi-k2.6-eagle3
    algorithm: EAGLE3
    engine: "0.5.20"
    tp_size: 8
    fail_on: never
  register: pair
"""

RETURN = r"""
compatible:
  description: No check failed.
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
base:
  description: What was read of the base.
  type: dict
  returned: when it could be read
drafter:
  description: What was read of the drafter, and the base's layers that an EAGLE-3 drafter will really be fed from.
  type: dict
  returned: when it could be read
bytes_read:
  description: Bytes read from the network.
  type: int
  returned: always
requests:
  description: Requests made.
  type: int
  returned: always
seconds:
  description: Time that reading and judging took.
  type: float
  returned: always
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule, env_fallback
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts, failing, failure_message
from ansible_collections.gpuserve.sglang.plugins.module_utils.drafter.ask import Question, ask


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base": {"type": "str", "required": True},
            "drafter": {"type": "str"},
            "base_revision": {"type": "str", "default": "main"},
            "drafter_revision": {"type": "str", "default": "main"},
            "algorithm": {"type": "str"},
            "engine": {"type": "str", "required": True},
            "tp_size": {"type": "int", "default": 1},
            "context_length": {"type": "int"},
            "quantization": {"type": "str"},
            "draft_quantization": {"type": "str"},
            "attention_backend": {"type": "str"},
            "draft_attention_backend": {"type": "str"},
            "dtype": {"type": "str", "default": "auto"},
            "trust_remote_code": {"type": "bool"},
            "allow_longer_context": {"type": "bool", "default": False},
            "endpoint": {"type": "str", "fallback": (env_fallback, ["HF_ENDPOINT"])},
            "token": {"type": "str", "no_log": True},
            "timeout": {"type": "int", "default": 60},
            "names": {"type": "dict", "default": {}},
            "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
        },
        required_by={"drafter": ["algorithm"]},
        supports_check_mode=True,
    )
    options: dict[str, Any] = dict(module.params)
    fail_on = options.pop("fail_on")
    started = time.monotonic()
    try:
        answer = ask(Question(**options))
    except ValueError as error:
        module.fail_json(msg=str(error))
    result = {
        "changed": False,
        "compatible": answer.compatible,
        "summary": answer.summary,
        "checks": as_dicts(answer.checks),
        "base": answer.base,
        "drafter": answer.drafter,
        "bytes_read": answer.cost.bytes_read,
        "requests": answer.cost.requests,
        "seconds": round(time.monotonic() - started, 3),
    }
    if failing(answer.checks, fail_on):
        module.fail_json(msg=failure_message(answer.subject, answer.checks, fail_on), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
