#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_ready
short_description: Wait until a server is ready, and show how far it is
version_added: 0.1.0
description:
  - Waits as long as needed and not longer. While it waits, the playbook's output says every few seconds which host is
    in which phase, with shards, percentage and time left where the engine tells them.
  - The phases are V(importing), V(starting the workers), V(loading weights), V(allocating the KV cache), V(capturing
    graphs), V(warming up) and V(ready). They come from the journal of O(unit); without a unit only the answer is waited
    for.
  - Ends at once when the unit ends or systemd starts it again, and then tells the cause as
    M(gpuserve.sglang.sglang_diagnose) does.
  - An answer counts only when a process of the unit listens there. Another server in its place ends the wait, before
    the unit finds its port taken after it has loaded everything.
  - A lost connection to the host is waited for, since the start goes on there.
author:
  - gpuserve contributors (@gpuserve)
options:
  url:
    description: Where the server listens, as seen from the host that it runs on. No proxy before it.
    type: str
    required: true
  unit:
    description: Its systemd unit. Without it only O(timeout) ends the wait.
    type: str
  api_key:
    description: The key that the server asks for.
    type: str
  timeout:
    description: How long the server may take, in seconds.
    type: int
    default: 1800
  quiet:
    description: Do not show how the start goes.
    type: bool
    default: false
  look:
    description:
      - How long one look at the host lasts, in seconds. A line is shown after each.
      - With the host's answer that must stay below the silence that a reader of the output bears.
    type: int
    default: 8
  run:
    description: The run of the unit that earlier looks saw. The action plugin of this module sets it.
    type: str
    default: ""
  restarts:
    description: How often systemd had started the unit again. The action plugin of this module sets it.
    type: int
  waited:
    description: How long earlier looks have taken, in seconds. The action plugin of this module sets it.
    type: float
    default: 0
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Wait for the server
  gpuserve.sglang.sglang_ready:
    url: http://127.0.0.1:30000
    unit: sglang@main.service
    timeout: 3600
"""

RETURN = r"""
ready:
  description: Whether the server answers.
  returned: success
  type: bool
ready_after:
  description: How long it took since the start of its process, in seconds.
  returned: success
  type: float
phase:
  description: The phase of the start, null without O(unit).
  returned: success
  type: str
percent:
  description: How much of the phase is done, null where the engine does not tell.
  returned: success
  type: int
left:
  description: How long the phase will still take by the engine's own guess, in seconds. Null where it does not tell.
  returned: success
  type: int
status:
  description: The line that is shown.
  returned: success
  type: str
seen:
  description: What the next look has to know, as the options O(run), O(restarts) and O(waited).
  returned: success
  type: dict
diagnosis:
  description: Why the unit ended, as M(gpuserve.sglang.sglang_diagnose) returns it. Null without O(unit).
  returned: when it did not become ready
  type: dict
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import ready, unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis import matcher
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "unit": {"type": "str"},
            "api_key": {"type": "str", "no_log": True},
            "timeout": {"type": "int", "default": 1800},
            # For the action plugin, which reads it from the invocation.
            "quiet": {"type": "bool", "default": False},
            "look": {"type": "int", "default": 8},
            "run": {"type": "str", "default": ""},
            "restarts": {"type": "int"},
            "waited": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    params = module.params
    seen = ready.Seen(params["run"], params["restarts"], params["waited"])
    server = api.Server(params["url"], params["api_key"])
    try:
        looked = ready.look(server, params["unit"], seen, params["look"], params["timeout"])
    except ready.NotReady as error:
        diagnosis = None if error.diagnosis is None else matcher.as_dict(error.diagnosis)
        module.fail_json(msg=str(error), diagnosis=diagnosis)
    except unit.UnitError as error:
        module.fail_json(msg=str(error))
    progress = looked.progress
    module.exit_json(
        changed=False,
        ready=looked.ready,
        ready_after=round(looked.since_start, 1),
        phase=None if progress is None else progress.phase,
        percent=None if progress is None else progress.percent,
        left=None if progress is None else progress.left_s,
        status=looked.sentence(),
        seen=asdict(looked.seen),
    )


if __name__ == "__main__":
    main()
