# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pveversion`: the version that the stand-ins behave like."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

RELEASE = "8.4"
VERSION = "8.4.1/2a5fa54a8503f96d"


def main(arguments: Sequence[str]) -> int:
    kernel = os.uname().release
    if any(word in ("-v", "--verbose") for word in arguments):
        print(f"proxmox-ve: {RELEASE}.0 (running kernel: {kernel})")
        print(f"pve-manager: {VERSION.partition('/')[0]} (running version: {VERSION})")
    else:
        print(f"pve-manager/{VERSION} (running kernel: {kernel})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
