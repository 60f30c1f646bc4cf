#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_health
short_description: Check that NVIDIA GPUs are sound and can be used by CUDA
version_added: 0.1.0
description:
  - Checks the device nodes, the kernel module, C(libcuda) and C(cuInit), in this order, because the driver's libraries
    create device nodes that are missing and so hide the fault until the next boot.
  - Needs no parameter, no GPU and no library. What cannot be looked at is returned as C(skipped) with the reason, never
    as passed.
  - Each question to the driver is asked in a process of its own under a time limit, so that a driver that hangs or
    crashes is a failed check and not a hanging play.
  - What NVML tells is read through C(nvidia-ml-py) in the O(venv)'s Python. Where it is not installed those checks are
    returned as skipped with the fix.
  - In a container the checks that need the host (kernel log, ACS, IOMMU) are returned as skipped; run the module on the
    host too.
  - Changes nothing, resets nothing, and leaves no process behind.
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
  level:
    description:
      - V(quick) asks the kernel and the driver.
      - V(deep) also puts idle GPUs under load for about a minute, through the PyTorch of O(venv). It copies between
        host and GPU and inside each GPU, repeats a matrix product whose result must not change, and sums a tensor over
        all GPUs with NCCL. The sum is the only proof against the hang of PCIe peer-to-peer traffic. GPUs that are in
        use are left alone, and the checks are returned as skipped.
    type: str
    choices: [quick, deep]
    default: quick
  venv:
    description:
      - Virtual environment that holds C(nvidia-ml-py) and, for O(level=deep), PyTorch. The engine's own is meant.
      - Without it the Python that runs the module is asked.
    type: path
  idle:
    description:
      - Fail unless nothing uses the GPUs, as it must be before a server starts. O(level=deep) implies it.
    type: bool
    default: false
  environment_variables:
    description:
      - Environment of the load of O(level=deep). Give the service's C(NCCL_*) variables, so that what is proven is what
        will run.
    type: dict
    default: {}
  thresholds:
    description:
      - Values to use in place of the collection's own for all GPUs. The defaults depend on the model and are kept, each
        with its source, in C(plugins/module_utils/gpu/expected.py).
    type: dict
    default: {}
    suboptions:
      all_reduce_min:
        description: NCCL's bus bandwidth that an all_reduce over all GPUs must reach, in bytes per second.
        type: float
      clock_under_load_min_fraction:
        description: Fraction of the highest SM clock below which the clock under load is warned about.
        type: float
      device_to_device_min:
        description: Bandwidth of a copy inside a GPU's memory, bytes read plus bytes written, in bytes per second.
        type: float
      device_to_host_min:
        description: Bandwidth from a GPU to pinned host memory, in bytes per second.
        type: float
      ecc:
        description: V(1) when ECC must be on, V(0) when it must be off.
        type: int
      ecc_aggregate_uncorrected_max:
        description: Uncorrected memory errors in a card's life above which it fails.
        type: int
      ecc_corrected_max:
        description: Corrected memory errors above which a card is warned about.
        type: int
      host_to_device_min:
        description: Bandwidth from pinned host memory to a GPU, in bytes per second.
        type: float
      memory_available_per_gpu_min:
        description: Memory of the host that must be available for each GPU, in bytes.
        type: int
      memory_total:
        description: Memory that each GPU must have, in bytes as NVML counts it.
        type: int
      memory_used_max:
        description: Memory of a GPU that may be in use while nothing runs, in bytes.
        type: int
      nvlinks:
        description: Number of NVLinks that must be active on each GPU.
        type: int
      pcie_generation:
        description: PCIe generation of each GPU's link while it works.
        type: int
      pcie_width:
        description: PCIe width of each GPU's link.
        type: int
      shm_min:
        description: Free space that C(/dev/shm) must have, in bytes.
        type: int
      temperature_margin:
        description: Degrees Celsius below a card's own slowdown threshold at which it is warned about.
        type: int
  xid_window:
    description:
      - Seconds of the kernel log in which Xid and SXid errors count; V(0) takes all since the boot.
    type: int
    default: 0
  ignore:
    description:
      - Ids of checks that must not stop the run. They are returned all the same, with their status.
      - An id that no check of the run has is warned about.
    type: list
    elements: str
    default: []
  timeout:
    description:
      - Seconds that one question to the driver, or one phase of O(level=deep), may take.
    type: int
    default: 60
attributes:
  platform:
    description: Target OS families that can be operated against.
    support: full
    platforms: linux
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
  - gpuserve.sglang.judging
"""

EXAMPLES = r"""
- name: Check that CUDA works with all eight GPUs
  gpuserve.sglang.gpu_health:
    expected_count: 8

- name: Check a container before the server starts, without stopping for one known fault
  gpuserve.sglang.gpu_health:
    expected_count: 8
    venv: /opt/sglang/venv
    idle: true
    ignore:
      - gpu.persistence

- name: Prove that the GPUs can talk to each other with the service's settings
  gpuserve.sglang.gpu_health:
    expected_count: 8
    venv: /opt/sglang/venv
    level: deep
    environment_variables:
      NCCL_P2P_LEVEL: SYS

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
  description: >-
    The GPUs in the order of the PCI bus, as NVML describes them, else as CUDA does. What was not answered is absent.
  returned: always
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
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.question import QUESTION
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(QUESTION.answer, module.params)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
