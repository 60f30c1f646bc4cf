#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_release
short_description: Hash everything that an engine is started from
version_added: 0.1.0
description:
  - Reads the records beside the venv and the models, and puts them under one hash with arguments and environment.
  - Another hash means that a running engine is not the one that is asked for. Changes nothing.
author:
  - gpuserve contributors (@gpuserve)
options:
  args:
    description: The arguments of the engine.
    type: list
    elements: str
    required: true
  environment_hash:
    description: A hash of the environment of the engine, which itself may hold secrets.
    type: str
    default: ""
  venv:
    description: The venv of the engine.
    type: path
    required: true
  models:
    description: The folders of the base model and of the drafter.
    type: list
    elements: path
    default: []
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Hash what the engine is started from
  gpuserve.sglang.sglang_release:
    args: [--model-path, /srv/models/tiny-llama]
    venv: /opt/sglang/engine-0.5.20
    models: [/srv/models/tiny-llama]
"""

RETURN = r"""
release:
  description: The hash.
  returned: always
  type: str
parts:
  description: The hash of each part. Null for one that is not there or was not made by this collection.
  returned: always
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import release


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "args": {"type": "list", "elements": "str", "required": True},
            "environment_hash": {"type": "str", "default": ""},
            "venv": {"type": "path", "required": True},
            "models": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    models = [Path(model) for model in params["models"]]
    told = release.read(params["args"], params["environment_hash"], Path(params["venv"]), models)
    module.exit_json(changed=False, release=told.hash, parts=dict(told.parts))


if __name__ == "__main__":
    main()
