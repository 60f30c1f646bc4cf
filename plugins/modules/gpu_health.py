#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_health
short_description: Check that NVIDIA GPUs can be used by CUDA
version_added: 0.1.0
description:
  - Checks the device nodes, the kernel module, C(libcuda) and C(cuInit), in this order, because the driver's libraries
    create device nodes that are missing and so hide the fault until the next boot.
  - Needs no parameter, no GPU and no library. What cannot be looked at is returned as C(skipped) with the reason, never
    as passed.
  - Each question to the driver is asked in a process of its own under a time limit, so that a driver that hangs or
    crashes is a failed check and not a hanging play.
  - Changes nothing.
author:
  - gpuserve contributors (@gpuserve)
options:
  expected_count:
    description:
      - Number of GPUs that must be there.
      - Without it the NVIDIA GPUs on the PCI bus are expected, and where none is seen, any number but zero.
    type: int
  devices:
    description:
      - Device nodes that must exist and open.
      - Without it C(/dev/nvidiactl), C(/dev/nvidia-uvm) and C(/dev/nvidia0) up to the expected number of GPUs.
    type: list
    elements: path
  driver:
    description:
      - V(required) expects a working NVIDIA driver.
      - V(absent) declares that this machine has none, as a lab. Then a node that is permitted but has no driver behind
        it, and everything that would ask the driver, is returned as skipped with that reason. A node that is missing or
        refused still fails.
    type: str
    choices: [required, absent]
    default: required
  ignore:
    description:
      - Ids of checks that must not stop the run. They are returned all the same, with their status.
    type: list
    elements: str
    default: []
  timeout:
    description:
      - Seconds that one question to the driver may take.
    type: int
    default: 60
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check mode), when in diff mode.
    support: none
  platform:
    description: Target OS families that can be operated against.
    support: full
    platforms: linux
"""

EXAMPLES = r"""
- name: Check that CUDA works with all eight GPUs
  gpuserve.sglang.gpu_health:
    expected_count: 8

- name: Check the device rules of a lab that has no NVIDIA driver
  gpuserve.sglang.gpu_health:
    devices:
      - /dev/nvidiactl
      - /dev/nvidia-uvm
      - /dev/nvidia0
    driver: absent
"""

RETURN = r"""
checks:
  description: What was checked, in order.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Stable name of the check, as O(ignore) takes it.
      type: str
      sample: node.nvidia-uvm
    status:
      description: One of C(pass), C(warn), C(fail) and C(skipped).
      type: str
      sample: fail
    expected:
      description: What a sound machine shows.
      type: str
      sample: open(/dev/nvidia-uvm) succeeds
    actual:
      description: What was found; for a skipped check, why it was not looked at.
      type: str
      sample: "EPERM: the device cgroup refuses character device 511:0"
    fix:
      description: The one thing to do next; empty when nothing is to do.
      type: str
      sample: on the host run role lxc_gpu
    source:
      description: Where the rule comes from.
      type: str
      sample: cuda.h, enum cudaError_enum (CUDA 13.0)
summary:
  description: One sentence with the number of checks of each status.
  returned: always
  type: str
  sample: "GPU health: 13 passed"
ignored:
  description: Ids of the failed checks that O(ignore) let pass.
  returned: always
  type: list
  elements: str
  sample: []
gpus:
  description: The GPUs in CUDA's order; what the driver did not answer is absent.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: CUDA's number of the GPU.
      type: int
      sample: 0
    name:
      description: Its model.
      type: str
      sample: NVIDIA H200
    memory:
      description: Its memory that CUDA can use, in bytes.
      type: int
      sample: 150109880320
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
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import (
    as_dicts,
    failing,
    failure_message,
    summary,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.health import Request, examine

SUBJECT = "GPU health"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "expected_count": {"type": "int"},
            "devices": {"type": "list", "elements": "path"},
            "driver": {"type": "str", "choices": ["required", "absent"], "default": "required"},
            "ignore": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    health = examine(
        Request(
            expected_count=module.params["expected_count"],
            devices=tuple(module.params["devices"] or ()),
            driver=module.params["driver"],
            timeout=module.params["timeout"],
        )
    )
    ignored = [check for check in failing(health.checks) if check.id in module.params["ignore"]]
    stopping = [check for check in health.checks if check not in ignored]
    result = {
        "changed": False,
        "checks": as_dicts(health.checks),
        "summary": summary(SUBJECT, health.checks),
        "ignored": [check.id for check in ignored],
        "gpus": list(health.gpus),
    }
    if failing(stopping):
        module.fail_json(msg=failure_message(SUBJECT, stopping), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
