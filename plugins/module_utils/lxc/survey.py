# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a host of containers: what each grant comes to, and, where asked, proof that it arrived."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..checks import FAIL, PASS, Check, failing
from .config import DEV, LXC, PROXMOX, cgroup_version, covering_rule, edit, is_unprivileged
from .devices import Device, Extras, Gpu, LxcError, find_caps, find_gpus, node_state, read_devices
from .files import read_config
from .host import Guest, Guests, State, choose_style, detect_backend, find_guests, guest_groups, guest_state
from .host_part import HostPart
from .judge import (
    Grant,
    Verdict,
    check_driver,
    check_guest,
    check_nodes,
    check_owner,
    check_running,
    check_unique,
    host_nodes,
    judge_denied,
    judge_granted,
    plan,
    written_rule,
)
from .probe import ask_inside, ask_under_rules, guest_cgroup

PROC_FOLDER = "/proc/driver/nvidia"


@dataclass(frozen=True)
class Question:
    """What is asked of the host; the names are those of the module lxc_gpu_info.

    With ``host_part`` it is told whether anything is left to do; what open(2) says counts in the checks only where
    nothing is.
    """

    grants: tuple[Grant, ...]
    backend: str = "auto"
    style: str = "auto"
    cgroup: str = "auto"
    gpus: tuple[int, ...] = ()
    extras: Extras = field(default_factory=Extras)
    devices_file: str = "/proc/devices"
    driver_required: bool = True
    driver_answers: bool = True
    prove: bool = False
    host_part: HostPart | None = None


@dataclass(frozen=True)
class Survey:
    """What was found; the names are those of the module's result."""

    checks: tuple[Check, ...]
    backend: str
    style: str
    nodes: tuple[Device, ...] = ()
    nodes_wrong: tuple[str, ...] = ()
    grants: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    settled: bool = False


def survey(question: Question) -> Survey:
    """Look, and judge. Raises LxcError for what leaves nothing to judge."""
    if os.geteuid() != 0:
        raise LxcError(
            "this user is not root; connect as root over ssh (ansible_user, or become): raw lxc.* keys and device "
            "entries are refused to API tokens and to every user but root@pam"
        )
    backend = detect_backend() if question.backend == "auto" else question.backend
    cgroup = cgroup_version() if question.cgroup == "auto" else question.cgroup
    checks, style = _check_style(question, backend)
    guests = find_guests(backend)
    checks += check_unique(question.grants)
    fit = []
    states: dict[str, State] = {}
    for grant in question.grants:
        told = _check_grant(grant, guests, backend)
        if not failing(told):
            states[grant.vmid] = guest_state(grant.vmid)
            told += check_owner(grant, style, _groups(grant, states[grant.vmid]))
        if not failing(told):
            fit.append(grant)
        checks += told
    majors = read_devices(question.devices_file)
    driver = check_driver(majors, question.extras, question.devices_file, question.driver_required)
    checks.append(driver)
    stopped = tuple(grant.vmid for grant in fit if grant.state == "present" and not states[grant.vmid].running)
    if driver.status != PASS:
        return Survey(tuple(checks), backend, style, stopped=stopped)
    gpus = [Gpu(index, index) for index in question.gpus] or find_gpus(PROC_FOLDER)
    planned = plan(fit, gpus, majors, question.extras, find_caps(PROC_FOLDER) if question.extras.caps else [])
    checks += [*planned.checks, *check_nodes(planned.nodes)]
    wrong = tuple(device.path for device in planned.nodes if node_state(device))
    verdicts: dict[str, list[Verdict]] = {}
    in_place = (
        question.host_part is not None
        and not (failing(checks) or wrong or stopped)
        and question.host_part.in_place()
        and all(
            _written(guests.all[vmid], devices, backend, style, cgroup, majors)
            for vmid, devices in planned.grants.items()
        )
    )
    if style and (question.prove or in_place):
        proof = _Proof(question, backend, style, cgroup, tuple(host_nodes(planned.nodes)))
        verdicts = {vmid: proof.of(guests.all[vmid], devices, states[vmid]) for vmid, devices in planned.grants.items()}
    proofs = [verdict.check for told in verdicts.values() for verdict in told]
    settled = in_place and not failing(proofs)
    if question.prove or settled:
        checks += proofs
    restart = tuple(vmid for vmid, told in verdicts.items() if any(verdict.restart for verdict in told))
    return Survey(tuple(checks), backend, style, planned.nodes, wrong, planned.grants, stopped, restart, settled)


def _written(
    guest: Guest, devices: tuple[Device, ...], backend: str, style: str, cgroup: str, majors: Mapping[str, int]
) -> bool:
    """Whether the configuration of the container is what it would be made."""
    text = read_config(guest.path)
    return edit(text, devices, backend=backend, style=style, cgroup=cgroup, majors=majors).text == text


def _check_style(question: Question, backend: str) -> tuple[list[Check], str]:
    try:
        style = choose_style(question.style, backend)
    except LxcError as error:
        fix = "set lxc_gpu_style to dev (Proxmox VE 8.1 and later) or cgroup"
        return [Check("lxc_gpu.style", FAIL, "a known version of Proxmox VE", str(error), fix)], ""
    if backend == LXC and style == DEV:
        fix = "set lxc_gpu_style to cgroup or auto"
        return [Check("lxc_gpu.style", FAIL, "cgroup on plain LXC", style, fix, "lxc.container.conf(5)")], ""
    return [Check("lxc_gpu.style", PASS, f"a style that {backend} knows", style)], style


def _check_grant(grant: Grant, guests: Guests, backend: str) -> list[Check]:
    guest = guests.all.get(grant.vmid)
    readable = backend == PROXMOX and guest is not None and guest.kind == "lxc" and guest.node == guests.node
    return check_guest(grant, guests, read_config(guest.path) if guest and readable else None)


def _groups(grant: Grant, state: State) -> dict[int, str] | None:
    return guest_groups(grant.vmid) if state.running and grant.gid else None


@dataclass(frozen=True)
class _Proof:
    question: Question
    backend: str
    style: str
    cgroup: str
    nodes: tuple[str, ...]

    def of(self, guest: Guest, devices: tuple[Device, ...], state: State) -> list[Verdict]:
        """What open(2) says of each node of the host, granted to this container or not."""
        verdicts = [Verdict(check_running(guest.vmid, state))]
        if not state.running:
            return verdicts
        text = read_config(guest.path)
        unprivileged = is_unprivileged(text, self.backend)
        given = [device.path for device in devices]
        others = [path for path in self.nodes if path not in given]
        inside = ask_inside(guest.vmid, [*given, *others])
        for device in devices:
            verdicts.append(
                judge_granted(
                    guest.vmid,
                    device,
                    inside[device.path],
                    written_rule(text, device, self.backend, self.style, self.cgroup),
                    own_node=self.style == DEV,
                    unprivileged=unprivileged,
                    driver_answers=self.question.driver_answers,
                )
            )
        under_rules = ask_under_rules(guest_cgroup(state.pid), others) if others else {}
        for path, answer in under_rules.items():
            numbers = Path(path).stat().st_rdev
            cover = covering_rule(text, self.backend, f"{os.major(numbers)}:{os.minor(numbers)}")
            verdicts.append(judge_denied(guest.vmid, path, answer, inside[path] if unprivileged else None, cover))
        return verdicts
