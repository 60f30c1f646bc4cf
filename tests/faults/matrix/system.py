# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies around the job: connections, names, clocks."""

from __future__ import annotations

import time

from tests.faults.matrix import host
from tests.faults.matrix.faults import NO_ANSWER, Fault
from tests.faults.matrix.host import CT, MODELS, UNIT, Run
from tests.faults.matrix.models import SHARD, STATUS

HOSTS = "/etc/hosts"
AHEAD = "2036-01-01"
UNREACHABLE = r"ssh: connect to host \S+ port 22: Connection refused"
# How long nobody reaches the container, in seconds: longer than a run that is not waiting for something bears.
AWAY = 30


def lose_ssh() -> Run:
    """While the engine starts."""
    CT.check_output(f"systemctl stop {UNIT}")
    with host.playing() as ended:
        host.wait("the engine starts", f"systemctl is-active {UNIT}")
        CT.check_output("systemctl stop ssh.socket ssh; pkill -KILL sshd; true")
        time.sleep(AWAY)
        CT.check_output("systemctl start ssh")
    return ended[0]


def have_ssh_down() -> None:
    CT.check_output("systemctl stop ssh.socket ssh; pkill -KILL sshd; true")


def break_hosts() -> None:
    CT.check_output(f"cp {HOSTS} /root/hosts && printf 'no address here\\n\\377' > {HOSTS}")
    CT.run(f"systemctl restart {UNIT}")


def break_hosts_and_lose_a_shard() -> Run:
    break_hosts()
    CT.check_output(f"rm {SHARD}")
    with host.playing() as ended:
        host.wait("the download tells that it cannot go on", f"grep -q ConnectError {STATUS}")
        # The run tells how a download goes every ten seconds.
        time.sleep(15)
        mend_hosts()
    return ended[0]


def mend_hosts() -> None:
    CT.check_output(f"cp /root/hosts {HOSTS}")


def be_ahead() -> None:
    """As after a deploy at which the clock was years ahead: what was written then is of the future."""
    CT.check_output(f"find /etc/sglang {MODELS} /etc/systemd/system -exec touch -h -d {AHEAD} {{}} +")
    CT.check_output(
        f"sed -i -E 's/\"(at|written)\": [0-9.]+/\"\\1\": '$(date -d {AHEAD} +%s)'/' /etc/sglang/main/releases/*/*.json"
    )
    CT.run(f"systemctl restart {UNIT}")


FAULTS = (
    Fault(
        "ssh-lost",
        f"Nobody reaches the container by ssh for {AWAY} s while the engine starts.",
        lose_ssh,
        r"out of reach, the start goes on there",
    ),
    Fault(
        "ssh-down",
        "The container runs, and its ssh does not.",
        have_ssh_down,
        UNREACHABLE,
        refused=UNREACHABLE,
        mend=lambda: CT.check_output("systemctl start ssh"),
        mended="starts ssh",
    ),
    Fault(
        "clock-ahead",
        "The clock was years ahead at the last deploy: its files are of the future; the engine was restarted.",
        be_ahead,
        NO_ANSWER,
    ),
    Fault(
        "hosts-broken", "/etc/hosts is broken, and the engine was restarted.", break_hosts, NO_ANSWER, tidy=mend_hosts
    ),
    Fault(
        "hosts-broken-shard-missing",
        "/etc/hosts is broken while a shard is missing, and is mended while the download waits.",
        break_hosts_and_lose_a_shard,
        r"interrupted \(model\.safetensors [^)]*ConnectError",
    ),
)
