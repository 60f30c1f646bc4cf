# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's Xid codes: what each means and what NVIDIA says to do. Data only.

Source: NVIDIA's Xid catalog ("Analyzing Xid Errors with the Xid Catalog", column Resolution Bucket (Immediate Action)),
as of 2025-10. Codes that NVIDIA lists as unused are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..checks import FAIL, PASS, WARN

CATALOG = "NVIDIA Xid catalog (docs.nvidia.com/deploy/xid-errors), immediate action"


@dataclass(frozen=True)
class Action:
    """What a bucket of NVIDIA's catalog means for a server that wants to start."""

    status: str
    fix: str


IGNORE = Action(PASS, "")
RESTART_APP = Action(WARN, "the program that used this GPU was ended: restart it and see whether the Xid comes back")
FOLLOW_OTHER = Action(WARN, "act on the other Xids of this GPU; alone, restart the program")
RESET_GPU = Action(FAIL, "stop the work and reset the GPU (nvidia-smi --gpu-reset -i N) or reboot the host")
REBOOT = Action(FAIL, "reboot the host; reseat or replace the card if it comes back")
MECHANICS = Action(FAIL, "power the host off and check the power cables of this card")
MEMORY = Action(
    FAIL, "reset the GPU; see gpu.remapped_rows and gpu.ecc_aggregate, and replace the card if it comes back"
)
NVLINK = Action(
    FAIL, "reset the GPU; check the NVLink bridges or the fabric manager, and replace the part if it comes back"
)
UPDATE = Action(WARN, "update the driver and the firmware")
SUPPORT = Action(FAIL, "collect nvidia-bug-report.sh on the host and contact the vendor")
UNKNOWN = Action(WARN, "look the code up in NVIDIA's Xid catalog")

# Code -> (meaning, action).
CODES: Mapping[int, tuple[str, Action]] = {
    8: ("the GPU stopped processing", RESTART_APP),
    11: ("invalid push buffer stream", RESTART_APP),
    13: ("exception of the graphics engine, often an out-of-range access of the program", RESTART_APP),
    25: ("invalid push buffer stream", RESTART_APP),
    31: ("page fault of GPU memory, an illegal address of the program", RESTART_APP),
    32: ("corrupted push buffer stream", RESTART_APP),
    37: ("error of the driver's firmware", IGNORE),
    38: ("error of the driver's firmware", IGNORE),
    39: ("copy engine exception", RESTART_APP),
    40: ("copy engine exception", RESTART_APP),
    41: ("copy engine exception", RESTART_APP),
    43: ("the GPU stopped processing for one program", IGNORE),
    44: ("fault during a context switch", IGNORE),
    45: ("clean-up after an earlier error", FOLLOW_OTHER),
    46: ("the GPU stopped processing", RESET_GPU),
    48: ("double-bit ECC error", MEMORY),
    54: ("the auxiliary power is not connected", MECHANICS),
    60: ("exception of the video processor", RESTART_APP),
    62: ("a micro-controller of the GPU halted", RESET_GPU),
    63: ("a row was remapped or a page retired", IGNORE),
    64: ("remapping a row or retiring a page failed", RESET_GPU),
    66: ("illegal access by the driver", IGNORE),
    67: ("illegal access by the driver", IGNORE),
    68: ("exception of the video decoder", RESTART_APP),
    69: ("class error of the graphics engine", RESTART_APP),
    74: ("NVLink error", NVLINK),
    78: ("a vGPU did not start", UPDATE),
    79: ("the GPU has fallen off the bus", REBOOT),
    80: ("corrupted data were sent to the GPU", RESTART_APP),
    92: ("a high rate of single-bit ECC errors", IGNORE),
    93: ("the infoROM was written too often", IGNORE),
    94: ("contained memory error", RESTART_APP),
    95: ("uncontained memory error", RESET_GPU),
    109: ("time-out of a context switch", RESET_GPU),
    110: ("security fault", RESET_GPU),
    119: ("the GPU's system processor (GSP) did not answer", RESET_GPU),
    120: ("error of the GPU's system processor (GSP)", RESET_GPU),
    121: ("C2C error", IGNORE),
    136: ("link training failed", RESET_GPU),
    137: ("NVLink privilege error", IGNORE),
    140: ("unrecovered ECC error", RESET_GPU),
    141: ("CUDA fast path error", IGNORE),
    143: ("the GPU did not initialise", RESET_GPU),
    **dict.fromkeys(range(144, 151), ("NVLink 5 error", NVLINK)),
    151: ("key rotation error", REBOOT),
    154: ("the driver asks for another recovery action, see gpu.recovery_action", IGNORE),
    155: ("NVLink error found by software", RESET_GPU),
    156: ("a part of the GPU was retired", RESET_GPU),
    157: ("retiring a part of the GPU failed", SUPPORT),
    158: ("fatal time-out of the GPU", RESET_GPU),
    160: ("a memory channel was retired", IGNORE),
    161: ("retiring a memory channel failed", SUPPORT),
    167: ("fatal PCIe time-out", SUPPORT),
    168: ("errors in protected memory, the capacity is reduced", SUPPORT),
    169: ("a micro-controller of the GPU halted", SUPPORT),
    171: ("uncorrectable DRAM error", MEMORY),
    172: ("uncorrectable SRAM error", MEMORY),
    **dict.fromkeys((*range(70, 73), *range(75, 78), 85, *range(126, 136)), ("copy engine exception", RESTART_APP)),
    **dict.fromkeys((*range(82, 85), 86, 88, 89, *range(96, 106), 139), ("media engine exception", RESTART_APP)),
}


def look_up(code: int) -> tuple[str, Action]:
    """(meaning, action) of a code; one that NVIDIA does not explain is never ignored."""
    return CODES.get(code, ("a code that this table does not know", UNKNOWN))
