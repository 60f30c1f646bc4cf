#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: hf_snapshot
short_description: Hold the files of a model at an exact revision in a folder
version_added: 0.1.0
description:
  - Brings the files of a model from a Hub repository (by C(huggingface_hub) of the engine's venv) or a local folder.
  - A manifest beside the files names their commit and every file with its size, so that a later look needs no network.
  - In check mode nothing is written, and RV(location) tells where the model can be read now.
author:
  - gpuserve contributors (@gpuserve)
options:
  dest:
    description: The folder that will hold the model.
    type: path
    required: true
  repo_id:
    description: The repository on the Hub.
    type: str
  revision:
    description: The commit. A branch or a tag needs O(allow_moving).
    type: str
  allow_moving:
    description:
      - Accept a branch or a tag, or no revision at all. It is resolved to a commit once, on the first run.
      - The commit is returned, so that it can be written into the inventory.
    type: bool
    default: false
  source:
    description: A local folder that holds the model, for example on NFS.
    type: path
  endpoint:
    description: The Hub, or a mirror of it. E(HF_ENDPOINT) or the public Hub by default.
    type: str
  token:
    description: A token for gated repositories.
    type: str
  python:
    description: A Python that has C(huggingface_hub), needed for a download only.
    type: path
  timeout:
    description: How long a question to the Hub may take, in seconds.
    type: int
    default: 30
  name:
    description: Where the operator named this model, for messages.
    type: str
    default: hf_snapshot
attributes:
  check_mode:
    support: full
    description: Says what would be brought and how much.
  diff_mode:
    support: none
    description: A model has no text to compare.
"""

EXAMPLES = r"""
- name: Hold a drafter at a commit
  gpuserve.sglang.hf_snapshot:
    repo_id: lightseekorg/kimi-k2.6-eagle3
    allow_moving: true
    dest: /srv/models/lightseekorg/kimi-k2.6-eagle3
    python: /opt/sglang/engine-0.5.20/bin/python

- name: Hold a model that is on a shared disk
  gpuserve.sglang.hf_snapshot:
    source: /mnt/models/tiny-llama
    dest: /srv/models/tiny-llama
"""

RETURN = r"""
model:
  description: The folder that holds the model.
  returned: always
  type: str
commit:
  description: The commit of the files. Null for a local source.
  returned: always
  type: str
location:
  description: Where the model can be read after this run, or in check mode now. A folder, or repository@commit.
  returned: always
  type: str
paste:
  description: The line for the inventory that pins the commit, when it was not pinned. Empty otherwise.
  returned: always
  type: str
files:
  description: How many files the model has.
  returned: always
  type: int
missing:
  description: The files that had to be brought.
  returned: always
  type: list
  elements: str
missing_bytes:
  description: Their size together, in bytes.
  returned: always
  type: int
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import repository, snapshot


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "repo_id": {"type": "str"},
            "revision": {"type": "str"},
            "allow_moving": {"type": "bool", "default": False},
            "source": {"type": "path"},
            "endpoint": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "python": {"type": "path"},
            "timeout": {"type": "int", "default": 30},
            "name": {"type": "str", "default": "hf_snapshot"},
        },
        required_one_of=[("repo_id", "source")],
        mutually_exclusive=[("repo_id", "source")],
        supports_check_mode=True,
    )
    params = module.params
    name = params["name"]
    pinned = repository.is_commit(params["revision"] or "")
    if params["repo_id"] and not pinned and not params["allow_moving"]:
        module.fail_json(
            msg=f"{name}: expected a commit of 40 hexadecimal digits as revision; found {params['revision']!r}, which "
            "can move; fix: give the commit, or set allow_moving: true once to have it resolved and shown"
        )
    request = snapshot.Request(
        dest=Path(params["dest"]),
        repo_id=params["repo_id"],
        revision=params["revision"],
        source=Path(params["source"]) if params["source"] else None,
        endpoint=params["endpoint"],
        token=params["token"],
        timeout=params["timeout"],
    )
    try:
        planned = snapshot.plan(request)
        to_do = not planned.in_place
        if to_do and not module.check_mode:
            snapshot.bring(request, planned, params["python"])
    except (snapshot.SnapshotError, repository.HubError, OSError) as error:
        module.fail_json(msg=f"{name}: {error}")
    module.exit_json(
        changed=to_do,
        model=str(request.dest),
        commit=planned.commit,
        location=planned.location if module.check_mode else str(request.dest),
        paste="" if pinned or planned.commit is None else f"to pin {name}, write into it: revision: {planned.commit}",
        files=len(planned.files),
        missing=list(planned.missing),
        missing_bytes=planned.missing_bytes,
    )


if __name__ == "__main__":
    main()
