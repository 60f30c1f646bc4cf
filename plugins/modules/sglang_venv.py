#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_venv
short_description: Hold a virtual environment with an engine, whatever state it was in before
version_added: 0.1.0
description:
  - Makes the venv, brings back a missing pip, makes it again when its interpreter does not start, finishes a
    half-finished installation, and installs what was asked for.
  - When nothing is to do that is known after one start of the venv's Python, without a pip run.
  - Packages that the request does not name are kept, unless O(exclusive) is set.
author:
  - gpuserve contributors (@gpuserve)
options:
  path:
    description: The folder of the venv.
    type: path
    required: true
  python:
    description: The Python that the venv is made with.
    type: str
    default: python3
  creator:
    description: What makes the venv. V(auto) takes the first of the others that is there.
    type: str
    choices: [auto, venv, virtualenv, uv]
    default: auto
  requirements:
    description: Requirements that are installed with all that they depend on. Not used when there is a lock.
    type: list
    elements: str
    default: []
  requirements_no_deps:
    description: Requirements that are installed alone. Not used when there is a lock.
    type: list
    elements: str
    default: []
  lock:
    description: A requirements file on the target that names every package with its version and hash.
    type: path
  wheelhouse:
    description:
      - A folder on the target with wheels and their C(lock.txt), as M(gpuserve.sglang.sglang_wheelhouse) makes it.
        Nothing is then asked of any index.
    type: path
  index_url:
    description: The package index. Pip's own setting by default.
    type: str
  extra_index_urls:
    description: More package indexes.
    type: list
    elements: str
    default: []
  exclusive:
    description: Remove packages that the request does not bring. Pip, setuptools and wheel stay.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what is wrong with the venv, without resolving packages.
  diff_mode:
    support: full
    description: Shows the packages that were added, removed or changed.
"""

EXAMPLES = r"""
- name: Install the engine from an index
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    requirements:
      - sglang==0.5.20

- name: Install the engine with no network
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    wheelhouse: /srv/wheelhouse/sglang-0.5.20
"""

RETURN = r"""
venv:
  description: The folder of the venv.
  returned: always
  type: str
python:
  description: The interpreter of the venv.
  returned: always
  type: str
python_version:
  description: Its version. Null in check mode when there is no venv that works.
  returned: always
  type: str
packages:
  description: How many packages are installed. Null in check mode when they would change.
  returned: always
  type: int
problems:
  description: What kept the venv from being what was asked for.
  returned: always
  type: list
  elements: str
repairs:
  description: What was done about it.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import venv


def _listed(packages: dict[str, str]) -> str:
    return "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "python": {"type": "str", "default": "python3"},
            "creator": {"type": "str", "choices": ["auto", *venv.CREATORS], "default": "auto"},
            "requirements": {"type": "list", "elements": "str", "default": []},
            "requirements_no_deps": {"type": "list", "elements": "str", "default": []},
            "lock": {"type": "path"},
            "wheelhouse": {"type": "path"},
            "index_url": {"type": "str"},
            "extra_index_urls": {"type": "list", "elements": "str", "default": []},
            "exclusive": {"type": "bool", "default": False},
        },
        required_one_of=[("requirements", "requirements_no_deps", "lock", "wheelhouse")],
        mutually_exclusive=[("wheelhouse", "index_url")],
        supports_check_mode=True,
    )
    params = module.params
    request = venv.Request(
        path=Path(params["path"]),
        python=params["python"],
        creator=params["creator"],
        requirements=tuple(params["requirements"]),
        requirements_no_deps=tuple(params["requirements_no_deps"]),
        lock=Path(params["lock"]) if params["lock"] else None,
        wheelhouse=Path(params["wheelhouse"]) if params["wheelhouse"] else None,
        index_url=params["index_url"],
        extra_index_urls=tuple(params["extra_index_urls"]),
        exclusive=params["exclusive"],
    )
    try:
        outcome = venv.converge(request, check_mode=module.check_mode)
    except (venv.VenvError, OSError) as error:
        module.fail_json(msg=f"the venv {request.path} could not be brought to the wanted state: {error}")
    after = outcome.after
    result = {
        "changed": bool(outcome.problems),
        "venv": str(request.path),
        "python": str(request.path / "bin" / "python"),
        "python_version": outcome.python_version,
        "packages": None if after is None else len(after),
        "problems": outcome.problems,
        "repairs": outcome.repairs,
    }
    if after is not None:
        result["diff"] = {
            "before_header": str(request.path),
            "after_header": str(request.path),
            "before": _listed(dict(outcome.before)),
            "after": _listed(dict(after)),
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
