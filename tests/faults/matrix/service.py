# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service, its files and its port."""

from __future__ import annotations

from tests.faults.matrix import host
from tests.faults.matrix.faults import NO_ANSWER, Fault, set_right
from tests.faults.matrix.host import CT, PORT, UNIT, Run
from tests.fixtures import memory

UNIT_FILE = f"/etc/systemd/system/{UNIT}"
ENVIRONMENT = "/etc/sglang/main/current/environment"
TAKEN = set_right("Instance \\| Take the release")
USER = "Instance \\| Hold the service's user"
IN_THE_WAY = r"there is a folder in the place of this file; move it away"
# In bytes: less than the engine starts with.
LITTLE = 100 << 20
PORT_TAKEN = rf"port {PORT} is taken by the process \d+ \(python3\)"


def delete_the_unit() -> None:
    CT.check_output(f"systemctl stop {UNIT} && rm {UNIT_FILE} && systemctl daemon-reload")


def delete_the_unit_alone() -> None:
    CT.check_output(f"rm {UNIT_FILE} && systemctl daemon-reload")


def restart() -> None:
    CT.run(f"systemctl restart {UNIT}")


def garble_the_environment() -> None:
    CT.check_output(
        f"head -c 300 /dev/urandom > {ENVIRONMENT} && chown nobody {ENVIRONMENT} && chmod 000 {ENVIRONMENT}"
    )
    restart()


def have_a_folder_for_the_environment() -> None:
    CT.check_output(f"rm {ENVIRONMENT} && mkdir {ENVIRONMENT}")
    restart()


def take_the_folders_away() -> None:
    for folder in ("/var/lib/sglang", "/var/cache/sglang", "/var/log/sglang"):
        CT.check_output(f"mkdir -p {folder} && chown -R nobody {folder} && chmod 700 {folder}")
    restart()


def take_the_user_away() -> None:
    CT.check_output(f"systemctl stop {UNIT} && userdel sglang")


def squat_on_the_port() -> None:
    CT.check_output(f"systemctl stop {UNIT}")
    CT.check_output(f"systemd-run --unit=squatter python3 -m http.server {PORT} --bind 127.0.0.1")
    host.wait("the port is taken", f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {PORT}))'")


def kill_the_engine_again_and_again() -> None:
    """Until systemd starts it no more."""
    for _ in range(12):
        state = CT.check_output(f"systemctl show -p ActiveState --value {UNIT}")
        if state == "failed":
            return
        CT.run(f"systemctl kill --signal=SIGKILL {UNIT}")
        host.wait(
            "it starts again, or no more",
            f"systemctl show -p ActiveState --value {UNIT} | grep -qE '^(active|failed)$'",
        )
    raise AssertionError("systemd never gave up")


def have_little_memory() -> Run:
    CT.check_output(f"systemctl stop {UNIT}")
    running = host.start()
    try:
        with memory.short(UNIT, LITTLE) as counts:
            job = running.end()
            assert memory.killed(counts) > 0
        return job
    finally:
        if running.process.poll() is None:
            running.kill()


FAULTS = (
    Fault("unit-deleted", "The unit was deleted, and nothing serves.", delete_the_unit, TAKEN),
    Fault("unit-deleted-running", "The unit was deleted, and the engine still runs.", delete_the_unit_alone, TAKEN),
    Fault(
        "environment-unreadable",
        "The environment's file is no text, and nobody may read it; the engine was restarted.",
        garble_the_environment,
        TAKEN,
        quick=True,
    ),
    Fault(
        "environment-folder",
        "A folder is in the place of the environment's file.",
        have_a_folder_for_the_environment,
        IN_THE_WAY,
        refused=IN_THE_WAY,
        mend=lambda: CT.check_output(f"rmdir {ENVIRONMENT}"),
        mended="moves it away",
    ),
    Fault(
        "owner-of-folders",
        "The service's folders belong to another user, and the engine was restarted.",
        take_the_folders_away,
        NO_ANSWER,
    ),
    Fault("user-gone", "The service's user is gone, and nothing serves.", take_the_user_away, set_right(USER)),
    Fault(
        "port-taken",
        "The engine is down, and another process has its port.",
        squat_on_the_port,
        PORT_TAKEN,
        refused=PORT_TAKEN,
        mend=lambda: CT.check_output("systemctl stop squatter"),
        mended="ends that process",
    ),
    Fault(
        "engine-killed",
        "The engine is killed until systemd starts it no more.",
        kill_the_engine_again_and_again,
        NO_ANSWER,
        quick=True,
    ),
    Fault(
        "memory-low",
        "There is too little memory: the kernel kills the engine that starts.",
        have_little_memory,
        r"look into the kernel log of the host for 'Out of memory'",
    ),
)
