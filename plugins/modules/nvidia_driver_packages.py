#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_driver_packages
short_description: Hold every package of the NVIDIA driver at one version
version_added: 0.1.0
author: gpuserve contributors (@gpuserve)
description:
  - Brings all Debian packages of the NVIDIA driver to one version, and pins and holds them there. A host gets its
    kernel module, with nouveau kept off and the modules' options, a container the libraries alone.
  - In a container the version is that of the kernel module that runs on its host.
  - Nothing is changed before apt has tried repository, key, pin and packages in a folder of its own and has downloaded
    what it would install. What does not fit is refused with what was expected, what was found and what to do.
  - A running kernel module is never unloaded. When another one was installed than runs, RV(reboot_reasons) says so.
  - Holds that somebody else placed are respected.
options:
  state:
    description: With V(absent) all packages of the driver are purged, and repository, key and pin go with them.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - The exact version (V(580.95.05)) or the branch (V(580)).
      - An installed version of the branch is kept. Empty keeps what is installed, or else takes the version that runs.
      - A container takes its host's version; one that is given must be the same.
    type: str
    default: ""
  scope:
    description: Whether this is a host, with the kernel module, or a container, without. V(auto) is as systemd says.
    type: str
    choices: [auto, host, container]
    default: auto
  kernel_module:
    description: Which of NVIDIA's kernel modules a host gets. Blackwell and newer have the open ones alone.
    type: str
    choices: [open, proprietary]
    default: open
  kernel_packages:
    description: The package of each kernel module.
    type: dict
    suboptions:
      open:
        description: The package of the open one.
        type: str
        required: true
      proprietary:
        description: The package of the proprietary one.
        type: str
        required: true
    required: true
  host_packages:
    description: The packages of a host, besides that of the kernel module.
    type: list
    elements: str
    required: true
  container_packages:
    description: The packages of a container.
    type: list
    elements: str
    required: true
  repository_url:
    description: The repository of the packages. Empty for the sources that apt has already.
    type: str
    default: ""
  repository_suites:
    description: The suites of the repository.
    type: str
    default: /
  repository_components:
    description: The components of the repository.
    type: list
    elements: str
    default: []
  repository_key:
    description: The key that signs the repository, as an https address, a path on this host, or the armoured text.
    type: str
    default: ""
  module_options:
    description: Options of a host's kernel modules, by module. Those that are not in effect yet are a reason to reboot.
    type: dict
    default: {}
  persistence_unit:
    description: The persistence daemon's unit, to be told whether it is enabled and runs. Empty if it is not wanted.
    type: str
    default: ""
  runfile:
    description:
      - NVIDIA's installer as a path on this host. A container then gets its libraries from it and not from packages.
      - On a host it is left aside.
    type: path
  runfile_checksum:
    description: The installer's checksum, V(sha256:) and 64 digits.
    type: str
    default: ""
  runfile_arguments:
    description: What the installer is called with.
    type: list
    elements: str
    default: [--silent, --no-kernel-modules, --no-x-check, --no-nouveau-check]
  running_file:
    description: Where the kernel module tells its version.
    type: path
    default: /proc/driver/nvidia/version
  coming_version:
    description:
      - The version that the host's kernel module will have by the time this is done for real.
      - In check mode a container is judged by it in place of the version that runs. Elsewhere it means nothing.
    type: str
    default: ""
attributes:
  check_mode:
    description: Also on a first run, since apt resolves everything in a folder of its own. Nothing else is touched.
    support: full
  diff_mode:
    description: Shows the packages with versions and holds, and apt's files.
    support: full
"""

EXAMPLES = r"""
- name: Bring a host to one version
  gpuserve.sglang.nvidia_driver_packages:
    version: 580.95.05
    kernel_packages: {open: nvidia-kernel-open-dkms, proprietary: nvidia-kernel-dkms}
    host_packages: [nvidia-driver-cuda, nvidia-persistenced, nvidia-modprobe]
    container_packages: [libcuda1, libnvidia-ml1]
    repository_url: https://mirror.example.org/nvidia/debian12
    repository_key: /usr/share/keyrings/cuda-archive-keyring.gpg
"""

RETURN = r"""
msg:
  description: One sentence.
  returned: always
  type: str
  sample: "nvidia_driver: 580.95.05 (host): 9 passed, 1 not checked"
scope:
  description: What this machine is, V(host) or V(container).
  returned: always
  type: str
  sample: host
version:
  description: The version that the packages have, or in check mode would have. Empty with O(state=absent).
  returned: always
  type: str
  sample: 580.95.05
running:
  description: The kernel module that runs, with C(version) and C(flavour), both empty when none does.
  returned: always
  type: dict
  sample: {version: 580.95.05, flavour: open}
packages:
  description: Debian versions of the driver's packages by name, as they are, or in check mode would be.
  returned: always
  type: dict
  sample: {libcuda1: 580.95.05-1}
repairs:
  description: What was done beyond installing and removing packages.
  returned: always
  type: list
  elements: str
  sample: [an interrupted installation was finished]
reboot_reasons:
  description: Why the host has to be rebooted before everything is in effect.
  returned: always
  type: list
  elements: str
  sample: ["kernel module 570.172.08 runs, 580.95.05 is installed"]
persistence_due:
  description: Whether the persistence daemon has to be enabled, or also started where no reboot is due.
  returned: always
  type: bool
  sample: false
settled:
  description: Whether nothing was to do, and nothing is left to do.
  returned: always
  type: bool
  sample: true
checks:
  description:
    - What was looked at, each with C(id), C(status), C(expected), C(actual), C(fix) and C(source).
    - C(status) is V(pass), V(warn), V(fail) or V(skipped).
  returned: always
  type: list
  elements: dict
  sample:
    - id: plan.one_version
      status: pass
      expected: every package of the driver in version 580.95.05
      actual: so it is
      fix: ""
      source: apt-get --simulate install
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import as_dicts, failure_message, summary
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import converge, runfile, sources


def request(params: dict[str, Any]) -> converge.Request:
    """The parameters as the work takes them."""
    repository = installer = None
    if params["repository_url"]:
        repository = sources.Repository(
            params["repository_url"],
            params["repository_suites"],
            tuple(params["repository_components"]),
            params["repository_key"],
        )
    if params["runfile"]:
        installer = runfile.Runfile(
            Path(params["runfile"]), params["runfile_checksum"], tuple(params["runfile_arguments"])
        )
    options = {
        module: {name: str(value) for name, value in wanted.items()}
        for module, wanted in params["module_options"].items()
    }
    return converge.Request(
        absent=params["state"] == "absent",
        version=params["version"],
        scope="" if params["scope"] == "auto" else params["scope"],
        flavour=params["kernel_module"],
        kernel_packages=params["kernel_packages"],
        host_packages=tuple(params["host_packages"]),
        container_packages=tuple(params["container_packages"]),
        repository=repository,
        options=options,
        persistence=params["persistence_unit"],
        runfile=installer,
        running_file=Path(params["running_file"]),
        coming=params["coming_version"],
    )


def _diff(outcome: converge.Outcome) -> list[dict[str, str]]:
    before = [
        f"{package.name} {package.version}{' hold' if package.held else ''}" for package in outcome.before.values()
    ]
    after = [f"{name} {version}{' hold' if name in outcome.held else ''}" for name, version in outcome.after.items()]
    shown = [("packages of the driver", sorted(before), sorted(after))]
    for file in outcome.files:
        if file.path.suffix != ".gpg":
            shown.append((str(file.path), (file.before or "").splitlines(), (file.after or "").splitlines()))
    return [
        {
            "before_header": header,
            "after_header": header,
            "before": "".join(f"{line}\n" for line in old),
            "after": "".join(f"{line}\n" for line in new),
        }
        for header, old, new in shown
        if old != new
    ]


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["present", "absent"], "default": "present"},
            "version": {"default": ""},
            "scope": {"choices": ["auto", "host", "container"], "default": "auto"},
            "kernel_module": {"choices": ["open", "proprietary"], "default": "open"},
            "kernel_packages": {
                "type": "dict",
                "required": True,
                "options": {"open": {"required": True}, "proprietary": {"required": True}},
            },
            "host_packages": {"type": "list", "elements": "str", "required": True},
            "container_packages": {"type": "list", "elements": "str", "required": True},
            "repository_url": {"default": ""},
            "repository_suites": {"default": "/"},
            "repository_components": {"type": "list", "elements": "str", "default": []},
            "repository_key": {"no_log": False, "default": ""},
            "module_options": {"type": "dict", "default": {}},
            "persistence_unit": {"default": ""},
            "runfile": {"type": "path"},
            "runfile_checksum": {"default": ""},
            "runfile_arguments": {
                "type": "list",
                "elements": "str",
                "default": ["--silent", "--no-kernel-modules", "--no-x-check", "--no-nouveau-check"],
            },
            "running_file": {"type": "path", "default": "/proc/driver/nvidia/version"},
            "coming_version": {"default": ""},
        },
        supports_check_mode=True,
    )
    try:
        outcome = converge.converge(request(module.params), module.check_mode)
    except converge.DriverError as error:
        module.fail_json(msg=f"nvidia_driver: {error}", checks=[])
    subject = f"nvidia_driver: {outcome.version or 'no driver'} ({outcome.scope})"
    result: dict[str, Any] = {
        "changed": outcome.changed and not outcome.refused,
        "scope": outcome.scope,
        "version": outcome.version,
        "running": {"version": outcome.running.version, "flavour": outcome.running.flavour},
        "packages": dict(outcome.after),
        "repairs": outcome.done,
        "reboot_reasons": outcome.reboot_reasons,
        "persistence_due": outcome.persistence_due,
        "settled": outcome.settled,
        "checks": as_dicts(outcome.checks),
    }
    if outcome.refused:
        module.fail_json(msg=failure_message(subject, outcome.checks), **result)
    module.exit_json(msg=summary(subject, outcome.checks), diff=_diff(outcome), **result)


if __name__ == "__main__":
    main()
