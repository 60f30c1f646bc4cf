# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops a snapshot, as sentences with the one thing to do next."""

from __future__ import annotations

import errno


class SnapshotError(Exception):
    """The files could not be brought: what was found, and the one thing to do next."""

    def __init__(self, found: str, fix: str) -> None:
        super().__init__(f"{found}; fix: {fix}")
        self.found = found
        self.fix = fix


# Linux's include/uapi/asm-generic/errno.h. What each means for a folder of models, and what to do.
_MEANINGS = {
    errno.ENOSPC: ("the disk is full", "free some space or choose another folder"),
    errno.EDQUOT: ("the disk quota is used up", "raise the quota or choose another folder"),
    errno.EROFS: ("the file system is read-only", "mount it writable, or look into the kernel log for why it is not"),
    errno.EACCES: ("permission denied", "let this user write there, or run as one who may"),
    errno.EPERM: ("not permitted", "let this user write there, or run as one who may"),
    errno.EIO: ("input/output error", "look into the kernel log: the disk or its network has failed"),
    errno.ESTALE: ("the network file system lost its handle", "mount it again"),
    errno.EFBIG: ("a file of this size is not allowed there", "raise the limit or choose another file system"),
    errno.ENOTDIR: ("a part of the path is a file", "choose another folder"),
    errno.ENOLCK: ("the file system gives no locks", "choose a local folder, or start the lock service of the share"),
}


def explain(error: OSError, where: object) -> SnapshotError:
    """An error of the file system as a sentence. ``where`` is the path at hand when the error names none."""
    path = error.filename or where
    known = _MEANINGS.get(error.errno or 0)
    if known is None:
        return SnapshotError(f"{path}: {error.strerror or error}", "put that right and run again")
    what, fix = known
    return SnapshotError(f"{path}: {what}", fix)


def is_known(number: int | None) -> bool:
    """Whether an error's number is one of the file system's, so that trying again is no use."""
    return number in _MEANINGS
