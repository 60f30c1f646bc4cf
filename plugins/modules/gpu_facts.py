#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_facts
short_description: Describe the NVIDIA GPUs of a host as facts
version_added: 0.1.0
description:
  - Reads the GPUs once, so that other tasks and roles need not ask the driver again.
  - Asks NVML through the C(nvidia-ml-py) of O(venv), and CUDA where that is not installed.
  - Judges nothing and never fails for a broken GPU; M(gpuserve.sglang.gpu_health) does that. Does not ask the driver
    while one of its device nodes is missing, because its libraries would create it.
author:
  - gpuserve contributors (@gpuserve)
options:
  venv:
    description:
      - Virtual environment that holds C(nvidia-ml-py).
      - Without it the Python that runs the module is asked.
    type: path
  timeout:
    description:
      - Seconds that one question to the driver may take.
    type: int
    default: 60
attributes:
  facts:
    description: Action returns an C(ansible_facts) dictionary that will update existing host facts.
    support: full
  platform:
    description: Target OS families that can be operated against.
    support: full
    platforms: linux
seealso:
  - module: gpuserve.sglang.gpu_health
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Read the GPUs
  gpuserve.sglang.gpu_facts:
    venv: /opt/sglang/venv

- name: Show what each rank will have
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpuserve_gpus']['gpus'] | map(attribute='memory') }}"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add.
  returned: always
  type: dict
  contains:
    gpuserve_gpus:
      description: What is known of the GPUs.
      type: dict
      contains:
        count:
          description: Number of GPUs that the driver describes.
          type: int
          sample: 8
        driver:
          description: Version of the loaded kernel module; empty when there is none.
          type: str
          sample: 580.159.04
        cuda:
          description: CUDA version that the driver supports; empty when it did not tell.
          type: str
          sample: "13.0"
        container:
          description: Kind of the container that this host is; empty on a host.
          type: str
          sample: lxc
        reason:
          description: Why there are no GPUs; empty when there are.
          type: str
          sample: ""
        gpus:
          description: >-
            The GPUs in the order of the PCI bus. What was not answered is absent.
          type: list
          elements: dict
          contains:
            index:
              description: Its number.
              type: int
              sample: 0
            name:
              description: Its model.
              type: str
              sample: NVIDIA H200
            memory:
              description: Its memory in bytes, as NVML counts it; without NVML the part that CUDA can use.
              type: int
              sample: 150754820096
            memory_used:
              description: Its memory in use, in bytes, without what the driver keeps for itself.
              type: int
              sample: 0
            capability:
              description: Its compute capability.
              type: str
              sample: "9.0"
            uuid:
              description: Its identity.
              type: str
              sample: GPU-00000000-0000-0000-0000-000000000000
            pci:
              description: Its PCI address.
              type: str
              sample: "0000:41:00.0"
            minor:
              description: Number of its device node.
              type: int
              sample: 0
            vbios:
              description: Version of its VBIOS.
              type: str
              sample: 96.00.A5.00.1A
            numa_node:
              description: Its NUMA node, null where the firmware does not tell.
              type: int
              sample: 0
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.health import Request, survey


def main() -> None:
    module = AnsibleModule(
        argument_spec={"venv": {"type": "path"}, "timeout": {"type": "int", "default": 60}},
        supports_check_mode=True,
    )
    found = survey(Request(venv=module.params["venv"] or "", timeout=module.params["timeout"]))
    facts = {
        "count": len(found.gpus),
        "driver": found.driver,
        "cuda": found.cuda,
        "container": found.container,
        "reason": found.reason,
        "gpus": list(found.gpus),
    }
    module.exit_json(changed=False, ansible_facts={"gpuserve_gpus": facts})


if __name__ == "__main__":
    main()
