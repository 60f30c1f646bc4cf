#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lxc_gpu_config
short_description: Give NVIDIA device nodes to an LXC container
version_added: 0.1.0
description:
  - Writes the entries that give a container exactly the listed device nodes into its configuration file, and removes
    those that do not belong there any more.
  - Every other line keeps its bytes. That includes comments, order, line ends, foreign C(dev[n]) entries, hooks, and
    the sections of snapshots.
  - Own entries are known by what they are about, not by a marker, since Proxmox VE moves raw C(lxc.*) lines to the end
    of a section and turns comments into the description of the guest.
  - "These are this module's, whoever wrote them: C(dev[n]) and C(lxc.mount.entry) for C(/dev/nvidia*); allow rules that
    stand directly before such a mount entry in this module's form; allow rules for the majors that NVIDIA's modules
    hold now; and, in a section that mounts C(/dev/nvidia*) by hand, allow rules for majors of the kernel's dynamic
    ranges that no driver holds."
  - The file is replaced by rename in its own folder, under Proxmox VE's own lock, so that a power loss leaves the old
    file or the new one.
  - The container is not restarted. RV(restart_required) says whether it needs to be.
author: gpuserve contributors (@gpuserve)
options:
  vmid:
    description:
      - The id of the container. With O(backend=lxc) its name.
      - Exactly one of O(vmid) and O(path) is required.
    type: str
  path:
    description:
      - The configuration file, instead of the one that belongs to O(vmid).
    type: path
  backend:
    description:
      - Whose file it is. V(auto) means V(proxmox) on a host that has C(pct), else V(lxc).
    type: str
    choices: [auto, proxmox, lxc]
    default: auto
  style:
    description:
      - V(dev) writes C(dev[n]) entries, which Proxmox VE resolves when the container starts, so that no major number
        is kept.
      - V(cgroup) writes a pair of C(lxc.cgroup2.devices.allow) (or the key of cgroup v1) and C(lxc.mount.entry) for
        each node.
      - V(auto) is V(dev) on Proxmox VE 8.1 and later, else V(cgroup).
    type: str
    choices: [auto, dev, cgroup]
    default: auto
  cgroup:
    description:
      - Which version's key O(style=cgroup) writes. V(auto) asks the host.
    type: str
    choices: [auto, v1, v2]
    default: auto
  devices:
    description:
      - The nodes that the container is to have, and no others.
      - With O(state=absent) they are not needed.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The node, below C(/dev).
        type: str
        required: true
      type:
        description: The type of the node. NVIDIA has character devices only.
        type: str
        choices: [c]
        default: c
      major:
        description: The major number in force.
        type: int
        required: true
      minor:
        description: The minor number.
        type: int
        required: true
      mode:
        description: The mode inside the container, four octal digits. Only O(style=dev) can set it.
        type: str
        default: '0666'
      uid:
        description: The owner inside the container. Only O(style=dev) can set it.
        type: int
        default: 0
      gid:
        description: The group inside the container. Only O(style=dev) can set it.
        type: int
        default: 0
  devices_file:
    description:
      - The kernel's list of majors, by which rules of earlier boots are known as stale.
    type: path
    default: /proc/devices
  state:
    description:
      - V(present) gives the nodes, V(absent) removes every entry for NVIDIA's nodes.
    type: str
    choices: [present, absent]
    default: present
  backup:
    description:
      - Keep the old file in O(backup_dir) before it is replaced.
    type: bool
    default: true
  backup_dir:
    description:
      - The folder for old files. It lies outside C(/etc/pve), which is replicated to all nodes and small.
    type: path
    default: /var/backups/lxc_gpu_config
attributes:
  check_mode:
    support: full
    description: Says what would change and changes nothing.
  diff_mode:
    support: full
    description: Shows the whole file before and after.
"""

EXAMPLES = r"""
- name: Give the first GPU to container 200
  gpuserve.sglang.lxc_gpu_config:
    vmid: "200"
    devices:
      - {path: /dev/nvidia0, major: 195, minor: 0}
      - {path: /dev/nvidiactl, major: 195, minor: 255}
      - {path: /dev/nvidia-uvm, major: 511, minor: 0}
      - {path: /dev/nvidia-uvm-tools, major: 511, minor: 1}

- name: Take all GPUs from container 200
  gpuserve.sglang.lxc_gpu_config:
    vmid: "200"
    state: absent
"""

RETURN = r"""
path:
  description: The configuration file.
  returned: success
  type: str
  sample: /etc/pve/lxc/200.conf
style:
  description: The style in effect.
  returned: success
  type: str
  sample: dev
added:
  description: The settings that came, as written.
  returned: success
  type: list
  elements: str
  sample: ['dev0: /dev/nvidia0,mode=0666']
removed:
  description: The settings that went, as they were.
  returned: success
  type: list
  elements: str
  sample: ['lxc.cgroup2.devices.allow: c 511:* rwm']
restart_required:
  description:
    - Whether the container runs and has to be restarted for the change to take effect.
    - It speaks of this change only. Whether an earlier one is in force, M(gpuserve.sglang.lxc_gpu_info) proves by
      open().
  returned: success
  type: bool
backup_file:
  description: Where the old file was kept.
  returned: when the file was changed and O(backup=true)
  type: str
  sample: /var/backups/lxc_gpu_config/lxc-200.conf.20261129T120000
msg:
  description: One sentence on what was done.
  returned: always
  type: str
"""

import contextlib

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.config import (
    CGROUP,
    PROXMOX,
    cgroup_version,
    edit,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import Device, LxcError, read_devices
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.files import (
    back_up,
    config_lock,
    printable,
    read_config,
    write_config,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.host import (
    choose_style,
    config_path,
    detect_backend,
    guest_state,
)


def main():
    module = AnsibleModule(
        argument_spec={
            "vmid": {"type": "str"},
            "path": {"type": "path"},
            "backend": {"type": "str", "choices": ["auto", "proxmox", "lxc"], "default": "auto"},
            "style": {"type": "str", "choices": ["auto", "dev", "cgroup"], "default": "auto"},
            "cgroup": {"type": "str", "choices": ["auto", "v1", "v2"], "default": "auto"},
            "devices": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "type": {"type": "str", "choices": ["c"], "default": "c"},
                    "major": {"type": "int", "required": True},
                    "minor": {"type": "int", "required": True},
                    "mode": {"type": "str", "default": "0666"},
                    "uid": {"type": "int", "default": 0},
                    "gid": {"type": "int", "default": 0},
                },
            },
            "devices_file": {"type": "path", "default": "/proc/devices"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "backup": {"type": "bool", "default": True},
            "backup_dir": {"type": "path", "default": "/var/backups/lxc_gpu_config"},
        },
        required_one_of=[("vmid", "path")],
        mutually_exclusive=[("vmid", "path")],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**apply(module.params, check_mode=module.check_mode))
    except LxcError as error:
        module.fail_json(msg=str(error))


def apply(params, check_mode):
    backend = detect_backend() if params["backend"] == "auto" else params["backend"]
    absent = params["state"] == "absent"
    # With no device left there is nothing to write in either style, and no version to ask for.
    style = CGROUP if absent else choose_style(params["style"], backend)
    cgroup = cgroup_version() if params["cgroup"] == "auto" else params["cgroup"]
    vmid, path = params["vmid"], params["path"] or config_path(params["vmid"], backend)
    devices = [] if absent else [Device(**device) for device in params["devices"]]
    majors = read_devices(params["devices_file"])
    locked = vmid and backend == PROXMOX and not check_mode
    with config_lock(vmid) if locked else contextlib.nullcontext():
        before = read_config(path)
        change = edit(before, devices, backend=backend, style=style, cgroup=cgroup, majors=majors)
        result = {
            "changed": change.text != before,
            "path": path,
            "style": style,
            "added": list(change.added),
            "removed": list(change.removed),
            "restart_required": False,
            "diff": {
                "before": printable(before),
                "after": printable(change.text),
                "before_header": path,
                "after_header": path,
            },
            "msg": f"{path}: {len(change.added)} settings added, {len(change.removed)} removed",
        }
        if not result["changed"]:
            return result
        if not check_mode:
            if params["backup"]:
                result["backup_file"] = back_up(path, before, params["backup_dir"])
            write_config(path, change.text)
    if vmid:
        result["restart_required"] = guest_state(vmid).running
    return result


if __name__ == "__main__":
    main()
