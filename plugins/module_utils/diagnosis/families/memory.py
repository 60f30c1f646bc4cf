# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory that runs out."""

from __future__ import annotations

from ..signature import Signature

SIGNATURES = (
    Signature(
        id="memory.unbalanced",
        pattern=r"^RuntimeError: The memory capacity is unbalanced\. Some GPUs may be occupied",
        cause="one GPU has far less free memory than another: a process of a former start may still hold it",
        fix="find the process that holds it (gpu_health, on the host too) and end it, then start again",
        source="sglang/srt/distributed/bootstrap.py:366 (0.5.20); SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
    ),
    Signature(
        id="memory.kv_cache",
        pattern=r"Not enough memory\. Please try to increase --mem-fraction-static",
        cause="after the weights no memory is left for the KV cache within mem_fraction_static",
        fix="set context_length or max_running_requests lower, or tp_size higher; raise mem_fraction_static only "
        "if vram_plan "
        "shows the room",
        source="sglang/srt/model_executor/pool_configurator.py:92 (0.5.20)",
    ),
    Signature(
        id="memory.weights",
        pattern=r"in (?:load_model|load_weights)\n[\s\S]{0,8000}?OutOfMemoryError: CUDA out of memory\.[^\n]*?"
        r"total capacity of (?P<total>[\d.]+ \wiB) of which (?P<free>[\d.]+ \wiB) is free",
        cause="the weights do not fit: {free} of {total} were free when the next tensor came",
        fix="raise tp_size, or end what else is on the GPU (vram_plan counts the bytes, gpu_health names processes)",
        source="PyTorch, CUDACachingAllocator.cpp",
    ),
    Signature(
        id="memory.graphs",
        pattern=r"Capture cuda graph failed: CUDA out of memory",
        cause="the GPU was full before all CUDA graphs were captured",
        fix="lower mem_fraction_static by 0.05",
        source="sglang/srt/model_executor/runner/decode_cuda_graph_runner.py:467 (0.5.20)",
    ),
    Signature(
        id="memory.running",
        pattern=r"OutOfMemoryError: CUDA out of memory\. Tried to allocate (?P<size>[\d.]+ \wiB)",
        unless=r"Capture cuda graph failed: CUDA out of memory|in (?:load_model|load_weights)\n",
        cause="the GPU was full when a batch asked for {size}: what a batch needs lies outside mem_fraction_static",
        fix="lower mem_fraction_static by 0.05 (Kimi K2.6 bears 0.85), or chunked_prefill_size",
        source="SGLang's documentation, advanced_features/speculative_decoding.md; 0.90 ends Kimi K2.6 on 96 GB GPUs",
    ),
    Signature(
        id="memory.pool",
        pattern=r"(?P<what>Prefill|Decode) out of memory\. Try to lower your batch size",
        cause="the KV cache has no room left for a running batch",
        fix="lower max_running_requests",
        source="sglang/srt/mem_cache/allocation.py:231 (0.5.20)",
    ),
    Signature(
        id="memory.host",
        pattern=r"killed by the OOM killer|Failed with result 'oom-kill'|Out of memory: Killed process|"
        r"Memory cgroup out of memory",
        cause="the machine or the container ran out of main memory, and the kernel killed a process of the engine",
        fix="give the container more memory (pct set <id> --memory), or load with fewer threads "
        "(model_loader_extra_config num_threads)",
        source="systemd, OOMPolicy; kernel, mm/oom_kill.c",
    ),
    Signature(
        id="memory.shm",
        pattern=r"(?:extend|creating shared memory segment|attaching to shared memory segment) /dev/shm/|"
        r"insufficient shared memory \(shm\)|unable to write to file </torch_",
        cause="/dev/shm is full or too small, and NCCL passes data between the GPUs' processes through it",
        fix="make /dev/shm larger: mount -o remount,size=16G /dev/shm (in a container: an entry of its configuration)",
        source="https://github.com/NVIDIA/nccl/issues/342, https://github.com/NVIDIA/nccl/issues/1518",
    ),
)
