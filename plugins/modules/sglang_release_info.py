#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_release_info
short_description: Show the releases of an instance, and what is known of the one that is asked for
version_added: 0.1.0
description:
  - Lists what M(gpuserve.sglang.sglang_release) keeps, which of it runs, and how its gates went.
  - With O(args) it also tells whether a start with these would be a release whose gates passed already. Then flags and
    drafter were judged when that was deployed, and the engine need not be asked again. Every part must be provable for
    that (an engine and models that this collection installed). Where the machine has device nodes of GPUs, it judges
    whether the engine can be let at them.
author:
  - gpuserve contributors (@gpuserve)
options:
  instance:
    description: The name of the instance.
    type: str
    required: true
  args:
    description: The arguments of the engine that is asked for.
    type: list
    elements: str
  environment:
    description: The text of its environment file.
    type: str
    default: ""
  keys:
    description: The text of a configuration file of the engine's that holds its API keys.
    type: str
    default: ""
  venv:
    description: Its venv.
    type: path
  models:
    description: The folders of its base model and drafter.
    type: list
    elements: path
    default: []
  unit:
    description: The text of its unit, as M(gpuserve.sglang.sglang_release) takes it.
    type: str
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Show the releases
  gpuserve.sglang.sglang_release_info:
    instance: main
"""

RETURN = r"""
releases:
  description:
    - The releases, the newest first. Each has C(release), C(written), C(args), C(asked), C(identity), C(venv),
      C(models), C(current), C(running), C(proven) (null when its gates never ran), C(proven_at), C(told) and
      C(measured).
  returned: always
  type: list
  elements: dict
current:
  description: The release that a start takes. Null when there is none.
  returned: always
  type: str
running:
  description: The release that the running engine was started from. Null when nothing runs.
  returned: always
  type: str
release:
  description: The hash of what is asked for.
  returned: with O(args)
  type: str
parts:
  description: The hash of each part of it. Null for one that is not there or was not made by this collection.
  returned: with O(args)
  type: dict
known_good:
  description: Whether it is a release whose gates passed, with every part provable.
  returned: with O(args)
  type: bool
checks:
  description: Whether the engine can be let at the device nodes. Empty where there are none.
  returned: with O(args)
  type: list
  elements: dict
as_current:
  description:
    - What M(gpuserve.sglang.sglang_release) would return if it made this the current release now. Where it is
      C(settled) and not C(changed), nothing is left to do.
    - Null where it would refuse it.
  returned: with O(unit)
  type: dict
"""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import deploy, nodes, store


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "instance": {"type": "str", "required": True},
            "args": {"type": "list", "elements": "str"},
            "environment": {"type": "str", "default": "", "no_log": True},
            "keys": {"type": "str", "default": "", "no_log": True},
            "venv": {"type": "path"},
            "models": {"type": "list", "elements": "path", "default": []},
            "unit": {"type": "str"},
        },
        required_together=[("args", "venv")],
        required_by={"unit": ["args"]},
        supports_check_mode=True,
    )
    params = module.params
    kept = store.Store(store.ROOT / params["instance"])
    runs = deploy.running(params["instance"])[0]
    told: dict[str, Any] = {
        "releases": [_shown(record, kept, runs) for record in kept.records()],
        "current": kept.current,
        "running": runs,
    }
    if params["args"] is not None:
        models = [Path(model) for model in params["models"]]
        asked = deploy.record(params["args"], params["environment"], params["keys"], Path(params["venv"]), models)
        proof = kept.proof(asked.release)
        judged = nodes.check(nodes.look(deploy.Places().nodes))
        told |= {
            "checks": as_dicts([judged] if judged is not None else []),
            "release": asked.release,
            "parts": dict(asked.parts),
            "known_good": proof is not None and proof.passed and None not in asked.parts.values(),
        }
    if params["unit"] is not None:
        told["as_current"] = _as_current(params)
    module.exit_json(changed=False, **told)


def _as_current(params: dict[str, Any]) -> dict[str, Any] | None:
    wanted = deploy.Wanted.of(params)
    # Who takes it is told what is wrong.
    with suppress(deploy.ReleaseError, OSError):
        outcome = deploy.hold(deploy.Places(), params["instance"], wanted, retry=False, only_look=True)
        return {**outcome.told(), "unit": deploy.unit_name(params["instance"])}
    return None


def _shown(record: store.Record, kept: store.Store, runs: str | None) -> dict[str, Any]:
    proof = kept.proof(record.release)
    return {
        "release": record.release,
        "written": record.written,
        "args": list(record.args),
        "asked": asdict(deploy.Asked.of(record.args)),
        "identity": deploy.identity(record),
        "venv": record.venv,
        "models": list(record.models),
        "current": record.release == kept.current,
        "running": record.release == runs,
        "proven": None if proof is None else proof.passed,
        "proven_at": None if proof is None else proof.at,
        "told": "" if proof is None else proof.told,
        "measured": {} if proof is None else dict(proof.measured),
    }


if __name__ == "__main__":
    main()
