#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_info
short_description: Tells what an installed SGLang can do and whether its surroundings fit
version_added: 0.1.0
description:
  - Reads the installed files without importing them, so that it needs no GPU and no working engine.
  - Checks the installed packages against the engine's own metadata, and compressed_tensors against what the engine's
    source names of it.
author:
  - gpuserve contributors (@gpuserve)
options:
  venv:
    description:
      - The virtual environment SGLang is installed in.
    type: path
  site_packages:
    description:
      - The folder that holds the package C(sglang) and its metadata folder. One with unpacked wheels will do.
    type: path
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
  - gpuserve.sglang.judging
"""

EXAMPLES = r"""
- name: Read the engine
  gpuserve.sglang.sglang_info:
    venv: /opt/sglang/venv
  register: engine

- name: Read an engine that is not installed yet, from unpacked wheels
  gpuserve.sglang.sglang_info:
    site_packages: /var/tmp/wheels
    fail_on: never
"""

RETURN = r"""
version:
  description: The version of SGLang.
  type: str
  returned: when SGLang was found
  sample: 0.5.20
requires_python:
  description: The Python versions it is made for.
  type: str
  returned: when SGLang was found
  sample: ">=3.10"
layout:
  description: How the source declares its speculative algorithms (IntEnum, registry, Enum, Enum with plugins).
  type: str
  returned: when SGLang was found
algorithms:
  description: The names that C(--speculative-algorithm) takes.
  type: list
  elements: str
  returned: when SGLang was found
flags:
  description:
    - The flags of speculative decoding. Each has C(default), C(choices) (null for any value), C(choices_text) (the
      expression, where choices are made at run time), C(alias_of) and C(source).
  type: dict
  returned: when SGLang was found
base_architectures:
  description:
    - The registered base model classes. Each has C(source), and in C(eagle3), C(dflash) and C(embed_head) where it gets
      the methods by which it hands its hidden states and embeddings to a drafter (empty where it cannot).
  type: dict
  returned: when SGLang was found
draft_architectures:
  description: The registered drafter classes, described in the same way.
  type: dict
  returned: when SGLang was found
requires:
  description: The packages it requires on this machine, each with C(requirement), C(installed) and C(satisfied).
  type: list
  elements: dict
  returned: when SGLang was found
compressed_tensors:
  description: The version specifier of compressed-tensors that this engine works with here, empty for any.
  type: str
  returned: when SGLang was found
  sample: "==0.18.0"
checks:
  description: The checks, each with id, status, expected, actual, fix and source.
  type: list
  elements: dict
  returned: when SGLang was found
summary:
  description: One sentence with the number of checks of each status.
  type: str
  returned: when SGLang was found
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts, failing, failure_message, summary
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.installation import survey
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.packages import (
    EngineMissingError,
    site_packages_of,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import read_engine


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "venv": {"type": "path"},
            "site_packages": {"type": "path"},
            "fail_on": {"type": "str", "choices": ["fail", "warn", "never"], "default": "fail"},
        },
        mutually_exclusive=[("venv", "site_packages")],
        required_one_of=[("venv", "site_packages")],
        supports_check_mode=True,
    )
    venv, folder, fail_on = (module.params[name] for name in ("venv", "site_packages", "fail_on"))
    try:
        engine = read_engine(site_packages_of(Path(venv)) if venv else Path(folder))
        found = survey(engine)
    except EngineMissingError as error:
        module.fail_json(msg=str(error))
    subject, checks = f"SGLang {engine.version}", found.checks()
    result = {
        "changed": False,
        **found.as_data(),
        "checks": as_dicts(checks),
        "summary": summary(subject, checks),
    }
    if failing(checks, fail_on):
        module.fail_json(msg=failure_message(subject, checks, fail_on), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
