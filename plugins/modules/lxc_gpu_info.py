#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lxc_gpu_info
short_description: Check and prove which NVIDIA devices LXC containers of this host may open
version_added: 0.1.0
description:
  - Looks at a host of LXC containers, as it is, and says which device nodes each named container is to get, whether
    the host has them, and what stands in the way.
  - With O(prove=true) it proves the grants by C(open(2)), never by existence. A granted node is opened from inside
    the container. A node that was not granted is opened by a child process that joins the container's cgroup, since
    no check may create nodes.
  - Nothing is changed and no node is created.
author: gpuserve contributors (@gpuserve)
options:
  containers:
    description:
      - The containers and what they are to get.
    type: list
    elements: dict
    required: true
    suboptions:
      vmid:
        description: The id of the container; on plain LXC its name.
        type: str
        required: true
      gpus:
        description: V(all), or a list of indices (as C(nvidia-smi) counts), UUIDs and PCI addresses.
        type: raw
        default: all
      mode:
        description: The mode of the nodes inside the container, four octal digits.
        type: str
        default: '0666'
      uid:
        description: The owner inside the container.
        type: int
        default: 0
      gid:
        description: The group inside the container.
        type: int
        default: 0
      state:
        description: With V(absent) the container is to have no node at all, and the proof is that all are refused.
        type: str
        choices: [present, absent]
        default: present
  backend:
    description:
      - V(auto) means V(proxmox) on a host that has C(pct), else V(lxc).
    type: str
    choices: [auto, proxmox, lxc]
    default: auto
  style:
    description:
      - How the nodes are given, see M(gpuserve.sglang.lxc_gpu_config).
    type: str
    choices: [auto, dev, cgroup]
    default: auto
  cgroup:
    description:
      - Which version's key O(style=cgroup) writes. V(auto) asks the host.
    type: str
    choices: [auto, v1, v2]
    default: auto
  gpus:
    description:
      - The indices of the host's GPUs, where the driver cannot be asked. Their minors are taken to be the same numbers.
      - Empty means that the loaded driver is asked (C(/proc/driver/nvidia/gpus)).
    type: list
    elements: int
    default: []
  modeset:
    description:
      - Count C(/dev/nvidia-modeset) among the nodes. CUDA does not need it.
    type: bool
    default: false
  caps:
    description:
      - Count the nodes of C(/dev/nvidia-caps) that control MIG among the nodes.
    type: bool
    default: false
  devices_file:
    description:
      - The kernel's list of majors.
    type: path
    default: /proc/devices
  driver_required:
    description:
      - Whether a driver that is not loaded is a failure. V(false) suits a check before the driver is installed; the
        result then says that it was not checked.
    type: bool
    default: true
  driver_answers:
    description:
      - Whether a loaded driver is to answer open(). V(false) declares a machine that has no driver, where C(ENXIO)
        (permitted, nobody answers) is what a granted node says.
    type: bool
    default: true
  prove:
    description:
      - Open the nodes.
    type: bool
    default: false
  host_part:
    description:
      - What the host itself is to have, so that the nodes come back at each boot.
      - With it RV(settled) tells whether anything is left to do.
    type: dict
    suboptions:
      files:
        description: The files.
        type: list
        elements: dict
        required: true
        suboptions:
          path:
            description: Where the file lies.
            type: path
            required: true
          content:
            description: All of its text.
            type: str
            required: true
          mode:
            description: Its mode, four octal digits.
            type: str
            required: true
      unit:
        description: The unit of systemd that is to be enabled.
        type: str
        required: true
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Check before anything is changed
  gpuserve.sglang.lxc_gpu_info:
    containers:
      - {vmid: "200", gpus: all}
    driver_required: false

- name: Prove what the containers may open
  gpuserve.sglang.lxc_gpu_info:
    containers:
      - {vmid: "200", gpus: [0, 1]}
      - {vmid: "201", gpus: [GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77]}
    prove: true
"""

RETURN = r"""
checks:
  description: What was looked at, as expected, actual, fix and source, each with a status (pass, warn, fail or
    skipped).
  returned: always
  type: list
  elements: dict
  sample:
    - id: lxc_gpu.200.open./dev/nvidia-uvm
      status: pass
      expected: 'open() succeeds by dev2: /dev/nvidia-uvm,mode=0666'
      actual: opens
      fix: ''
      source: 'Linux, devices cgroup: EPERM without a rule; ENXIO where no driver holds the number'
backend:
  description: The backend in effect.
  returned: always
  type: str
style:
  description: The style in effect; empty where it could not be told.
  returned: always
  type: str
containers:
  description:
    - Each container that may be given devices, as M(gpuserve.sglang.lxc_gpu_config) takes them.
  returned: always
  type: list
  elements: dict
  sample:
    - vmid: "200"
      state: present
      devices:
        - {path: /dev/nvidia0, type: c, major: 195, minor: 0, mode: "0666", uid: 0, gid: 0}
nodes:
  description: The nodes that this host has to have.
  returned: always
  type: list
  elements: dict
nodes_wrong:
  description: Those of them that are missing or have other numbers.
  returned: always
  type: list
  elements: str
stopped:
  description: The named containers that do not run.
  returned: always
  type: list
  elements: str
restart:
  description: The containers whose configuration is right and which do not have a granted node yet, so that a restart
    is what they lack.
  returned: always
  type: list
  elements: str
settled:
  description:
    - With O(host_part), whether nothing is left to do. The host has its files, its unit and its nodes, each container
      runs, is configured as M(gpuserve.sglang.lxc_gpu_config) would configure it, and opens what it was given and
      nothing else.
  returned: always
  type: bool
msg:
  description: One sentence with the number of checks of each status; on failure also each check that failed.
  returned: always
  type: str
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts, failing, failure_message, summary
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Extras, LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host_part import HostFile, HostPart
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.judge import Grant
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.survey import Question, survey


def main():
    module = AnsibleModule(
        argument_spec={
            "containers": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "vmid": {"type": "str", "required": True},
                    "gpus": {"type": "raw", "default": "all"},
                    "mode": {"type": "str", "default": "0666"},
                    "uid": {"type": "int", "default": 0},
                    "gid": {"type": "int", "default": 0},
                    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                },
            },
            "backend": {"type": "str", "choices": ["auto", "proxmox", "lxc"], "default": "auto"},
            "style": {"type": "str", "choices": ["auto", "dev", "cgroup"], "default": "auto"},
            "cgroup": {"type": "str", "choices": ["auto", "v1", "v2"], "default": "auto"},
            "gpus": {"type": "list", "elements": "int", "default": []},
            "modeset": {"type": "bool", "default": False},
            "caps": {"type": "bool", "default": False},
            "devices_file": {"type": "path", "default": "/proc/devices"},
            "driver_required": {"type": "bool", "default": True},
            "driver_answers": {"type": "bool", "default": True},
            "prove": {"type": "bool", "default": False},
            "host_part": {
                "type": "dict",
                "options": {
                    "files": {
                        "type": "list",
                        "elements": "dict",
                        "required": True,
                        "options": {
                            "path": {"type": "path", "required": True},
                            "content": {"type": "str", "required": True},
                            "mode": {"type": "str", "required": True},
                        },
                    },
                    "unit": {"type": "str", "required": True},
                },
            },
        },
        supports_check_mode=True,
    )
    params = dict(module.params)
    extras = Extras(modeset=params.pop("modeset"), caps=params.pop("caps"))
    grants = tuple(Grant(**container) for container in params.pop("containers"))
    part = params.pop("host_part")
    if part is not None:
        part = HostPart(tuple(HostFile(**file) for file in part["files"]), part["unit"])
    try:
        found = survey(
            Question(grants=grants, extras=extras, host_part=part, **{**params, "gpus": tuple(params["gpus"])})
        )
    except LxcError as error:
        module.fail_json(msg=str(error), checks=[])
    result = {
        "changed": False,
        "checks": as_dicts(found.checks),
        "backend": found.backend,
        "style": found.style,
        "containers": [
            {
                "vmid": vmid,
                "state": "present" if devices else "absent",
                "devices": [asdict(device) for device in devices],
            }
            for vmid, devices in found.grants.items()
        ],
        "nodes": [asdict(device) for device in found.nodes],
        "nodes_wrong": list(found.nodes_wrong),
        "stopped": list(found.stopped),
        "restart": list(found.restart),
        "settled": found.settled,
    }
    if failing(found.checks):
        module.fail_json(msg=failure_message("lxc_gpu", found.checks), **result)
    module.exit_json(msg=summary("lxc_gpu", found.checks), **result)


if __name__ == "__main__":
    main()
