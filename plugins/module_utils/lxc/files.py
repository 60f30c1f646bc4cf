# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing a configuration file so that a power loss leaves the old one or the new one, on pmxcfs too.

What pmxcfs, the file system behind /etc/pve, bears (pve-cluster, src/pmxcfs/pmxcfs.c): a rename over an existing file
in the same folder, which is how Proxmox VE itself writes (PVE::Tools, file_set_contents: ``<name>.tmp.<pid>``, then
rename); no fsync (the kernel answers for it), no chmod but to 0640, no chown but to root:www-data, no links, and EACCES
for every write while the cluster has no quorum. Ansible's own atomic_move sets owner and mode and so fails there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from .devices import LxcError

# pve-container, PVE::LXC::Config, config_file_lock; Proxmox VE waits ten seconds for it.
LOCK_FOLDER = "/run/lock/lxc"
LOCK_SECONDS = 10.0


def read_config(path: str) -> str:
    """The file's text, every byte kept (bytes that are not UTF-8 as surrogates). Raises LxcError."""
    try:
        return Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise LxcError(
            f"{path} cannot be read: {error.strerror}; check that the container exists on this node"
        ) from error


def printable(text: str) -> str:
    """The text with bytes that are not UTF-8 shown as replacement characters, since JSON cannot carry them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def write_config(path: str, text: str) -> None:
    """Replace the file by rename. Raises LxcError; the old file is then still whole."""
    target = Path(path).resolve()
    temporary = Path(f"{target}.tmp.{os.getpid()}")
    try:
        old = target.stat()
        # What a killed run left under this name is of no use to anybody.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        handle = os.open(temporary, flags, stat.S_IMODE(old.st_mode))
        try:
            with os.fdopen(handle, "wb") as stream:
                # pmxcfs knows one owner and one mode per path, and refuses to be told others.
                with contextlib.suppress(PermissionError):
                    os.fchown(stream.fileno(), old.st_uid, old.st_gid)
                with contextlib.suppress(PermissionError):
                    os.fchmod(stream.fileno(), stat.S_IMODE(old.st_mode))
                stream.write(text.encode("utf-8", "surrogateescape"))
                stream.flush()
                _sync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        fix = "check free space and permissions"
        if error.errno in (errno.EACCES, errno.EROFS) and Path("/etc/pve") in target.parents:
            fix = "the cluster has no quorum or you are not root; see pvecm status on this node"
        raise LxcError(f"{path} cannot be written: {error.strerror}; {fix}; the file is unchanged") from error


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise


def back_up(path: str, text: str, folder: str) -> str:
    """Keep ``text`` under a dated name in ``folder``, outside /etc/pve (replicated and small). Returns its path."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    kept = Path(folder, f"{'-'.join(Path(path).parts[-2:])}.{stamp}")
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))
    return str(kept)


@contextlib.contextmanager
def config_lock(vmid: str, folder: str = LOCK_FOLDER, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock that Proxmox VE's own tools hold while they change container ``vmid``. Raises LxcError."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder, f"pve-config-{vmid}.lock")
    with path.open("a", encoding="utf-8") as stream:
        until = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise LxcError(
                        f"container {vmid}: another task changes its configuration ({path} is held); run this again "
                        "when that task has ended (pvesh get /cluster/tasks)"
                    ) from None
                time.sleep(0.1)
        yield
