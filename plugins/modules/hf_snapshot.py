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
  - In check mode nothing is written, and RV(location) tells where the model can be read now.
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
in_place:
  description: In check mode, whether nothing is left to do.
  returned: in check mode
  type: bool
checks:
  description: In check mode, whether there is room, as C(id), C(status), C(expected), C(actual), C(fix), C(source).
  returned: in check mode, when O(state=present)
  type: list
  elements: dict
code:
  description:
    - In check mode, whether the code that the model brings is that of a pinned commit, as one of RV(checks).
    - It is told apart from them, since it counts only for an engine that runs that code (C(trust_remote_code)).
  returned: in check mode, when O(state=present)
  type: dict
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
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import checks
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import (
    fetch,
    job,
    remote_code,
    repository,
    snapshot,
    space,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Busy, Lock
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Report
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

ERRORS = (SnapshotError, OSError)


def request_of(params: dict[str, Any], check_mode: bool) -> snapshot.Request:
    """The parameters as a request. Raises SnapshotError."""
    seed = None
    if params["seed"] and not check_mode:
        address, colon, folder = params["seed"].partition(":")
        if not (address and colon and folder.startswith("/")) or address.startswith("-"):
            raise SnapshotError(f"seed {params['seed']!r} is not of the form user@host:/folder", "correct it")
        seed = fetch.Seed(address, folder.rstrip("/"), params["seed_key"], params["timeout"])
    token = params["token"] or None
    if params["token_file"]:
        try:
            token = Path(params["token_file"]).read_text(encoding="utf-8").strip() or None
        except OSError as error:
            raise SnapshotError(f"token_file {params['token_file']}: {error.strerror}", "correct it") from error
    return snapshot.Request(
        dest=Path(params["dest"]),
        repo_id=params["repo_id"],
        revision=params["revision"],
        source=Path(params["source"]) if params["source"] else None,
        seed=seed,
        endpoint=params["endpoint"],
        token=token,
        allow=tuple(params["allow_patterns"]),
        ignore=tuple(params["ignore_patterns"]),
        verify=params["verify"],
        prune=params["prune"],
        python=params["python"],
        xet=params["xet"],
        max_workers=params["max_workers"],
        timeout=params["timeout"],
        stall_timeout=params["stall_timeout"],
        reserve_bytes=params["reserve_bytes"],
    )


def result_of(request: snapshot.Request, planned: snapshot.Plan, name: str) -> dict[str, Any]:
    """A plan as the module returns it: to be carried out, or carried out."""
    moves = request.repo_id is not None and not remote_code.pinned_by(request) and planned.commit is not None
    return {
        "changed": planned.changes,
        "model": str(request.dest),
        "commit": planned.commit,
        "location": planned.location,
        "paste": remote_code.pin(planned, name) if moves else "",
        "files": len(planned.entries),
        "missing": [entry.path for entry in planned.missing],
        "missing_bytes": planned.missing_bytes,
        "unproven": [entry.path for entry in planned.unproven],
        "removed": list(planned.others) if planned.prune else [],
        "others": [] if planned.prune else list(planned.others),
    }


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
    planned = snapshot.plan(request)
    if module.check_mode:
        # Under a manifest only the hashes tell whether anything would change; without one the answer is known.
        if planned.answered and planned.unproven:
            planned = snapshot.prove(request, planned)
        room = space.judge(request.dest, planned.missing_bytes, len(planned.missing), request.reserve_bytes)
        code = remote_code.judge(request, planned, name)
        module.exit_json(
            **result_of(request, planned, name),
            in_place=planned.in_place,
            checks=checks.as_dicts([room]),
            code=checks.as_dicts([code])[0],
        )
    if planned.in_place:
        module.exit_json(**result_of(request, planned, name))
    lock = take_lock(module, request, f"{request.origin}@{planned.commit}" if planned.commit else request.origin)
    # Whoever had the lock before may have brought it all.
    planned = snapshot.plan(request) if snapshot.moved_on(request, planned) else planned
    if planned.in_place:
        module.exit_json(**result_of(request, planned, name))

    def work(report: Report) -> dict[str, Any]:
        try:
            return result_of(request, snapshot.bring(request, planned, lock, report), name)
        except ERRORS as error:
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
        **({"in_place": not changed} if module.check_mode else {}),
        model=str(request.dest),
        removed=list(gone),
        others=[] if request.prune else list(removal.others),
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "repo_id": {"type": "str"},
            "revision": {"type": "str"},
            "allow_moving": {"type": "bool", "default": False},
            "source": {"type": "path"},
            "seed": {"type": "str"},
            "seed_key": {"type": "path", "no_log": False},
            "endpoint": {"type": "str"},
            "token": {"type": "str", "no_log": True},
            "token_file": {"type": "path", "no_log": False},
            "allow_patterns": {"type": "list", "elements": "str", "default": []},
            "ignore_patterns": {"type": "list", "elements": "str", "default": []},
            "verify": {"type": "str", "choices": ["size", "sha256", "none"], "default": "size"},
            "prune": {"type": "bool", "default": False},
            "python": {"type": "path"},
            "xet": {"type": "bool", "default": True},
            "max_workers": {"type": "int", "default": 8},
            "timeout": {"type": "int", "default": 30},
            "stall_timeout": {"type": "int", "default": 60},
            "reserve_bytes": {"type": "int", "default": 1 << 30},
            "quiet": {"type": "bool", "default": False},
            "background": {"type": "bool", "default": False},
            "name": {"type": "str", "default": "hf_snapshot"},
        },
        required_if=[("state", "present", ("repo_id", "source"), True)],
        required_by={"seed": "repo_id"},
        mutually_exclusive=[("source", "seed"), ("token", "token_file")],
        supports_check_mode=True,
    )
    params = module.params
    name = params["name"]
    pinned = repository.is_commit(params["revision"] or "")
    if params["state"] == "present" and params["repo_id"] and not pinned and not params["allow_moving"]:
        module.fail_json(
            msg=f"{name}: expected a commit of 40 hexadecimal digits as revision; found {params['revision']!r}, which "
            "can move; fix: give the commit, or set allow_moving: true once to have it resolved and shown"
        )
    try:
        request = request_of(params, module.check_mode)
        if params["state"] == "absent":
            absent(module, request)
        else:
            present(module, request)
    except ERRORS as error:
        module.fail_json(msg=f"{name}: {error}")


if __name__ == "__main__":
    main()
