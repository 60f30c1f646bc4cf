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
  - When SGLang is asked for, a compressed-tensors that it cannot use is refused. Before anything is changed if the
    request tells the version, else after the installation, which then stays unfinished.
  - A folder that holds anything else than a venv is never touched.
author:
  - gpuserve contributors (@gpuserve)
options:
  path:
    description: The folder of the venv.
    type: path
    required: true
  python:
    description: The Python that the venv is made with. A venv of another minor version is made again.
    type: str
    default: python3
  creator:
    description: What makes the venv. V(auto) takes the first of the others that is there.
    type: str
    choices: [auto, venv, virtualenv, uv]
    default: auto
  requirements:
    description:
      - Requirements that are installed with all that they depend on. A wheel or a git build is written C(NAME @ URL),
        with the commit in the URL, since nothing is asked again while the URL stays the same.
      - Not used when there is a lock.
    type: list
    elements: str
    default: []
  requirements_no_deps:
    description: Requirements that are installed alone. Not used when there is a lock.
    type: list
    elements: str
    default: []
  constraints:
    description:
      - Versions that the requirements and what they depend on are held to. Not used when there is a lock.
      - For a known release of SGLang the range of compressed-tensors that it can use is added.
    type: list
    elements: str
    default: []
  lock:
    description:
      - The text of a requirements file that names every package with its version and hash. Nothing else is installed
        then, and each file is checked against its hash.
    type: str
  wheelhouse:
    description:
      - A folder on the target with wheels, as M(gpuserve.sglang.sglang_wheelhouse) makes it. Its C(lock.txt) is used
        unless O(lock) is given. Nothing is then asked of any index.
    type: path
  index_url:
    description: The package index. Pip's own setting by default. Credentials belong into pip's settings on the target.
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
  ignore:
    description: Ids of checks that may fail, for a version that deviates from the engine's metadata on purpose.
    type: list
    elements: str
    default: []
  keep:
    description:
      - How many other engines stay in the folder beside O(path), the last finished ones. All of them by default.
      - Only finished venvs of this module that hold SGLang count. One that a unit or a process uses is never removed.
    type: int
  system_packages:
    description: Packages of the distribution that are looked for. They are not installed.
    type: list
    elements: str
    default: []
  names:
    description: What the operator knows an option as, by its name here. Used in messages.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Says what is wrong with the venv, without resolving packages.
  diff_mode:
    support: full
    description: Shows the packages that were added, removed or changed, in check mode what is wrong.
"""

EXAMPLES = r"""
- name: Install the engine from an index, each file checked against a hash
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    lock: "{{ lookup('ansible.builtin.file', 'sglang-0.5.20.lock') }}"

- name: Install the engine with no network, and keep the one before it
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    wheelhouse: /srv/wheelhouse/sglang
    keep: 1

- name: Install a build of one commit
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-main
    requirements:
      - sglang @ git+https://git.example.org/sglang.git@0123456789abcdef0123456789abcdef01234567#subdirectory=python
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
  returned: success
  type: str
packages:
  description: How many packages are installed. Null in check mode when they would change.
  returned: success
  type: int
problems:
  description: What kept the venv from being what was asked for.
  returned: success
  type: list
  elements: str
repairs:
  description: What was done about it.
  returned: success
  type: list
  elements: str
system_packages_missing:
  description: Those of O(system_packages) that are not installed.
  returned: success
  type: list
  elements: str
removed:
  description: Other engines that were removed, in check mode would be.
  returned: success
  type: list
  elements: str
kept:
  description: Other engines that would have been removed if nothing used them, with C(path) and C(used_by).
  returned: success
  type: list
  elements: dict
checks:
  description: What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
  returned: success, or when a check fails
  type: list
  elements: dict
summary:
  description: One sentence about the checks.
  returned: success, or when a check fails
  type: str
"""

from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.installation_question import QUESTION, converge
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(partial(converge, check_mode=module.check_mode), module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
