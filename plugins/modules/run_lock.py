#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: run_lock
short_description: Keep a second run away from a host while the first one works on it
version_added: 0.1.0
description:
  - Writes who works on the host into a file that a reboot removes. A second run ends with the name of the holder.
  - A holder on the same controller whose process is gone is replaced. Of one on another controller that is not known,
    so O(break_it) is for that.
  - The file is no state of the host, so that nothing is ever reported as changed.
author:
  - gpuserve contributors (@gpuserve)
options:
  state:
    description: V(present) takes the lock or finds it taken by this run. V(absent) gives back what this run holds.
    type: str
    choices: [present, absent]
    default: present
  file:
    description: The file.
    type: path
    default: /run/gpuserve-sglang.lock
  break_it:
    description: Take the lock from whoever holds it.
    type: bool
    default: false
  holder:
    description: Who takes it. The action plugin of this module sets it.
    type: dict
    default: {}
  instead_of:
    description: The run that is known to be gone, whose lock is taken over. The action plugin of this module sets it.
    type: str
    default: ""
attributes:
  check_mode:
    description: Takes nothing, and ends with an error as well when another run holds the lock.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Keep other runs away
  gpuserve.sglang.run_lock:

- name: Let them in again
  gpuserve.sglang.run_lock:
    state: absent
"""

RETURN = r"""
held_by:
  description: Who holds the lock, null when nobody does.
  returned: always
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import run_lock


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "file": {"type": "path", "default": "/run/gpuserve-sglang.lock"},
            "break_it": {"type": "bool", "default": False},
            "holder": {"type": "dict", "default": {}},
            "instead_of": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    params = module.params
    lock = run_lock.Lock(Path(params["file"]))
    mine = run_lock.Holder.read(params["holder"])
    if mine is None:
        module.fail_json(msg="holder: expected what the action plugin of this module gives", held_by=None)
    try:
        if params["state"] == "absent":
            if not module.check_mode:
                lock.give_back(mine)
            module.exit_json(changed=False, held_by=None)
        other = lock.take(mine, params["instead_of"], params["break_it"], module.check_mode)
    except OSError as error:
        module.fail_json(msg=f"{params['file']}: {error.strerror}; run as root", held_by=None)
    if other is not None:
        module.fail_json(msg=other.sentence(), held_by=other.as_dict())
    module.exit_json(changed=False, held_by=mine.as_dict())


if __name__ == "__main__":
    main()
