#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cuda_toolkit_home
short_description: Hold one CUDA_HOME, proven by compiling and linking
version_added: 0.1.0
author: gpuserve contributors (@gpuserve)
description:
  - Makes a folder of links that looks like an installed CUDA toolkit, wherever its parts lie, so that the engine's unit
    can name one path for good.
  - Compiles and links a small kernel for each architecture with it, without running it. It does so again only when the
    toolkit, the C++ compiler or the architectures have changed.
options:
  home:
    description: The folder to make.
    type: path
    required: true
  tools:
    description: A folder for ninja, to be put into the engine's PATH.
    type: path
    required: true
  root:
    description: The folder of the toolkit. Either this or O(venv) is given.
    type: path
  venv:
    description: A virtual environment whose packages bring the toolkit and ninja.
    type: path
  version:
    description: The CUDA version that the toolkit must be of.
    type: str
    required: true
  architectures:
    description: The architectures to compile for (V(sm_120)).
    type: list
    elements: str
    required: true
  compiler:
    description: The C++ compiler that nvcc calls.
    type: str
    default: g++
attributes:
  check_mode:
    description: Says what would be linked and compiled, and does neither.
    support: full
  diff_mode:
    description: Shows the links, and the architectures that are proven.
    support: full
"""

EXAMPLES = r"""
- name: Hold the engine's CUDA_HOME
  gpuserve.sglang.cuda_toolkit_home:
    home: /opt/cuda-toolkit/home
    tools: /opt/cuda-toolkit/bin
    venv: /opt/cuda-toolkit/13.0
    version: "13.0"
    architectures: [sm_90, sm_120]
"""

RETURN = r"""
msg:
  description: One sentence.
  returned: always
  type: str
  sample: "cuda_toolkit: CUDA 13.0 in /opt/cuda-toolkit/home compiles for sm_120"
root:
  description: The folder of the toolkit.
  returned: success
  type: str
  sample: /opt/cuda-toolkit/13.0/lib/python3.11/site-packages/nvidia/cu13
compiled:
  description: The architectures that were compiled for in this run.
  returned: success
  type: list
  elements: str
  sample: [sm_120]
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import proof, toolkit


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "home": {"type": "path", "required": True},
            "tools": {"type": "path", "required": True},
            "root": {"type": "path"},
            "venv": {"type": "path"},
            "version": {"required": True},
            "architectures": {"type": "list", "elements": "str", "required": True},
            "compiler": {"default": "g++"},
        },
        required_one_of=[("root", "venv")],
        mutually_exclusive=[("root", "venv")],
        supports_check_mode=True,
    )
    params = module.params
    venv = Path(params["venv"]) if params["venv"] else None
    found = toolkit.in_venv(venv) if venv else toolkit.inspect(Path(params["root"]))
    ninja = toolkit.ninja(venv)
    where = params["venv"] or params["root"]
    wanted = f"cuda_toolkit: expected a complete CUDA {params['version']} and ninja in {where}; found"
    if found is None or ninja is None:
        fix = f"remove {where} and run again, or correct cuda_toolkit_requirements"
        module.fail_json(msg=f"{wanted} no such; fix: {fix}")
    if found.version != params["version"]:
        fix = "set cuda_toolkit_version to it, or gather cuda_toolkit_wheelhouse for the wanted one"
        module.fail_json(msg=f"{wanted} CUDA {found.version}; fix: {fix}")
    request = proof.Request(
        home=Path(params["home"]),
        tools=Path(params["tools"]),
        toolkit=found,
        ninja=ninja,
        architectures=tuple(params["architectures"]),
        compiler=params["compiler"],
    )
    before, after = proof.present_links(request), proof.wanted_links(request)
    known, missing = proof.proven(request.home), proof.unproven(request)
    if not module.check_mode:
        try:
            proof.write_links(after, before)
            proof.prove(request)
        except proof.ProofError as error:
            tried = f"{request.home}/bin/nvcc with {request.compiler} to compile and link for {', '.join(missing)}"
            fix = "install what cuda_toolkit_system_packages names, or set cuda_toolkit_version to one that fits"
            module.fail_json(msg=f"cuda_toolkit: expected {tried}; found: {error}; fix: {fix}")
    module.exit_json(
        changed=bool(missing) or before != after,
        msg=f"cuda_toolkit: CUDA {found.version} in {request.home} compiles for {', '.join(request.architectures)}",
        root=str(found.root),
        compiled=missing,
        diff={
            "before": "".join(f"{line}\n" for line in proof.as_lines(before, set(known) - set(missing))),
            "after": "".join(f"{line}\n" for line in proof.as_lines(after, request.architectures)),
        },
    )


if __name__ == "__main__":
    main()
