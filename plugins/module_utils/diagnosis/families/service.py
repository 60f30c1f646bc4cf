# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service around the engine: its port, its processes, its end."""

from __future__ import annotations

from ..signature import GENERAL, H200, STOP, Signature

_ENDED = r"(?:Subprocess \S+ \(pid=\d+\) crashed with exit code|scheduler died during initialization \(exit code:)"

SIGNATURES = (
    Signature(
        id="service.port",
        pattern=r"error while attempting to bind on address \('(?P<host>[^'\n]+)', (?P<port>\d+)[^\n]*address "
        r"already in use",
        cause="another process listens on port {port}; the engine finds that out after it has loaded everything",
        fix="end it (ss -ltnp sport = :{port} names it), or give this instance another port",
        source="uvicorn, server.py",
    ),
    Signature(
        id="service.inner_port",
        pattern=r"EADDRINUSE|zmq\.error\.ZMQError: Address already in use|"
        r"server socket has failed to listen on any local network address",
        cause="a port that the engine's processes use among themselves is taken, often by an instance that is "
        "still ending",
        fix="end the other instance, or set nccl_port and dist_init_addr to free ports",
        source="PyTorch, TCPStore; sglang/srt/utils/network.py",
    ),
    Signature(
        id="service.disk",
        pattern=r"No space left on device",
        unless=r"/dev/shm|</torch_",
        cause="a file system is full: the caches of compiled kernels, or the temporary folder",
        fix="free space (df -h names the file system), or move the caches to a larger one",
        source="ENOSPC",
    ),
    Signature(
        id="service.files",
        pattern=r"Too many open files",
        cause="the engine may not open more files or connections",
        fix="raise LimitNOFILE in its unit",
        source="EMFILE",
    ),
    Signature(
        id="service.permission",
        pattern=r"PermissionError: \[Errno 13\] Permission denied: '(?P<path>[^'\n]+)'",
        cause="the service's user may not use {path}",
        fix="give it to that user, or put the user into the file's group",
        source="EACCES",
    ),
    Signature(
        id="service.read_only",
        pattern=r"OSError: \[Errno 30\] Read-only file system: '(?P<path>[^'\n]+)'",
        cause="the engine wants to write to {path}, which its unit shows it as read-only",
        fix="move that cache below the service's home, or name the folder in ReadWritePaths",
        source="EROFS; the unit sets ProtectSystem=strict",
    ),
    Signature(
        id="service.spawn",
        pattern=r"Failed at step (?P<step>[A-Z_]+) spawning (?P<what>\S{1,200}): (?P<why>[^\n]+)",
        cause="systemd could not start {what}: {why} (step {step})",
        fix="install what the unit names: EXEC the venv, USER and GROUP the account, CHDIR and NAMESPACE the folders",
        source="systemd.exec(5), exit statuses 200 to 243",
    ),
    Signature(
        id="service.environment",
        pattern=r"Failed to load environment files: (?P<why>[^\n]+)",
        cause="systemd could not read the file of the unit's environment: {why}",
        fix="run the role sglang_server again, which writes it",
        source="systemd.exec(5), EnvironmentFile",
    ),
    Signature(
        id="service.stop_limit",
        pattern=r"State 'stop-sigterm' timed out\. Killing",
        cause="it was stopped, and its requests took longer than TimeoutStopSec: they were cut off",
        fix="raise the stop timeout of the unit above the longest answer, or drain the server before it is stopped",
        source="systemd.service(5); sglang/srt/managers/tokenizer_manager.py:3293 (0.5.20): it drains without a limit",
    ),
    Signature(
        id="service.stopped",
        pattern=r"SIGTERM received\. |^Stopping [^\n]*(?:sglang|SGLang)",
        unless=r"State 'stop-sigterm' timed out\. Killing",
        cause="it was stopped (systemctl stop or restart, a shutdown); the CUDA build then ends by SIGKILL after "
        "it has drained",
        fix="start it again if that was not meant",
        source=f"{H200}; sglang/srt/managers/tokenizer_manager.py:3820 (0.5.20)",
        kind=STOP,
    ),
    Signature(
        id="service.killed",
        pattern=_ENDED + r" -9\b",
        cause="a process of the engine was killed from outside, most often because main memory ran out",
        fix="look into the kernel log of the host for 'Out of memory' (dmesg -T), and give the container more memory",
        source=f"{H200}; https://github.com/sgl-project/sglang/pull/20287",
        kind=GENERAL,
    ),
    Signature(
        id="service.crashed",
        pattern=_ENDED + r" -(?P<signal>4|6|7|8|11)\b|Fatal Python error: (?P<what>[^\n]+)",
        cause="compiled code crashed in a process of the engine ({what}{signal})",
        fix="look at the lines before it for the last thing it did; signal 7 is a full /dev/shm, signal 4 a CPU "
        "without AVX",
        source="sglang/srt/utils/watchdog.py:218 (0.5.20)",
        kind=GENERAL,
    ),
    Signature(
        id="service.warm_up",
        pattern=r"Initialization failed\. warmup error:",
        cause="the server came up and did not answer its own first request",
        fix="read the exception that follows",
        source="sglang/srt/entrypoints/http_server.py:2238 (0.5.20)",
        kind=GENERAL,
    ),
    Signature(
        id="service.gave_up",
        pattern=r"Start request repeated too quickly",
        cause="systemd gave up after it had started the unit again and again",
        fix="repair what the first of those starts died of, then systemctl reset-failed and start",
        source="systemd.unit(5), StartLimitBurst",
        kind=GENERAL,
    ),
    Signature(
        id="service.main_killed",
        pattern=r"Main process exited, code=(?:killed|dumped), status=(?P<status>\d+/\w+)",
        cause="the engine's main process was ended by the signal {status}",
        fix="if nobody sent it, look into the kernel log of the host for 'Out of memory' (dmesg -T)",
        source="systemd.exec(5)",
        kind=GENERAL,
    ),
)
