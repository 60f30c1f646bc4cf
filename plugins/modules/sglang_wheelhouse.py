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
"""

import sys
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import wheelhouse


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "requirements": {"type": "list", "elements": "str", "default": []},
            "requirements_no_deps": {"type": "list", "elements": "str", "default": []},
            "python": {"type": "path"},
        },
        required_one_of=[("requirements", "requirements_no_deps")],
        supports_check_mode=True,
    )
    path = Path(module.params["path"])
    python = module.params["python"] or sys.executable
    request = wheelhouse.Request(
        tuple(module.params["requirements"]), tuple(module.params["requirements_no_deps"]), python
    )
    try:
        if module.check_mode:
            house = wheelhouse.read(path)
            key = request.key()
            if house is None or house.key != key:
                module.exit_json(changed=True, wheelhouse=str(path), key=key, wheels=None, bytes=None)
            changed = False
        else:
            house, changed = wheelhouse.build(path, request)
    except (wheelhouse.WheelhouseError, OSError) as error:
        module.fail_json(msg=f"the wheelhouse {path} could not be made: {error}")
    module.exit_json(changed=changed, wheelhouse=str(path), key=house.key, wheels=len(house.wheels), bytes=house.size)


if __name__ == "__main__":
    main()
