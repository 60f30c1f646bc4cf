#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: hf_snapshot_info
short_description: Look where models are, what would have to be brought, and whether there is room
version_added: 0.1.0
description:
  - Tells of several models at once what M(gpuserve.sglang.hf_snapshot) would do, and where each can be read now.
  - What their manifests answer needs no network. The Hub is asked for the others, never for a file of weights.
  - Another host that has the files is not asked.
author:
  - gpuserve contributors (@gpuserve)
options:
  models:
    description: The models, as M(gpuserve.sglang.hf_snapshot) takes them one by one.
    type: list
    elements: dict
    required: true
    suboptions:
      dest:
        description: The folder that will hold the model.
        type: path
        required: true
      state:
        description: Whether the model is to be there.
        type: str
        choices: [present, absent]
        default: present
      repo_id:
        description: The repository on the Hub.
        type: str
      revision:
        description: The commit. A branch or a tag needs O(models[].allow_moving).
        type: str
      allow_moving:
        description: Accept a branch or a tag, or no revision at all.
        type: bool
        default: false
      source:
        description: A local folder that holds the model.
        type: path
      allow_patterns:
        description: Only the files that match one of these shell patterns.
        type: list
        elements: str
        default: []
      ignore_patterns:
        description: Not the files that match one of these shell patterns.
        type: list
        elements: str
        default: []
      prune:
        description: Whether every other file in O(models[].dest) is to be removed.
        type: bool
        default: false
  endpoint:
    description: The Hub, or a mirror of it. E(HF_ENDPOINT) or the public Hub by default.
    type: str
  token:
    description: A token for gated repositories.
    type: str
  token_file:
    description: A file on the host that holds the token, so that it is in no inventory.
    type: path
  timeout:
    description: How long a question to the Hub may take, in seconds.
    type: int
    default: 30
  reserve_bytes:
    description: How much space has to stay free, in bytes.
    type: int
    default: 1073741824
  name:
    description: Where the operator named the models, for messages.
    type: str
    default: models
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: Look where base model and drafter are
  gpuserve.sglang.hf_snapshot_info:
    models:
      - repo_id: moonshotai/Kimi-K2.6
        allow_moving: true
        dest: /srv/models/moonshotai/Kimi-K2.6
      - repo_id: lightseekorg/kimi-k2.6-eagle3
        allow_moving: true
        dest: /srv/models/lightseekorg/kimi-k2.6-eagle3
"""

RETURN = r"""
models:
  description: What was found, in the order of O(models).
  returned: always
  type: list
  elements: dict
  contains:
    model:
      description: The folder that will hold the model, as it was named.
      type: str
    in_place:
      description: Whether nothing is left to do.
      type: bool
    checks:
      description: Whether there is room, as C(id), C(status), C(expected), C(actual), C(fix), C(source).
      type: list
      elements: dict
    code:
      description:
        - Whether the code that the model brings is that of a pinned commit, in the form of a check.
        - It counts only for an engine that runs that code (C(trust_remote_code)).
      type: dict
    commit:
      description: The commit of the files. Null for a local source of which none is known.
      type: str
    location:
      description: Where the model can be read now. A folder, or repository@commit.
      type: str
    paste:
      description: The line for the inventory that pins the commit, when it was not pinned. Empty otherwise.
      type: str
    files:
      description: How many files the model has.
      type: int
    missing:
      description: The files that have to be brought.
      type: list
      elements: str
    missing_bytes:
      description: Their size together, less what is there of them, in bytes.
      type: int
    unproven:
      description: The files that are there and would have to be hashed first.
      type: list
      elements: str
    removed:
      description: The files that would be removed.
      type: list
      elements: str
    others:
      description: The files in the folder that do not belong to the model and would be left alone.
      type: list
      elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.question import QUESTION
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import told


def main() -> None:
    module = AnsibleModule(argument_spec=QUESTION.arguments, **QUESTION.rules, supports_check_mode=True)
    result = told(QUESTION.answer, module.params)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
