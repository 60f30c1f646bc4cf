# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a host of containers: what each grant comes to, and, where asked, proof that it arrived."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..checks import FAIL, Check
from .config import LXC, PROXMOX, cgroup_version
from .devices import Device, Extras, Gpu, LxcError, cap_minors, find_gpus, node_state, read_devices
from .files import read_config
from .host import Guest, Guests, State, choose_style, detect_backend, find_guests, guest_state
from .judge import (
    Grant,
    check_denied,
    check_driver,
    check_granted,
    check_guest,
    check_nodes,
    check_running,
    check_unique,
    plan,
    written_rule,
)
from .probe import ask_inside, ask_under_rules, guest_cgroup

PROC_FOLDER = "/proc/driver/nvidia"


@dataclass(frozen=True)
class Question:
    """What is asked of the host; the names are those of the module lxc_gpu_info."""

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
    for grant in question.grants:
        guest = guests.all.get(grant.vmid)
        local = guest is not None and guest.kind == "lxc" and guest.node == guests.node
        text = read_config(guest.path) if guest and local and backend == PROXMOX else None
        told = check_guest(grant, guests, text)
        checks += told
        if not any(check.status == FAIL for check in told):
            fit.append(grant)
    majors = read_devices(question.devices_file)
    driver = check_driver(majors, question.extras, question.devices_file, question.driver_required)
    checks.append(driver)
    states = {grant.vmid: guest_state(grant.vmid) for grant in fit}
    stopped = tuple(vmid for vmid, state in states.items() if not state.running)
    if driver.status != "pass":
        return Survey(tuple(checks), backend, style, stopped=stopped)
    gpus = [Gpu(index, index) for index in question.gpus] or find_gpus(PROC_FOLDER)
    planned = plan(fit, gpus, majors, question.extras, cap_minors(PROC_FOLDER) if question.extras.caps else [])
    checks += [*planned.checks, *check_nodes(planned.nodes)]
    restart: list[str] = []
    if question.prove and style:
        proof = _Proof(question, backend, style, cgroup, guests)
        for vmid, devices in planned.grants.items():
            proved, restartable = proof.of(guests.all[vmid], devices, states[vmid])
            checks += proved
            restart += [vmid] if restartable else []
    wrong = tuple(device.path for device in planned.nodes if node_state(device))
    return Survey(tuple(checks), backend, style, planned.nodes, wrong, planned.grants, stopped, tuple(restart))


def _check_style(question: Question, backend: str) -> tuple[list[Check], str]:
    try:
        style = choose_style(question.style, backend)
    except LxcError as error:
        fix = "set lxc_gpu_style to dev (Proxmox VE 8.1 and later) or cgroup"
        return [Check("lxc_gpu.style", FAIL, "a known version of Proxmox VE", str(error), fix)], ""
    if backend == LXC and style != "cgroup":
        fix = "set lxc_gpu_style to cgroup or auto"
        return [Check("lxc_gpu.style", FAIL, "cgroup on plain LXC", style, fix, "lxc.container.conf(5)")], ""
    return [Check("lxc_gpu.style", "pass", f"a style that {backend} knows", style)], style


@dataclass(frozen=True)
class _Proof:
    question: Question
    backend: str
    style: str
    cgroup: str
    guests: Guests

    def of(self, guest: Guest, devices: tuple[Device, ...], state: State) -> tuple[list[Check], bool]:
        """The checks for one container, and whether a restart is what it lacks."""
        checks = [check_running(guest.vmid, state)]
        if not state.running:
            return checks, False
        text = read_config(guest.path)
        unprivileged = self._unprivileged(text)
        answers = ask_inside(guest.vmid, [device.path for device in devices])
        restart = False
        for device in devices:
            rule = written_rule(text, device, self.backend, self.style, self.cgroup)
            check = check_granted(
                guest.vmid,
                device,
                answers[device.path],
                rule,
                unprivileged=unprivileged,
                driver_answers=self.question.driver_answers,
            )
            checks.append(check)
            restart = restart or (check.status == FAIL and rule[1] and "restart" in check.fix)
        given = {device.path for device in devices}
        others = [str(path) for path in sorted(Path("/dev").glob("nvidia[0-9]*")) if str(path) not in given]
        if others:
            denied = ask_under_rules(guest_cgroup(state.pid), others)
            checks += [check_denied(guest.vmid, path, answer, unprivileged) for path, answer in denied.items()]
        return checks, restart

    def _unprivileged(self, text: str) -> bool:
        if self.backend == PROXMOX:
            return "unprivileged: 1" in text.split("\n[")[0]
        return "lxc.idmap" in text
