#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_diagnose
short_description: Tell why an engine ended, out of its journal or a log file
version_added: 0.1.0
description:
  - Compares what the engine wrote with a catalogue of known failures, and tells the cause, the fix and where the rule
    comes from. docs/failures.md lists the catalogue.
  - The earliest cause counts. What the engine itself advises is not believed, since it advises the same after different
    failures.
  - Of a failure that is not in the catalogue it tells the first exception, where it was raised, and the last lines
    without noise.
  - API keys and tokens in the log are left out of the result.
author:
  - gpuserve contributors (@gpuserve)
options:
  unit:
    description: The systemd unit whose journal is read. Either this or O(log).
    type: str
  run:
    description: Which run of O(unit) is meant. 0 is the last one, 1 the one before it, and so on.
    type: int
    default: 0
  log:
    description:
      - A file on the host instead of a journal, with or without the times and names that C(journalctl) or Docker
        Compose put before each line. Of a large file the end is read.
    type: path
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Tell why the engine ended
  gpuserve.sglang.sglang_diagnose:
    unit: sglang@main.service

- name: Tell why it was started again last night
  gpuserve.sglang.sglang_diagnose:
    unit: sglang@main.service
    run: 1

# Alone: ansible localhost -m gpuserve.sglang.sglang_diagnose -a log=/tmp/sglang.log
- name: Read a log that somebody sent
  gpuserve.sglang.sglang_diagnose:
    log: /tmp/sglang.log
"""

RETURN = r"""
diagnosis:
  description: What was found.
  returned: success
  type: dict
  contains:
    finding:
      description: The known failure, null when there is none.
      type: dict
      contains:
        id:
          description: Its stable name.
          type: str
        kind:
          description:
            - V(cause) says why, V(general) only what happened, V(hint) what is wrong with a server that serves, V(stop)
              that it was asked to end.
          type: str
        cause:
          description: Why the engine ended.
          type: str
        fix:
          description: What to do.
          type: str
        source:
          description: Where the rule comes from.
          type: str
        versions:
          description: The versions of SGLang it is about.
          type: str
        number:
          description: The line of the log.
          type: int
        seen:
          description: The text of that line.
          type: str
    others:
      description: Other known failures in the log, which the first one explains or outranks.
      type: list
      elements: dict
    exception:
      description: The first exception, with C(text), C(where) and C(number), its line. Null when there is none.
      type: dict
    last_lines:
      description: The end of the log without noise.
      type: list
      elements: str
    unreadable:
      description: How many lines were no text.
      type: int
summary:
  description: The same for a reader, in lines.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis import log, matcher, sources


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str"},
            "run": {"type": "int", "default": 0},
            "log": {"type": "path"},
        },
        mutually_exclusive=[("unit", "log")],
        required_one_of=[("unit", "log")],
        supports_check_mode=True,
    )
    name, path = module.params["unit"], module.params["log"]
    try:
        read = log.read(*log.tail(path)) if path else sources.of_unit(name, module.params["run"])
    except OSError as error:
        why = error.strerror or error
        module.fail_json(
            msg=f"the log {path} cannot be read: {why}; correct the path, or become a user who may read it"
        )
    except unit.UnitError as error:
        module.fail_json(msg=str(error))
    found = matcher.diagnose(read)
    module.exit_json(changed=False, diagnosis=matcher.as_dict(found), summary=found.story())


if __name__ == "__main__":
    main()
