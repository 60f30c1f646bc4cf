#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_drain
short_description: Let a server end the requests that run, and end
version_added: 0.1.0
description:
  - Sends SIGINT to the main process of the unit. The server then takes no new connection, ends what runs, and exits.
  - Waits for that. A server that is not done after O(timeout) goes on; whoever stops the unit then cuts its requests.
  - A unit that does not run is left as it is.
author:
  - gpuserve contributors (@gpuserve)
options:
  unit:
    description: The systemd unit of the server.
    type: str
    required: true
  timeout:
    description: How long the requests may take, in seconds.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Tells whether there is a server to drain.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: End what runs
  gpuserve.sglang.sglang_drain:
    unit: sglang@main.service
    timeout: 900
"""

RETURN = r"""
drained:
  description: Whether the server ended by itself in time.
  returned: success
  type: bool
seconds:
  description: How long that took.
  returned: success
  type: float
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import drain


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str", "required": True},
            "timeout": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    name, limit = module.params["unit"], module.params["timeout"]
    try:
        if not unit.state(name).main_pid:
            module.exit_json(changed=False, drained=True, seconds=0.0)
        if module.check_mode:
            module.exit_json(changed=True, drained=True, seconds=0.0)
        drained, seconds = drain.drain(name, limit)
    except unit.UnitError as error:
        module.fail_json(msg=str(error))
    if not drained:
        module.warn(f"{name} still answers requests after {limit} s; a restart cuts them now")
    module.exit_json(changed=True, drained=drained, seconds=round(seconds, 1))


if __name__ == "__main__":
    main()
