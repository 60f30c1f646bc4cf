#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_release
short_description: Bring an instance of the engine to a release, forward or back
version_added: 0.1.0
description:
  - A release is everything that an engine is started from (arguments, environment, the engine's venv, the models) under
    one hash. It is kept in C(/etc/sglang/<instance>/releases/<hash>), C(/etc/sglang/<instance>/current) is a link to
    the current one, and the unit C(sglang@<instance>.service) is written from it.
  - Tells what of a change takes effect only by a restart, and what can wait for the next start. It restarts nothing.
  - Remembers how a release's gates went, and refuses one that failed them unless O(retry) is set.
author:
  - gpuserve contributors (@gpuserve)
options:
  instance:
    description: The name of the instance.
    type: str
    required: true
  state:
    description:
      - V(current) makes what the other options describe the current release.
      - V(back) makes O(release) the current one, or the last one whose gates passed beside the current one.
      - V(proven) and V(rejected) remember that the gates of O(release) passed or failed.
    type: str
    choices: [current, back, proven, rejected]
    default: current
  args:
    description: The arguments of the engine. Needed for V(current).
    type: list
    elements: str
  environment:
    description: The text of its environment file, which systemd reads as root and nobody else may.
    type: str
    default: ""
  keys:
    description: The text of a configuration file of the engine's that holds its API keys. None when empty.
    type: str
    default: ""
  venv:
    description: The venv of the engine. Needed for V(current).
    type: path
  models:
    description: The folders of the base model and of the drafter.
    type: list
    elements: path
    default: []
  unit:
    description:
      - The text of the unit. Needed for V(current).
      - C(@release@) in it becomes the release's hash, C(@caches@) the variables of the kernel caches, and C(@groups@)
        the groups of the GPUs' device nodes that not everybody may use.
    type: str
  keep:
    description:
      - How many releases are kept when the gates of one passed (V(proven)).
      - The current one, the running one and the one that V(back) would take always are.
    type: int
    default: 5
  retry:
    description: Take a release although its gates failed before.
    type: bool
    default: false
  release:
    description: The hash of a release, for the other states.
    type: str
  told:
    description: What the gates said, for V(proven) and V(rejected).
    type: str
    default: ""
  measured:
    description: What the gates measured, for V(proven) and V(rejected).
    type: dict
    default: {}
attributes:
  check_mode:
    description: Tells what would change and what would need a restart.
    support: full
  diff_mode:
    description: Shows the unit before and after. The environment is never shown.
    support: full
"""

EXAMPLES = r"""
- name: Take the release
  gpuserve.sglang.sglang_release:
    instance: main
    args: [--model-path, /srv/models/tiny-llama]
    venv: /opt/sglang/engine-0.5.20
    models: [/srv/models/tiny-llama]
    unit: "{{ lookup('ansible.builtin.template', 'sglang.service.j2') }}"

- name: Go back to the last one whose gates passed
  gpuserve.sglang.sglang_release:
    instance: main
    state: back
"""

RETURN = r"""
release:
  description: The hash of the release.
  returned: always
  type: str
unit:
  description: The name of the unit.
  returned: always
  type: str
restart:
  description: What takes effect only by a restart of the engine that runs. Empty when nothing runs.
  returned: for V(current) and V(back)
  type: list
  elements: str
waits:
  description: What takes effect with the next start, whenever that is.
  returned: for V(current) and V(back)
  type: list
  elements: str
running:
  description: The release that the running engine was started from. Null when nothing runs.
  returned: for V(current) and V(back)
  type: str
proven:
  description: Whether the gates of the release passed. Null when they never ran.
  returned: for V(current) and V(back)
  type: bool
settled:
  description:
    - Whether the engine runs as this release wants it, whose gates passed, and its unit is enabled and its user there,
      so that nothing is left to do but to ask what runs.
  returned: for V(current) and V(back)
  type: bool
caches:
  description:
    - The caches of compiled kernels that the next start will find, as C(folder), C(warm) and C(sentence).
    - Null where the engine runs on.
  returned: for V(current) and V(back)
  type: dict
asked:
  description: What the release's arguments ask for, as C(url), C(model), C(drafter), C(algorithm) and C(numbers).
  returned: for V(current) and V(back)
  type: dict
identity:
  description: What a measured speed belongs to, as C(model), C(engine) and C(gpus).
  returned: for V(current) and V(back)
  type: dict
taken:
  description: When this was done, in seconds since the epoch.
  returned: always
  type: float
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import deploy, store
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.question import RELEASE


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **RELEASE,
            "state": {"type": "str", "choices": ["current", "back", "proven", "rejected"], "default": "current"},
            "keep": {"type": "int", "default": 5},
            "retry": {"type": "bool", "default": False},
            "release": {"type": "str"},
            "told": {"type": "str", "default": ""},
            "measured": {"type": "dict", "default": {}},
        },
        required_if=[
            ("state", "current", ["args", "venv", "unit"]),
            ("state", "proven", ["release"]),
            ("state", "rejected", ["release"]),
        ],
        supports_check_mode=True,
    )
    params = module.params
    told: dict[str, Any] = {"unit": deploy.unit_name(params["instance"]), "taken": time.time()}
    try:
        if params["state"] in ("proven", "rejected"):
            told |= _remember(params, module.check_mode)
        else:
            told |= _take(params, module.check_mode)
    except deploy.ReleaseError as error:
        module.fail_json(msg=str(error))
    except IsADirectoryError as error:
        module.fail_json(
            msg=f"{error.filename2 or error.filename}: there is a folder in the place of this file; move it away"
        )
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}; check free space and permissions")
    module.exit_json(**told)


def _remember(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    kept = store.Store(store.ROOT / params["instance"])
    passed = params["state"] == "proven"
    known = kept.proof(params["release"])
    if not check_mode:
        proof = store.Proof(passed, time.time(), params["told"], params["measured"])
        deploy.remember(kept, params["release"], proof, params["keep"], deploy.running(params["instance"])[0])
    return {"changed": known is None or known.passed != passed, "release": params["release"]}


def _take(params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    places = deploy.Places()
    if params["state"] == "back":
        outcome = deploy.go_back(places, params["instance"], params["release"], check_mode)
    else:
        outcome = deploy.hold(places, params["instance"], deploy.Wanted.of(params), params["retry"], check_mode)
    diff = {"before": outcome.before, "after": outcome.after, "before_header": "unit", "after_header": "unit"}
    return {**outcome.told(), "diff": diff}


if __name__ == "__main__":
    main()
