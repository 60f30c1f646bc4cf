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
  - An action plugin does it with the host's shell alone. No Python is needed there.
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
attributes:
  action:
    description: Is an action plugin alone.
    support: full
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
