# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reboots, device nodes and the container's rules."""

from __future__ import annotations

from tests.faults.matrix import host
from tests.faults.matrix.faults import NO_ANSWER, Fault, set_right
from tests.faults.matrix.host import PVE
from tests.fixtures import reboots

BY_NUMBER = {"lxc_gpu_style": "cgroup"}
RULES = "/etc/pve/lxc/200.conf"


def reboot_the_host() -> None:
    reboots.with_moved_uvm(PVE)


def reboot_with_rules_by_number() -> None:
    restyled = host.run(**BY_NUMBER)
    assert restyled.status == 0, restyled.ending
    reboot_the_host()


def reboot_the_container() -> None:
    PVE.check_output("pct reboot 200")


def stop_the_container() -> None:
    PVE.check_output("pct stop 200")


def lose_a_node() -> None:
    PVE.check_output("pct stop 200 && rm /dev/nvidia-uvm")


def have_a_stale_node() -> None:
    PVE.check_output("pct stop 200 && rm /dev/nvidia-uvm && mknod /dev/nvidia-uvm c 240 0")


def lose_a_rule() -> None:
    PVE.check_output(f"sed -i '/nvidia-uvm,/d' {RULES} && pct reboot 200")


def tamper_with_a_rule() -> None:
    PVE.check_output(f"sed -i 's|^\\(dev.*nvidia-uvm\\),mode=0666|\\1,mode=0600,uid=1|' {RULES} && pct reboot 200")


def lose_the_boot_unit() -> None:
    PVE.check_output(
        "systemctl disable nvidia-device-nodes && rm /etc/systemd/system/nvidia-device-nodes.service"
        " /usr/local/sbin/nvidia-device-nodes && systemctl daemon-reload"
    )


def back_to_devices() -> None:
    restyled = host.run()
    assert restyled.status == 0, restyled.ending


FAULTS = (
    Fault(
        "host-reboot",
        "The host reboots into a kernel that gives nvidia-uvm another major.",
        reboot_the_host,
        NO_ANSWER,
    ),
    Fault(
        "host-reboot-cgroup",
        "The same, with the container's rules written by number (lxc_gpu_style: cgroup).",
        reboot_with_rules_by_number,
        set_right("Write the containers' device entries"),
        variables=BY_NUMBER,
        tidy=back_to_devices,
    ),
    Fault("container-reboot", "The container is restarted a moment before.", reboot_the_container, NO_ANSWER),
    Fault("container-stopped", "The container is stopped.", stop_the_container, r"UNREACHABLE!"),
    Fault(
        "node-missing",
        "The container is down, and a device node of the host is gone.",
        lose_a_node,
        r"missing expected: c \d+:0",
        quick=True,
    ),
    Fault(
        "node-stale",
        "The container is down, and a device node carries an earlier boot's major.",
        have_a_stale_node,
        r"c 240:0 instead of c \d+:0",
    ),
    Fault(
        "rule-removed",
        "A device entry was removed from the container's configuration by hand, and the container was restarted.",
        lose_a_rule,
        set_right("Write the containers' device entries"),
    ),
    Fault(
        "rule-changed",
        "A device entry gives the node another owner and mode.",
        tamper_with_a_rule,
        set_right("Write the containers' device entries"),
    ),
    Fault(
        "boot-unit-deleted",
        "What makes the nodes at each boot was deleted.",
        lose_the_boot_unit,
        set_right("Host \\| Install what makes nodes at boot.*?"),
    ),
)
