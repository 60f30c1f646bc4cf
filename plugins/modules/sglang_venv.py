#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_venv
short_description: Hold a virtual environment with an engine, whatever state it was in before
version_added: 0.1.0
description:
  - Makes the venv, brings back a missing pip, makes it again when its interpreter does not start, finishes a
    half-finished installation, and installs what was asked for.
  - When nothing is to do that is known after one start of the venv's Python, without a pip run.
  - Packages that the request does not name are kept, unless O(exclusive) is set.
  - When SGLang is asked for, a compressed-tensors that it cannot use is refused. Before anything is changed if the
    request tells the version, else after the installation, which then stays unfinished.
  - A folder that holds anything else than a venv is never touched.
author:
  - gpuserve contributors (@gpuserve)
options:
  path:
    description: The folder of the venv.
    type: path
    required: true
  python:
    description: The Python that the venv is made with. A venv of another minor version is made again.
    type: str
    default: python3
  creator:
    description: What makes the venv. V(auto) takes the first of the others that is there.
    type: str
    choices: [auto, venv, virtualenv, uv]
    default: auto
  requirements:
    description:
      - Requirements that are installed with all that they depend on. A wheel or a git build is written C(NAME @ URL),
        with the commit in the URL, since nothing is asked again while the URL stays the same.
      - Not used when there is a lock.
    type: list
    elements: str
    default: []
  requirements_no_deps:
    description: Requirements that are installed alone. Not used when there is a lock.
    type: list
    elements: str
    default: []
  constraints:
    description:
      - Versions that the requirements and what they depend on are held to. Not used when there is a lock.
      - For a known release of SGLang the range of compressed-tensors that it can use is added.
    type: list
    elements: str
    default: []
  lock:
    description:
      - The text of a requirements file that names every package with its version and hash. Nothing else is installed
        then, and each file is checked against its hash.
    type: str
  wheelhouse:
    description:
      - A folder on the target with wheels, as M(gpuserve.sglang.sglang_wheelhouse) makes it. Its C(lock.txt) is used
        unless O(lock) is given. Nothing is then asked of any index.
    type: path
  index_url:
    description: The package index. Pip's own setting by default. Credentials belong into pip's settings on the target.
    type: str
  extra_index_urls:
    description: More package indexes.
    type: list
    elements: str
    default: []
  exclusive:
    description: Remove packages that the request does not bring. Pip, setuptools and wheel stay.
    type: bool
    default: false
  ignore:
    description: Ids of checks that may fail, for a version that deviates from the engine's metadata on purpose.
    type: list
    elements: str
    default: []
  keep:
    description:
      - How many other engines stay in the folder beside O(path), the last finished ones. All of them by default.
      - Only finished venvs of this module that hold SGLang count. One that a unit or a process uses is never removed.
    type: int
  system_packages:
    description: Packages of the distribution that are looked for. They are not installed.
    type: list
    elements: str
    default: []
  names:
    description: What the operator knows an option as, by its name here. Used in messages.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Says what is wrong with the venv, without resolving packages.
  diff_mode:
    support: full
    description: Shows the packages that were added, removed or changed, in check mode what is wrong.
"""

EXAMPLES = r"""
- name: Install the engine from an index, each file checked against a hash
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    lock: "{{ lookup('ansible.builtin.file', 'sglang-0.5.20.lock') }}"

- name: Install the engine with no network, and keep the one before it
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-0.5.20
    wheelhouse: /srv/wheelhouse/sglang
    keep: 1

- name: Install a build of one commit
  gpuserve.sglang.sglang_venv:
    path: /opt/sglang/engine-main
    requirements:
      - sglang @ git+https://git.example.org/sglang.git@0123456789abcdef0123456789abcdef01234567#subdirectory=python
"""

RETURN = r"""
venv:
  description: The folder of the venv.
  returned: always
  type: str
python:
  description: The interpreter of the venv.
  returned: always
  type: str
python_version:
  description: Its version. Null in check mode when there is no venv that works.
  returned: success
  type: str
packages:
  description: How many packages are installed. Null in check mode when they would change.
  returned: success
  type: int
problems:
  description: What kept the venv from being what was asked for.
  returned: success
  type: list
  elements: str
repairs:
  description: What was done about it.
  returned: success
  type: list
  elements: str
system_packages_missing:
  description: Those of O(system_packages) that are not installed.
  returned: success
  type: list
  elements: str
removed:
  description: Other engines that were removed, in check mode would be.
  returned: success
  type: list
  elements: str
kept:
  description: Other engines that would have been removed if nothing used them, with C(path) and C(used_by).
  returned: success
  type: list
  elements: dict
checks:
  description: What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
  returned: success, or when a check fails
  type: list
  elements: dict
summary:
  description: One sentence about the checks.
  returned: success, or when a check fails
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils import checks, debian, installation
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state, venv


def _diff(result: installation.Result, path: str) -> dict[str, str]:
    after = result.outcome.after
    if after is None:
        return {"prepared": "".join(f"{path}: {problem}\n" for problem in result.outcome.problems)}
    texts = [
        "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
        for packages in (result.outcome.before, after)
    ]
    return {"before_header": path, "after_header": path, "before": texts[0], "after": texts[1]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "python": {"type": "str", "default": "python3"},
            "creator": {"type": "str", "choices": ["auto", *venv.CREATORS], "default": "auto"},
            "requirements": {"type": "list", "elements": "str", "default": []},
            "requirements_no_deps": {"type": "list", "elements": "str", "default": []},
            "constraints": {"type": "list", "elements": "str", "default": []},
            "lock": {"type": "str"},
            "wheelhouse": {"type": "path"},
            "index_url": {"type": "str"},
            "extra_index_urls": {"type": "list", "elements": "str", "default": []},
            "exclusive": {"type": "bool", "default": False},
            "ignore": {"type": "list", "elements": "str", "default": []},
            "keep": {"type": "int"},
            "system_packages": {"type": "list", "elements": "str", "default": []},
            "names": {"type": "dict", "default": {}},
        },
        mutually_exclusive=[("wheelhouse", "index_url")],
        supports_check_mode=True,
    )
    params = module.params
    request = venv.Request(
        path=Path(params["path"]),
        python=params["python"],
        creator=params["creator"],
        requirements=tuple(params["requirements"]),
        requirements_no_deps=tuple(params["requirements_no_deps"]),
        constraints=tuple(params["constraints"]),
        lock=params["lock"],
        wheelhouse=Path(params["wheelhouse"]) if params["wheelhouse"] else None,
        index_url=params["index_url"],
        extra_index_urls=tuple(params["extra_index_urls"]),
        exclusive=params["exclusive"],
    )
    where = {"venv": str(request.path), "python": str(state.interpreter(request.path))}
    wanted = installation.Wanted(request, params["ignore"], params["keep"], params["system_packages"], params["names"])
    try:
        result = installation.converge(wanted, check_mode=module.check_mode)
    except installation.NotAcceptable as refused:
        judged = refused.checks
        told: dict[str, Any] = {"checks": checks.as_dicts(judged), "summary": checks.summary(str(request.path), judged)}
        lines = [told["summary"], *(check.sentence() for check in refused.stopping)]
        ignore = params["names"].get("ignore", "ignore")
        lines.append(f"To go on all the same, name the check in {ignore}.")
        module.fail_json(msg="\n".join(lines), **where, **told)
    except (state.VenvError, debian.DebianError, OSError) as error:
        module.fail_json(msg=f"the venv {request.path} could not be brought to the wanted state: {error}", **where)
    outcome = result.outcome
    module.exit_json(
        changed=result.changed,
        **where,
        python_version=outcome.python_version,
        packages=None if outcome.after is None else len(outcome.after),
        problems=outcome.problems,
        repairs=outcome.repairs,
        system_packages_missing=list(result.system_packages_missing),
        removed=[str(path) for path in result.removed],
        kept=[{"path": str(sibling.path), "used_by": sibling.used_by} for sibling in result.kept],
        checks=checks.as_dicts(result.checks),
        summary=checks.summary(str(request.path), result.checks),
        diff=_diff(result, str(request.path)),
    )


if __name__ == "__main__":
    main()
