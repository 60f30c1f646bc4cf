# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's venv and the packages of the distribution."""

from __future__ import annotations

from tests.faults.matrix import host
from tests.faults.matrix.faults import Fault
from tests.faults.matrix.host import CT, UNIT, VENV, Run

# The pip that fills the venv, found by its command line.
PIP = f"^{VENV}/bin/python.* install "
PLACE = "/opt/sglang"
LOCKED = r"Unable to acquire the dpkg frontend lock"
# As apt and dpkg do, for as long as a test may take.
HOLD = """
import fcntl, time
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
time.sleep(900)
"""


def lose_python() -> None:
    CT.check_output(f"rm {VENV}/bin/python*")
    CT.run(f"systemctl restart {UNIT}")


def kill_pip() -> Run:
    CT.check_output(f"systemctl stop {UNIT} && rm -r {VENV}")
    with host.playing() as ended:
        host.wait("pip installs", f"pgrep -f '{PIP}' && test -e {VENV}/lib/python3*/site-packages/torch")
        CT.check_output(f"pkill -KILL -f '{PIP}'")
    return ended[0]


def run_pip_into_a_full_disk() -> Run:
    CT.check_output(f"systemctl stop {UNIT} && mount -t tmpfs -o size=4g tmpfs {PLACE}")
    with host.playing() as ended:
        host.wait("pip installs", f"test -e {VENV}/lib/python3*/site-packages/torch")
        fill(PLACE, 64 << 20)
    return ended[0]


def resize(place: str, size: str) -> None:
    """Give a file system in memory another size."""
    CT.check_output(f"mount -o remount,size={size} {place}")


def fill(place: str, spare: int) -> None:
    """Leave a file system in memory so many bytes: whoever writes goes on meanwhile."""
    resize(place, f"$(( $(df --output=used -B1 {place} | tail -1) + {spare} ))")


def hold_apt_s_lock() -> None:
    CT.check_output("dpkg --purge --force-depends g++")
    CT.check_output("systemd-run --unit=upgrades python3 -c %s", HOLD)


def leave_memory() -> None:
    CT.check_output(f"systemctl stop {UNIT} && umount -l {PLACE} && systemctl start {UNIT}")
    whole = host.run()
    assert whole.status == 0, whole.ending


FAULTS = (
    Fault("python-gone", "The venv's Python is gone, and the engine was restarted.", lose_python, r"it has no Python"),
    Fault("pip-killed", "pip is killed while it fills the venv.", kill_pip, r"was killed by signal 9"),
    Fault(
        "disk-full-install",
        "The disk runs full while pip fills the venv.",
        run_pip_into_a_full_disk,
        r"the disk is full; free some space and run again",
        refused=r"free some space",
        mend=lambda: resize(PLACE, "4g"),
        mended="frees some space",
        tidy=leave_memory,
    ),
    Fault(
        "apt-lock",
        "A package is gone, and another process holds apt's lock.",
        hold_apt_s_lock,
        LOCKED,
        refused=LOCKED,
        mend=lambda: CT.check_output("systemctl stop upgrades"),
        mended="waits for it to end",
    ),
)
