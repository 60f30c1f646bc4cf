# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proof by open(2): what a container may open, asked from inside it, and what it may not, asked under its device rules.

Existence proves nothing: mknod succeeds in a container without any rule. What counts is the answer to open(2):

- it opens, or the driver answers with an error of its own: the rules permit it;
- ENXIO: the rules permit it, and no driver answers at that number (a stale major, or no driver loaded);
- EPERM: the device cgroup refuses; the allow rule is missing;
- EACCES: owner and mode refuse, which is all that counts in an unprivileged container, where Proxmox VE allows all
  devices (pve-container, config/userns.conf.d) and the node's owner is seen through the id map.

A node that was not granted is not in the container, and no check may create it there. So its denial is asked with the
host's own node: a child process joins the container's cgroup, opens the node, and ends.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .devices import LxcError
from .host import guest_run

OPENS = "opens"
ABSENT = "absent"
# glibc's words and musl's, in the C locale.
_ERRORS = {
    "Operation not permitted": "EPERM",
    "Permission denied": "EACCES",
    "No such device or address": "ENXIO",
    "No such device": "ENODEV",
    "No such file or directory": "ENOENT",
    "Input/output error": "EIO",
    "I/O error": "EIO",
    "Device or resource busy": "EBUSY",
    "Resource busy": "EBUSY",
}
# Opens read-write without a program that the guest might lack. What is not there is never opened: `<>` creates.
_SCRIPT = r"""
for node in "$@"; do
    if [ -c "$node" ]; then
        numbers=$(stat -c '%t:%T:%a:%u:%g' "$node" 2>/dev/null)
        if message=$( { : <>"$node"; } 2>&1 ); then message=opens; fi
    elif [ -e "$node" ]; then numbers= message='not a character device'
    else numbers= message=absent
    fi
    printf '%s\t%s\t%s\n' "$node" "$numbers" "$message"
done
"""


@dataclass(frozen=True)
class Answer:
    """What open(2) said of one node: ``opens``, ``absent`` or an errno's name. ``numbers`` is ``195:0`` where known."""

    path: str
    said: str
    numbers: str = ""
    mode: str = ""
    owner: str = ""


def _parse_answer(line: str) -> Answer:
    path, numbers, message = line.split("\t", 2)
    said = next((name for words, name in _ERRORS.items() if message.rstrip().endswith(words)), message)
    parts = numbers.split(":")
    if len(parts) != 5:
        return Answer(path, said)
    return Answer(path, said, f"{int(parts[0], 16)}:{int(parts[1], 16)}", parts[2].zfill(4), f"{parts[3]}:{parts[4]}")


def ask_inside(vmid: str, paths: Sequence[str]) -> dict[str, Answer]:
    """Open each node from inside the running container, as its root. Raises LxcError when it does not answer."""
    done = guest_run(vmid, ["sh", "-c", _SCRIPT, "probe", *paths])
    answers = [_parse_answer(line) for line in done.stdout.splitlines() if line.count("\t") >= 2]
    if len(answers) != len(paths):
        raise LxcError(
            f"container {vmid} could not be asked about its devices: {done.stderr.strip() or 'no answer'}; "
            f"try: lxc-attach -n {vmid} -- true"
        )
    return {answer.path: answer for answer in answers}


def guest_cgroup(pid: int, proc: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> list[Path]:
    """The cgroup folders whose device rules hold for process ``pid``. Raises LxcError when there is none to join."""
    found = []
    try:
        lines = Path(proc, str(pid), "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LxcError(f"process {pid} is gone ({error.strerror}); run this again") from error
    for line in lines:
        dummy, controllers, path = line.split(":", 2)
        if not controllers:
            found.append(Path(cgroup, path.lstrip("/")))
        elif "devices" in controllers.split(","):
            found.append(Path(cgroup, "devices", path.lstrip("/")))
    there = [folder for folder in found if (folder / "cgroup.procs").exists()]
    if not there:
        raise LxcError(f"the cgroup of process {pid} is not visible under {cgroup}")
    return there


def ask_under_rules(folders: Sequence[Path], paths: Sequence[str]) -> dict[str, Answer]:
    """Open each of the host's nodes under the device rules of the cgroups ``folders``, in a child that joins them."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        told = "join failed"
        try:
            for folder in folders:
                (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
            told = "\n".join(f"{path}\t{_try_open(path)}" for path in paths)
        except OSError as error:
            told = f"join failed: {error.strerror}"
        finally:
            os.write(writer, told.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as stream:
        told = stream.read()
    os.waitpid(child, 0)
    if told.startswith("join failed"):
        raise LxcError(f"the container's cgroup {folders[0]} could not be joined ({told})")
    return {path: Answer(path, said) for path, said in (line.split("\t") for line in told.splitlines())}


def _try_open(path: str) -> str:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return OPENS


def permitted(answer: Answer) -> bool:
    """The rules let it through, whatever the driver then said."""
    return answer.said not in ("EPERM", "EACCES", ABSENT, "ENOENT", "not a character device")
