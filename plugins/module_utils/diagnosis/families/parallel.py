# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several GPUs, and the processes that share them."""

from __future__ import annotations

from ..signature import GENERAL, SGLANG, Signature

SIGNATURES = (
    Signature(
        id="nccl.timeout",
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\([^)\n]*OpType=(?P<what>\w+)",
        cause="the GPUs waited for each other in {what} until NCCL's limit: peer to peer does not work on this "
        "machine, or "
        "one rank had died",
        fix="start with NCCL_P2P_DISABLE=1; if that serves, turn off ACS in the host's firmware or set NCCL_P2P_LEVEL",
        source="https://github.com/NVIDIA/nccl/issues/1999, https://github.com/local-inference-lab/rtx6kpro/issues/15",
    ),
    Signature(
        id="nccl.watchdog",
        pattern=r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<limit>[\d.]+)(?:, self\.soft=False)?\)",
        cause="one forward pass took longer than {limit} s, so the engine ended itself: GPUs that wait for each "
        "other, or a "
        "kernel that was compiled meanwhile",
        fix="run gpu_health at level deep, which proves an all_reduce over all GPUs; for a cold cache raise "
        "watchdog_timeout once",
        source=f"sglang/srt/utils/watchdog.py:154 (0.5.20); {SGLANG}3752",
    ),
    Signature(
        id="nccl.system",
        pattern=r"unhandled system error",
        cause="NCCL failed in a call to the system: sockets, shared memory, or memory that may not be locked",
        fix="start once with NCCL_DEBUG=WARN in the environment: it names the call",
        source=f"{SGLANG}4289, {SGLANG}3460",
        kind=GENERAL,
    ),
    Signature(
        id="nccl.cuda",
        pattern=r"unhandled cuda error",
        cause="NCCL failed in a call to CUDA",
        fix="start once with NCCL_DEBUG=WARN in the environment: it names the call",
        source="NCCL, ncclUnhandledCudaError",
        kind=GENERAL,
    ),
    Signature(
        id="nccl.custom_all_reduce",
        pattern=r"custom_all_reduce\w*\.cuh:\d+[^\n]*invalid argument",
        cause="the engine's own all_reduce cannot share the GPUs' memory: no NVLink, or PYTORCH_CUDA_ALLOC_CONF has "
        "expandable_segments",
        fix="set disable_custom_all_reduce, and take expandable_segments out of the environment",
        source=f"{SGLANG}25649, https://github.com/sgl-project/sglang/pull/27948",
    ),
    Signature(
        id="nccl.rendezvous",
        pattern=r"client socket has (?:timed out|failed to connect)[^\n]*?\((?P<host>[^,()\n]+), (?P<port>\d+)\)",
        cause="a rank did not reach the first one at {host}, port {port}",
        fix="check dist_init_addr, node_rank and the firewall, and that the first node is starting",
        source="PyTorch, TCPStore",
    ),
    Signature(
        id="nccl.numa",
        pattern=r"^set(?:ting membind|_mempolicy): (?P<why>Invalid argument|Operation not permitted)",
        cause="the container may not bind memory to a NUMA node ({why}), and numactl ends before the engine's "
        "Python begins",
        fix="install 0.5.15 or later, which tries the binding first, or set SGLANG_NUMA_BIND_V2=0 in the environment",
        source=f"{SGLANG}27368, https://github.com/sgl-project/sglang/pull/28401",
        versions="before 0.5.15",
    ),
)
