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
  url:
    description: Where the server is reached from the host that runs this module. No proxy of the environment is used.
    type: str
    required: true
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

- name: Look whether it still does
  gpuserve.sglang.sglang_probe:
    url: http://127.0.0.1:30000
    level: quick
    algorithm: EAGLE3
    fail_on: never
  register: proof
"""

RETURN = r"""
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

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import checks
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import records, run, speed


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "api_key": {"type": "str", "no_log": True},
            "timeout": {"type": "int", "default": 120},
            "level": {"type": "str", "choices": ["quick", "full"], "default": "full"},
            "algorithm": {"type": "str"},
            "numbers": {"type": "dict", "default": {}},
            "accept_length_floor": {"type": "float", "default": 1.3},
            "require_speedup": {"type": "float"},
            "prompt": {"type": "str", "default": "Write one sentence about the sea."},
            "golden_prompts": {"type": "list", "elements": "str", "default": []},
            "golden_floor": {"type": "float", "default": 0.5},
            "records": {"type": "path"},
            "release": {"type": "str"},
            "identity": {"type": "dict", "default": {}},
            "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        # A number that was given on Ansible's command line is a string.
        numbers = {name: int(value) for name, value in params["numbers"].items()}
    except (TypeError, ValueError):
        module.fail_json(msg=f"numbers must map names to whole numbers, found {params['numbers']}")
    if params["timeout"] < 1:
        module.fail_json(msg=f"timeout must be at least 1 second, found {params['timeout']}")
    asked = run.Asked(
        level=params["level"],
        algorithm=params["algorithm"],
        numbers=numbers,
        accept_length_floor=params["accept_length_floor"],
        prompt=params["prompt"],
        golden_prompts=params["golden_prompts"],
        golden_floor=params["golden_floor"],
        require_speedup=params["require_speedup"],
    )
    folder = params["records"]
    place = None if folder is None else run.Place(Path(folder), params["release"], params["identity"])
    server = api.Server(params["url"], params["api_key"], params["timeout"])
    try:
        found = run.prove(server, asked, place, write=not module.check_mode)
    except api.ApiError as error:
        module.fail_json(msg=f"{error}; fix: {run.next_step(error)}")
    except records.RecordError as error:
        module.fail_json(msg=str(error))
    result = {
        "changed": False,
        "in_effect": found.in_effect,
        "completion": found.completion,
        "accept_length": _rounded(found.accept_length, 2),
        "decode_rate": _rounded(found.decode_rate, 1),
        "cached_ratio": _rounded(found.cached_ratio, 2),
        "baseline": _baseline(found),
        "checks": checks.as_dicts(found.checks),
        "summary": checks.summary(params["url"], found.checks),
        "seconds": round(found.seconds, 2),
    }
    if checks.failing(found.checks, params["fail_on"]):
        module.fail_json(msg=checks.failure_message(params["url"], found.checks, params["fail_on"]), **result)
    module.exit_json(**result)


def _rounded(figure: float | None, digits: int) -> float | None:
    return None if figure is None else round(figure, digits)


def _baseline(found: run.Findings) -> dict[str, Any] | None:
    baseline = found.compared.baseline
    if baseline is None:
        return None
    return {
        "path": baseline.path,
        "release": baseline.release,
        "recorded": baseline.recorded,
        "decode_rate": _rounded(speed.decode_rate(baseline.answers.values()), 1),
        "speedup": _rounded(found.speedup, 2),
    }


if __name__ == "__main__":
    main()
