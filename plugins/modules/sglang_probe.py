#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_probe
short_description: The gates after a start, proving that a server serves and that its speculation pays
version_added: 0.1.0
description:
  - Asks a running server what clients will ask of it, compares the arguments in effect with those asked for, and
    measures accept length, decode rate and prefix cache. M(gpuserve.sglang.sglang_ready) waits for the server before.
  - The answers to a fixed set of prompts at temperature 0 are compared with those of the recorded baseline, a run
    without speculation of the same model, engine and hardware. Equality is demanded where the engine promises it, which
    is with deterministic inference and without speculation; elsewhere the share of equal leading characters is scored.
  - Measure while the server has nothing else to do. Other requests slow the decode rate.
  - It generates a few hundred tokens. The files in O(records) are measurements and no state of the host, so that
    C(changed) is never true.
author:
  - gpuserve contributors (@gpuserve)
options:
  instance:
    description:
      - The name of an instance of M(gpuserve.sglang.sglang_release). What runs is asked as its release was started, so
        that O(url), O(api_key), O(algorithm), O(numbers), O(release) and O(identity) are that release's.
      - One of O(instance) and O(url) is required.
    type: str
  url:
    description: Where the server is reached from the host that runs this module. No proxy of the environment is used.
    type: str
  api_key:
    description: The key that the server asks for.
    type: str
  timeout:
    description:
      - How long a single request may take as a whole, in seconds.
      - After a request that took longer, or found nobody, the server is not asked again.
    type: int
    default: 120
  level:
    description:
      - V(quick) looks at the model list, a completion, the arguments in effect and the accept length over few prompts.
      - V(full) adds chat, streaming, stop strings, JSON schema, tool calls, the answers and the decode rate against the
        baseline, and the prefix cache.
    type: str
    choices: [quick, full]
    default: full
  algorithm:
    description: The speculative algorithm that was asked for. None means no speculation.
    type: str
  numbers:
    description:
      - The speculative numbers that were asked for, by the name that C(/server_info) gives them, for example
        C(speculative_num_steps).
    type: dict
    default: {}
  accept_length_floor:
    description: The accept length under which speculation does not pay. 1.00 means that nothing was accepted.
    type: float
    default: 1.3
  require_speedup:
    description:
      - How many times the decode rate of the baseline speculation must reach.
      - When not set, speculation that is slower than the baseline is a warning.
    type: float
  prompt:
    description: The prompt of the completion.
    type: str
    default: Write one sentence about the sea.
  golden_prompts:
    description: More prompts for the fixed set, sent as they are, without a chat template.
    type: list
    elements: str
    default: []
  golden_floor:
    description: The mean share of equal leading characters, 0 to 1, under which answers are a warning.
    type: float
    default: 0.5
  records:
    description:
      - A folder on the host for the results. It is made when it is missing.
      - Each run is written to the file that O(release) names, the last one of each level. A run with O(level=full) and
        without speculation that passed becomes the baseline of its O(identity) too.
    type: path
  release:
    description: The release that runs, which names its file in O(records). The time when not set, a file for each run.
    type: str
  identity:
    description:
      - What a baseline belongs to, as the hash or commit of the model, the version of the engine and the names of the
        GPUs.
      - Two runs are compared only when all of it is equal.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Asks the server as it does otherwise, and writes no records.
    support: full
  diff_mode:
    description: Changes nothing.
    support: none
extends_documentation_fragment:
  - gpuserve.sglang.judging
"""

EXAMPLES = r"""
- name: Prove the server after a deploy
  gpuserve.sglang.sglang_probe:
    url: http://127.0.0.1:30000
    algorithm: EAGLE3
    numbers:
      speculative_num_steps: 3
      speculative_eagle_topk: 1
      speculative_num_draft_tokens: 4
    require_speedup: 1.1
    records: /var/lib/sglang-records
    release: 3f2a91c0d4e7
    identity:
      model: 9f1c6a0d
      engine: "0.5.20"
      gpus: [NVIDIA RTX PRO 6000 Blackwell Server Edition]

- name: Look whether what runs still does what it did
  gpuserve.sglang.sglang_probe:
    instance: main
    level: quick
    fail_on: never
  register: proof
"""

RETURN = r"""
release:
  description: The release that was asked, null where none was named.
  returned: when it told its arguments
  type: str
in_effect:
  description: The arguments that the server says are in effect, and its version.
  returned: when it told them
  type: dict
completion:
  description: The text that was generated for O(prompt). Empty when there was none.
  returned: when it told its arguments
  type: str
accept_length:
  description:
    - Tokens per verify step over the prompts asked, the base model's own included. Null without speculation.
    - The first token of an answer comes from the prefill and is left out, so that 1.00 is nothing accepted. The
      engine's own figure counts it.
  returned: when it told its arguments
  type: float
decode_rate:
  description: Tokens per second of one stream alone, the prefill left out. Null with O(level=quick).
  returned: when it told its arguments
  type: float
cached_ratio:
  description: The share of a repeated prefix that came out of the cache. Null where it was not asked.
  returned: when it told its arguments
  type: float
baseline:
  description: The run without speculation that this one was compared with. Null where there is none.
  returned: when it told its arguments
  type: dict
  contains:
    path:
      description: Its file.
      type: str
    release:
      description: The release that ran.
      type: str
    recorded:
      description: When, in UTC.
      type: str
    decode_rate:
      description: Its tokens per second.
      type: float
    speedup:
      description: How many times its decode rate this run reached, over the prompts of both. Null where not compared.
      type: float
checks:
  description: What was looked at.
  returned: when it told its arguments
  type: list
  elements: dict
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
summary:
  description: One sentence about the checks.
  returned: when it told its arguments
  type: str
seconds:
  description: How long the gates took.
  returned: when it told its arguments
  type: float
"""

from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe.question import QUESTION, prove
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(partial(prove, write=not module.check_mode), module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
