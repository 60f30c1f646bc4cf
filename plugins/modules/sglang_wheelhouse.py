#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_wheelhouse
short_description: Hold a folder of wheels from which an engine is installed without a network
version_added: 0.1.0
description:
  - Downloads every wheel that an engine needs with the pip of the machine it runs on (usually the controller), and
    writes C(lock.txt) with the hash of each.
  - When SGLang is among the requirements, a compressed-tensors that it cannot use is refused, and what is downloaded is
    held to the range that it can use.
  - A container or an air-gapped site then installs with no index at all, see
    O(gpuserve.sglang.sglang_venv#module:wheelhouse).
  - The wheels fit the Python that downloads them, so O(python) must be of the same version as the Python of the
    engine's host.
author:
  - gpuserve contributors (@gpuserve)
options:
  path:
    description: The folder of the wheelhouse.
    type: path
    required: true
  requirements:
    description: Requirements that are downloaded with all that they depend on.
    type: list
    elements: str
    default: []
  requirements_no_deps:
    description: Requirements that are downloaded alone.
    type: list
    elements: str
    default: []
  constraints:
    description: Versions that the requirements and what they depend on are held to.
    type: list
    elements: str
    default: []
  lock:
    description:
      - The text of a requirements file that names every package with its version and hash.
      - It replaces the requirements.
    type: str
  index_url:
    description: The package index. Pip's own setting by default.
    type: str
  extra_index_urls:
    description: More package indexes.
    type: list
    elements: str
    default: []
  names:
    description: What the operator knows an option as, by its name here. Used in messages.
    type: dict
    default: {}
  python:
    description: The Python whose pip downloads. The one that runs the module by default.
    type: path
attributes:
  check_mode:
    support: full
    description: Says whether the wheelhouse would be made again.
  diff_mode:
    support: none
    description: A wheelhouse has no text to compare.
"""

EXAMPLES = r"""
- name: Gather the wheels of the engine on the controller
  gpuserve.sglang.sglang_wheelhouse:
    path: /srv/wheelhouse/sglang-0.5.20
    requirements:
      - sglang==0.5.20
  delegate_to: localhost
"""

RETURN = r"""
wheelhouse:
  description: The folder.
  returned: always
  type: str
key:
  description: The hash of the request that the wheels answer.
  returned: always
  type: str
wheels:
  description: How many wheels there are. Null in check mode when they would be downloaded.
  returned: always
  type: int
bytes:
  description: All wheels together, in bytes. Null in check mode when they would be downloaded.
  returned: always
  type: int
checks:
  description: What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
  returned: success, or when a check fails
  type: list
  elements: dict
"""

import sys
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import checks, pins
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import pip, wheelhouse
from ansible_collections.gpuserve.sglang.plugins.module_utils.python.names import locked


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "requirements": {"type": "list", "elements": "str", "default": []},
            "requirements_no_deps": {"type": "list", "elements": "str", "default": []},
            "constraints": {"type": "list", "elements": "str", "default": []},
            "lock": {"type": "str"},
            "index_url": {"type": "str"},
            "extra_index_urls": {"type": "list", "elements": "str", "default": []},
            "names": {"type": "dict", "default": {}},
            "python": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    path = Path(params["path"])
    lists = {name: tuple(params[name]) for name in ("requirements", "requirements_no_deps", "constraints")}
    names = params["names"]
    try:
        asked = (
            pins.of_requirements({names.get(name, name): lines for name, lines in lists.items()})
            if params["lock"] is None
            else pins.of_lock(locked(params["lock"]), names.get("lock", "lock"))
        )
    except ValueError as error:
        module.fail_json(msg=f"the lock cannot be used: {error}")
    judged = asked.checks()
    told = {"wheelhouse": str(path), "checks": checks.as_dicts(judged)}
    if checks.failing(judged):
        module.fail_json(msg=checks.failure_message(str(path), judged), **told)
    request = wheelhouse.Request(
        lists["requirements"],
        lists["requirements_no_deps"],
        params["python"] or sys.executable,
        (*lists["constraints"], *asked.constraints()),
        params["lock"],
        pip.Source(None, params["index_url"], tuple(params["extra_index_urls"])),
    )
    try:
        if module.check_mode:
            house = wheelhouse.read(path)
            key = request.key()
            if house is None or house.key != key:
                module.exit_json(changed=True, key=key, wheels=None, bytes=None, **told)
            changed = False
        else:
            house, changed = wheelhouse.build(path, request)
    except (wheelhouse.WheelhouseError, OSError) as error:
        module.fail_json(msg=f"the wheelhouse {path} could not be made: {error}", **told)
    module.exit_json(changed=changed, key=house.key, wheels=len(house.wheels), bytes=house.size, **told)


if __name__ == "__main__":
    main()
