# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models: what decays, what is missing, and disks that will not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.matrix import host
from tests.faults.matrix.faults import Fault
from tests.faults.matrix.host import BASE, CT, DRAFTER, PVE, Run
from tests.faults.matrix.installed import fill, resize

SHARD = f"{BASE}/model.safetensors"
STATUS = f"{BASE}/.gpuserve/status.json"
COMES = ("the model comes", f"grep -q '\"bring\"' {STATUS}")
# A second Hub of the same models that takes half a minute for the base model.
SLOW = {"hf_models_endpoint": "http://pve:8092"}
SLOW_RATE = 30000
MISSING = r"missing: - model\.safetensors missing_bytes: \d+"
NO_ROOM = r"\[model\.space\] expected .*?; fix: free [^']*"
FULL = r"the disk is full|\[model\.space\] expected"
READ_ONLY = r"the file system is read-only; fix: mount it writable"
CLOSED = r"has no config\.json that the engine could read .*?let the service's user read it"


@contextmanager
def slow_hub() -> Iterator[None]:
    served = f"/usr/lib/gpuserve-lab/hub.py /srv/hub --address pve --port 8092 --rate {SLOW_RATE}"
    PVE.run("systemctl stop slow-hub")
    PVE.check_output(f"systemd-run --unit=slow-hub --service-type=notify --collect /usr/bin/python3 {served}")
    try:
        yield
    finally:
        PVE.check_output("systemctl stop slow-hub")


def corrupt_a_shard() -> None:
    CT.check_output(f"printf XXXX | dd of={SHARD} bs=1 seek=5000 conv=notrunc status=none")


def load_a_corrupted_shard() -> None:
    corrupt_a_shard()
    CT.check_output(f"systemctl restart {host.UNIT}")


def let_a_shard_rot() -> None:
    CT.check_output(f"touch -r {SHARD} /tmp/time")
    corrupt_a_shard()
    CT.check_output(f"touch -r /tmp/time {SHARD}")


def lose_a_shard() -> None:
    CT.check_output(f"rm {SHARD}")


def empty(model: str) -> None:
    CT.check_output(f"rm -r {model}")


def kill_a_download() -> Run:
    empty(BASE)
    with slow_hub(), host.playing(**SLOW) as ended:
        host.wait(*COMES)
        CT.check_output(
            "kill -KILL $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[\"pid\"])' %s)", STATUS
        )
    return ended[0]


def fill_the_disk_of_a_download() -> Run:
    CT.check_output(f"mount -t tmpfs -o size=64m tmpfs {BASE}")
    with slow_hub(), host.playing(**SLOW, hf_models_reserve_bytes=0) as ended:
        host.wait(*COMES)
        fill(BASE, 16 << 10)
    return ended[0]


def have_a_full_disk() -> None:
    CT.check_output(f"mount -t tmpfs -o size=64k tmpfs {DRAFTER}")


def have_a_read_only_disk() -> None:
    CT.check_output(f"rm {SHARD} && mount --bind {BASE} {BASE} && mount -o remount,bind,ro {BASE}")


def take_a_model_away() -> None:
    CT.check_output(f"chown -R nobody {BASE} && chmod -R go-rwx {BASE}")
    CT.run(f"systemctl restart {host.UNIT}")


def unmount(model: str) -> None:
    # The engine still has its files open.
    CT.check_output(f"umount -l {model}")


FAULTS = (
    Fault("download-killed", "The download of a model is killed.", kill_a_download, r"ended without a word"),
    Fault("shard-corrupted", "Four bytes of a shard were overwritten.", corrupt_a_shard, MISSING),
    Fault(
        "shard-corrupted-loaded",
        "The same, and the engine has loaded it since.",
        load_a_corrupted_shard,
        r"the engine may have loaded a file of \S+ that was wrong",
        quick=True,
    ),
    Fault(
        "shard-rotten",
        "Four bytes of a shard changed, its size and time did not: the next run is told to hash (hf_models_verify).",
        let_a_shard_rot,
        MISSING,
        variables={"hf_models_verify": "sha256"},
    ),
    Fault("shard-missing", "A shard is missing.", lose_a_shard, MISSING),
    Fault(
        "disk-full-download",
        "The disk runs full while a model comes.",
        fill_the_disk_of_a_download,
        FULL,
        refused=FULL,
        mend=lambda: resize(BASE, "64m"),
        mended="frees some space",
        variables={"hf_models_reserve_bytes": 0},
        tidy=lambda: unmount(BASE),
    ),
    Fault(
        "disk-full-before",
        "The disk of a model is empty and too small.",
        have_a_full_disk,
        NO_ROOM,
        refused=NO_ROOM,
        mend=lambda: resize(DRAFTER, "64m"),
        mended="frees some space",
        variables={"hf_models_reserve_bytes": 0},
        tidy=lambda: unmount(DRAFTER),
    ),
    Fault(
        "disk-read-only",
        "A shard is missing, and the disk of the models is read-only.",
        have_a_read_only_disk,
        READ_ONLY,
        refused=READ_ONLY,
        mend=lambda: unmount(BASE),
        mended="mounts it writable",
    ),
    Fault(
        "owner-of-models",
        "A model belongs to another user, and nobody else may read it; the engine was restarted.",
        take_a_model_away,
        CLOSED,
        refused=CLOSED,
        mend=lambda: CT.check_output(f"chmod -R go+rX {BASE}"),
        mended="lets the service's user read it",
        tidy=lambda: CT.check_output(f"chown -R root {BASE}"),
    ),
)
