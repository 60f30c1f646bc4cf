# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open each device node once, as a process that wants CUDA would.

Run by child.py as a script of its own. Arguments: paths. For each one a record {kind: start, path} before it is touched
and {kind: node, path, error, character, major, minor} after it; error is an errno, 0 when the node opened.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path


def look(path: str) -> dict[str, object]:
    """One node. Blocking on purpose: with O_NONBLOCK the driver answers before it has tried to initialise the GPU."""
    facts: dict[str, object] = {"kind": "node", "path": path, "error": 0, "character": False}
    try:
        found = Path(path).stat()
        facts.update(
            character=stat.S_ISCHR(found.st_mode), major=os.major(found.st_rdev), minor=os.minor(found.st_rdev)
        )
        if facts["character"]:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        facts["error"] = error.errno
    return facts


def say(record: dict[str, object]) -> None:
    """One record, not buffered, so that a node that hangs has a name."""
    os.write(1, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        say({"kind": "start", "path": argument})
        say(look(argument))
