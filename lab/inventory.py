# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as an Ansible inventory."""

from __future__ import annotations

import shlex
from typing import Any

from lab.instance import Lab


def inventory(lab: Lab) -> dict[str, Any]:
    """What `--list` prints. Groups as in a real inventory; variables that depend on this lab alone."""
    groups = {"proxmox": ["pve"], "sglang": ["ct200"]}
    hostvars = {
        name: {
            "ansible_host": str(address),
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(lab.key),
            "ansible_ssh_common_args": shlex.join(lab.ssh_options),
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        for name, address in lab.hosts.items()
    }
    return {"_meta": {"hostvars": hostvars}, **{name: {"hosts": hosts} for name, hosts in groups.items()}}
