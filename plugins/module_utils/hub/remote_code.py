# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the code that a model brings is that of a commit which somebody can have read.

An engine that is told to (``--trust-remote-code``) runs the Python files beside the weights, as the user it serves as.
Source: SGLang srt/utils/hf_transformers/common.py hands the flag to transformers' dynamic_module_utils, which imports
the files that ``auto_map`` in config.json names.
"""

from __future__ import annotations

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import PASS, WARN, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import repository
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.snapshot import Plan, Request

ID = "model.remote_code"


def pinned_by(request: Request) -> bool:
    """Whether the operator named a commit."""
    return request.repo_id is not None and repository.is_commit(request.revision or "")


def pin(planned: Plan, name: str) -> str:
    """The line for the inventory that pins what is held now. ``name`` is where the operator named the model."""
    return f"to pin {name}, write into it: revision: {planned.commit}"


def judge(request: Request, planned: Plan, name: str) -> Check:
    """What would be run of the model, for an engine that is told to run it. It is for the caller to know whether.

    What is not pinned is a warning: a first deploy has no commit to name, and what its manifest names then stays
    (snapshot.plan), so that no later run brings code that this one did not.
    """
    code = [entry.path for entry in planned.entries if entry.path.endswith(".py")]
    expected = "code to run is that of a pinned commit"
    if not code:
        return Check(
            ID, PASS, expected, f"{request.origin} brings none: no Python among its {len(planned.entries)} files"
        )
    told = f"{', '.join(code[:3])}{f' and {len(code) - 3} more' if len(code) > 3 else ''} of {request.origin}"
    if pinned_by(request):
        return Check(ID, PASS, expected, f"{told} at {planned.commit}")
    if request.repo_id is None or planned.commit is None:
        fix = f"give {name} repo_id and revision as well: its files then must be that commit's"
        return Check(ID, WARN, expected, f"{told}, of which no commit is known", fix)
    found = f"{told} at {planned.commit}, which {name} does not pin"
    return Check(ID, WARN, expected, found, f"read them, then, {pin(planned, name)}")
