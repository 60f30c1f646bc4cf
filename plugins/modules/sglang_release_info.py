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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.question import QUESTION


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(QUESTION.answer, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
