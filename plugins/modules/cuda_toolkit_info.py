#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit_info
short_description: Tell which CUDA toolkit fits driver, torch and GPUs, and where one is already
version_added: 0.1.0
author: gpuserve contributors (@gpuserve)
description:
  - Chooses the CUDA version that the engine's kernels have to be compiled with, from what the engine's torch was built
    for and what the driver runs, and judges it against driver, torch and GPUs.
  - Looks for a toolkit that is complete, in the engine's virtual environment and below C(/usr/local), so that none has
    to be installed.
  - Changes nothing.
options:
  version:
    description: The CUDA version (V(13.0)). Empty to have it chosen.
    type: str
    default: ""
  fallback_version:
    description: The version while no torch with CUDA is installed, unless the driver runs only older ones.
    type: str
    required: true
  engine_venv:
    description: The virtual environment of the engine. One that is not there yet is no fault.
    type: path
  installed_prefix:
    description: Where installations lie side by side, each with its version at the end.
    type: path
    default: /usr/local/cuda-
  source:
    description: Where a toolkit that is not there yet will be installed from.
    type: str
    choices: [wheels, packages]
    default: wheels
  architectures:
    description: The GPUs' architectures (V(sm_120)).
    type: list
    elements: str
    required: true
  compiler:
    description: The C++ compiler that nvcc calls.
    type: str
    default: g++
  running_file:
    description: Where the kernel module tells its version.
    type: path
    default: /proc/driver/nvidia/version
  held:
    description: What is held on this machine, to see whether anything of it is left to do.
    type: dict
    suboptions:
      home:
        description: The CUDA_HOME.
        type: path
        required: true
      tools:
        description: The folder that has ninja.
        type: path
        required: true
      venv:
        description: The virtual environment of the wheels.
        type: path
        required: true
      version:
        description: The CUDA version that O(held.venv) and O(held.requirements) are of.
        type: str
        required: true
      python:
        description: The Python of the virtual environment.
        type: str
        required: true
      requirements:
        description: The wheels.
        type: list
        elements: str
        required: true
      wheelhouse:
        description: The folder that the wheels come from.
        type: path
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: See which compiler the engine needs
  gpuserve.sglang.cuda_toolkit_info:
    engine_venv: /opt/sglang/engine-0.5.20
    fallback_version: "13.0"
    architectures: [sm_120]
  register: toolkit
"""

RETURN = r"""
msg:
  description: One sentence.
  returned: always
  type: str
  sample: "cuda_toolkit: 13.0 from wheels: 3 passed"
version:
  description: The chosen CUDA version.
  returned: always
  type: str
  sample: "13.0"
reason:
  description: Why this one was chosen.
  returned: always
  type: str
  sample: the engine's torch was built for it
origin:
  description: Where a complete toolkit of this version is, V(engine) or V(installed), or V(none).
  returned: always
  type: str
  sample: none
root:
  description: The folder of that toolkit, empty if there is none.
  returned: always
  type: str
  sample: ""
settled:
  description: Whether O(held) is as it should be and proven, so that nothing is left to do.
  returned: always
  type: bool
  sample: true
compiler_found:
  description: Whether the C++ compiler is there.
  returned: always
  type: bool
  sample: true
checks:
  description:
    - What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
    - C(status) is V(pass), V(warn), V(fail) or V(skipped).
  returned: always
  type: list
  elements: dict
  sample:
    - id: cuda.driver
      status: pass
      expected: a driver that runs CUDA 13.0
      actual: driver 580.95.05 runs CUDA 13.0
      fix: ""
      source: CUDA Compatibility guide, minor version compatibility
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.question import QUESTION
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(QUESTION.answer, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
