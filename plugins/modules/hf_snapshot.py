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
  - Brings the files of a model from a Hub repository (by C(huggingface_hub) of the engine's venv), a local folder or
    another host, proves each by its hash, and puts them in place together.
  - A manifest beside the files names their commit and every file with its size, time and SHA-256, so that a later look
    needs no network and no more than a stat of each file.
  - What was begun is continued, after a lost connection, a kill or a reboot. While bytes come, the playbook's output
    tells how many, how fast and for how long.
  - In check mode nothing is written. M(gpuserve.sglang.hf_snapshot_info) tells more of what would be, and of several
    models at once.
author:
  - gpuserve contributors (@gpuserve)
options:
  dest:
    description: The folder that will hold the model.
    type: path
    required: true
  state:
    description:
      - V(absent) removes the files that the manifest names, with all that this module keeps beside them, and the
        folder when nothing else is in it.
    type: str
    choices: [present, absent]
    default: present
  repo_id:
    description: The repository on the Hub.
    type: str
  revision:
    description: The commit. A branch or a tag needs O(allow_moving).
    type: str
  allow_moving:
    description:
      - Accept a branch or a tag, or no revision at all. It is resolved to a commit once, on the first run, which stays.
      - The commit is returned, so that it can be written into the inventory.
    type: bool
    default: false
  source:
    description:
      - A local folder that holds the model, for example on NFS.
      - With O(repo_id) its files must be those of the repository.
    type: path
  seed:
    description:
      - Another host's folder that this module filled with the same repository, as C(user@host:/folder).
      - Its files come by rsync over ssh. In check mode it is not asked, but the Hub.
    type: str
  seed_key:
    description: The file of the private ssh key for O(seed) on this host. That of the user by default.
    type: path
  endpoint:
    description: The Hub, or a mirror of it. E(HF_ENDPOINT) or the public Hub by default.
    type: str
  token:
    description: A token for gated repositories.
    type: str
  token_file:
    description: A file on the host that holds the token, so that it is in no inventory.
    type: path
  allow_patterns:
    description: Bring only the files that match one of these shell patterns.
    type: list
    elements: str
    default: []
  ignore_patterns:
    description: Leave out the files that match one of these shell patterns.
    type: list
    elements: str
    default: []
  verify:
    description:
      - How closely files that are there already are looked at. What arrives is always hashed.
      - V(size) compares size and time of change with the manifest, and hashes what was touched.
      - V(sha256) hashes every file, on all CPUs.
      - V(none) believes the manifest.
    type: str
    choices: [size, sha256, none]
    default: size
  prune:
    description:
      - Remove every other file in O(dest). With O(state=absent) the folder goes whole.
    type: bool
    default: false
  python:
    description: A Python that has C(huggingface_hub), needed for a download only.
    type: path
  xet:
    description:
      - Use the Hub's Xet store where the server offers it and C(hf_xet) is installed.
      - After two stalls plain HTTP is used.
      - A file that was interrupted is continued over plain HTTP in any case.
    type: bool
    default: true
  max_workers:
    description: How many files come at once.
    type: int
    default: 8
  timeout:
    description: How long a question to the Hub may take, in seconds.
    type: int
    default: 30
  stall_timeout:
    description:
      - When no byte comes for so many seconds the transfer is begun again. After five times as long it is given up.
    type: int
    default: 60
  reserve_bytes:
    description: How much space has to stay free, in bytes.
    type: int
    default: 1073741824
  quiet:
    description: Do not show how a transfer goes.
    type: bool
    default: false
  background:
    description:
      - Let a transfer go on by itself and return at once with RV(job).
      - The action plugin of this module sets it, waits and shows how it goes; a playbook has no use for it.
    type: bool
    default: false
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

- name: Hold a model that another host has
  gpuserve.sglang.hf_snapshot:
    repo_id: lightseekorg/kimi-k2.6-eagle3
    allow_moving: true
    seed: root@gpu1:/srv/models/lightseekorg/kimi-k2.6-eagle3
    dest: /srv/models/lightseekorg/kimi-k2.6-eagle3

- name: Read every byte, and repair what is broken
  gpuserve.sglang.hf_snapshot:
    source: /mnt/models/tiny-llama
    dest: /srv/models/tiny-llama
    verify: sha256
"""

RETURN = r"""
model:
  description: The folder that holds the model.
  returned: always
  type: str
commit:
  description: The commit of the files. Null for a local source of which none is known.
  returned: when O(state=present)
  type: str
location:
  description: Where the model can be read after this run, or in check mode now. A folder, or repository@commit.
  returned: when O(state=present)
  type: str
paste:
  description: The line for the inventory that pins the commit, when it was not pinned. Empty otherwise.
  returned: when O(state=present)
  type: str
files:
  description: How many files the model has.
  returned: when O(state=present)
  type: int
missing:
  description: The files that had to be brought.
  returned: when O(state=present)
  type: list
  elements: str
missing_bytes:
  description: Their size together, less what was there of them, in bytes.
  returned: when O(state=present)
  type: int
unproven:
  description: In check mode, the files that are there and would have to be hashed first.
  returned: when O(state=present)
  type: list
  elements: str
removed:
  description: The files that were removed, or in check mode would be.
  returned: always
  type: list
  elements: str
others:
  description: The files in the folder that do not belong to the model and were left alone.
  returned: always
  type: list
  elements: str
job:
  description: The transfer that goes on by itself.
  returned: when O(background=true) and a transfer is needed
  type: dict
  contains:
    status:
      description: The file that tells how it goes, and which process it is.
      type: str
    joined:
      description: Whether an earlier run had begun it.
      type: bool
"""

import socket
from dataclasses import replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import job, look, question, snapshot
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Busy, Lock
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Report


def take_lock(module: AnsibleModule, request: snapshot.Request, what: str) -> Lock:
    """The lock on the folder; ends the module when another run has it."""
    try:
        snapshot.make_work(request)
        lock = Lock(request.work, what)
        # What it tells is over.
        job.Status(request.work).path.unlink(missing_ok=True)
        return lock
    except Busy as busy:
        owner = busy.owner
        status = job.Status(request.work).path
        same = owner is not None and (owner.what, owner.host) == (what, socket.gethostname())
        if module.params["background"] and same and status.exists():
            module.exit_json(changed=True, job={"status": str(status), "joined": True})
        module.fail_json(
            msg=f"{module.params['name']}: {request.dest} is taken by {owner or 'another run'}; "
            "fix: wait for it, or end it"
        )


def present(module: AnsibleModule, request: snapshot.Request) -> None:
    """Hold the model."""
    name = module.params["name"]
    if module.check_mode:
        module.exit_json(**look.told(request, look.plan(request), name))
    planned = snapshot.plan(request)
    if planned.in_place:
        module.exit_json(**look.told(request, planned, name))
    lock = take_lock(module, request, f"{request.origin}@{planned.commit}" if planned.commit else request.origin)
    # Whoever had the lock before may have brought it all.
    planned = snapshot.plan(request) if snapshot.moved_on(request, planned) else planned
    if planned.in_place:
        module.exit_json(**look.told(request, planned, name))

    def work(report: Report) -> dict[str, Any]:
        try:
            return look.told(request, snapshot.bring(request, planned, lock, report), name)
        except look.ERRORS as error:
            return {"failed": True, "msg": f"{name}: {error}"}

    if module.params["background"]:
        status = job.Status(request.work)
        job.start(status, work, lock)
        module.exit_json(changed=True, job={"status": str(status.path), "joined": False})
    result = work(lambda progress: None)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def absent(module: AnsibleModule, request: snapshot.Request) -> None:
    """Hold the model's absence."""
    removal = snapshot.plan_removal(request.dest)
    gone = removal.files + (removal.others if request.prune else ())
    changed = removal.there or bool(gone)
    if changed and not module.check_mode:
        lock = take_lock(module, request, f"nothing: {request.dest} is to go")
        snapshot.remove(request.dest, removal, request.prune)
        lock.release()
    module.exit_json(
        changed=changed,
        model=str(request.dest),
        removed=list(gone),
        others=[] if request.prune else list(removal.others),
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **question.MODEL,
            **question.HUB,
            "seed": {"type": "str"},
            "seed_key": {"type": "path", "no_log": False},
            "verify": {"type": "str", "choices": ["size", "sha256", "none"], "default": "size"},
            "python": {"type": "path"},
            "xet": {"type": "bool", "default": True},
            "max_workers": {"type": "int", "default": 8},
            "stall_timeout": {"type": "int", "default": 60},
            "quiet": {"type": "bool", "default": False},
            "background": {"type": "bool", "default": False},
            "name": {"type": "str", "default": "hf_snapshot"},
        },
        **question.MODEL_RULES,
        required_by={"seed": "repo_id"},
        mutually_exclusive=[("source", "seed"), *question.HUB_RULES["mutually_exclusive"]],
        supports_check_mode=True,
    )
    params = module.params
    name = params["name"]
    try:
        request = look.request_of(params)
        if params["state"] == "absent":
            absent(module, request)
        else:
            # In check mode the other host is not asked.
            seed = None if module.check_mode else look.seed_of(params)
            present(module, replace(request, seed=seed))
    except look.ERRORS as error:
        module.fail_json(msg=f"{name}: {error}")


if __name__ == "__main__":
    main()
