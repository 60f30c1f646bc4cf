# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU, driver and kernels."""

from __future__ import annotations

from ..signature import GENERAL, H200, SGLANG, Signature

SIGNATURES = (
    Signature(
        id="gpu.none",
        pattern=r"No accelerator \(CUDA|Found no NVIDIA driver on your system|No CUDA GPUs are available",
        cause="the engine sees no GPU",
        fix="run gpu_health on the host: it says whether the driver, the device nodes or their permissions are missing",
        source="sglang/srt/utils/common.py:948 (0.5.20); PyTorch, torch/cuda/__init__.py",
    ),
    Signature(
        id="gpu.uvm",
        pattern=r"CUDA unknown error - this may be due to an incorrectly set up environment",
        cause="CUDA cannot begin: most often /dev/nvidia-uvm is missing or is an old number after a reboot of the host",
        fix="make the node on the Proxmox host before the container starts: nvidia-modprobe -c 0 -u (role "
        "nvidia_driver)",
        source="https://github.com/tensorflow/tensorflow/issues/53341, https://github.com/canonical/lxd/issues/5618",
    ),
    Signature(
        id="gpu.versions",
        pattern=r"Driver/library version mismatch|system has unsupported display driver / cuda driver combination",
        cause="the driver's libraries in this container are not of the version of the kernel module",
        fix="install the module's version in the container (role nvidia_driver), or reboot the host after its upgrade",
        source="NVML_ERROR_LIB_RM_VERSION_MISMATCH, CUDA error 803",
    ),
    Signature(
        id="gpu.driver_old",
        pattern=r"The NVIDIA driver on your system is too old|CUDA driver version is insufficient for CUDA "
        r"runtime version|"
        r"forward compatibility was attempted on non supported HW",
        cause="the driver is older than the CUDA that PyTorch was built with",
        fix="install a newer driver on the host (role nvidia_driver); CUDA 13 needs 580 or later",
        source="PyTorch, torch/cuda/__init__.py; CUDA errors 35 and 804",
    ),
    Signature(
        id="gpu.ordinal",
        pattern=r"CUDA error: invalid device ordinal",
        cause="more GPUs are asked for than this container sees",
        fix="set tp_size to the number of GPUs that gpu_facts shows, or pass the missing ones through (role lxc_gpu)",
        source="CUDA error 101",
    ),
    Signature(
        id="gpu.busy",
        pattern=r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable",
        cause="a GPU is in exclusive mode and another process has it, or it waits for a reset",
        fix="set the compute mode to default on the host: nvidia-smi -c 0",
        source="CUDA error 46",
    ),
    Signature(
        id="gpu.kernel_image",
        pattern=r"no kernel image is available for execution on the device",
        cause="a compiled package has no code for this generation of GPUs",
        fix="install the wheels of PyTorch and sglang-kernel for CUDA 12.8 or later: they have code for Blackwell "
        "(sm_120)",
        source=f"{SGLANG}7249",
    ),
    Signature(
        id="gpu.ecc",
        pattern=r"uncorrectable ECC error encountered",
        cause="the memory of a GPU returned a wrong bit that cannot be corrected: a fault of the hardware",
        fix="run gpu_health, which reads the error counters; reset the GPU or reboot the host, and replace it if "
        "it returns",
        source="CUDA error 214; NVIDIA's Xid catalogue, Xid 48",
    ),
    Signature(
        id="gpu.lost",
        pattern=r"GPU is lost|GPU has fallen off the bus",
        cause="a GPU no longer answers on the PCIe bus: power, heat, its seat, or the card",
        fix="reboot the host, then run gpu_health and look for Xid 79 in the host's kernel log",
        source="NVIDIA's Xid catalogue, Xid 79",
    ),
    Signature(
        id="gpu.shared_memory",
        pattern=r"out of resource: shared memory, Required: (?P<want>\d+), Hardware limit: (?P<have>\d+)",
        cause="a Triton kernel asks for {want} bytes of shared memory per block, and this GPU has {have}",
        fix="install a version with block sizes for sm_120 (0.5.9 and later), or choose another attention_backend",
        source=f"https://github.com/sgl-project/sglang/pull/14311; {SGLANG}2847",
        versions="before 0.5.9 on sm_120",
    ),
    Signature(
        id="gpu.nan",
        pattern=r"Detected errors during sampling! NaN in the logits|"
        r"probability tensor contains either `inf`, `nan` or element < 0",
        cause="the model computes no numbers: on sm_120 the kernels for NVFP4 weights do that",
        fix="use the INT4 or FP8 checkpoint of the model on RTX PRO 6000",
        source=f"{SGLANG}18954, https://github.com/flashinfer-ai/flashinfer/issues/2577; "
        f"sglang/srt/layers/sampler.py:84 (0.5.12)",
    ),
    Signature(
        id="gpu.deep_gemm",
        pattern=r"Assertion error \([^)\n]{1,200}\.hpp:\d+\): (?P<why>Unknown SF transformation|Unknown "
        r"recipe|Unsupported architecture)",
        cause="DeepGEMM has no kernel for this generation of GPUs ({why})",
        fix="set SGLANG_ENABLE_JIT_DEEPGEMM=0 in the environment",
        source=f"{SGLANG}25877",
    ),
    Signature(
        id="gpu.illegal_access",
        pattern=r"an illegal memory access was encountered",
        cause="a kernel read or wrote beyond its memory; the traceback stands where it was noticed, not where it "
        "happened",
        fix="start once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; then another attention_backend, or no "
        "speculation",
        source="CUDA error 700",
        kind=GENERAL,
    ),
    Signature(
        id="gpu.device_assert",
        pattern=r"device-side assert triggered",
        cause="a kernel found a value that must not be, most often an index beyond a table",
        fix="start once with CUDA_LAUNCH_BLOCKING=1 to see the kernel",
        source="CUDA error 710; NVIDIA's Xid catalogue, Xid 43",
        kind=GENERAL,
    ),
    Signature(
        id="gpu.capture",
        pattern=r"Capture cuda graph failed: (?P<why>[^\n]{1,200})",
        cause="a CUDA graph could not be captured: {why}",
        fix="find the cause in the first exception; the engine's advice to lower mem_fraction_static follows "
        "every failed "
        "capture, whatever it died of",
        source=f"{H200}; sglang/srt/model_executor/runner_backend_utils/__init__.py:14 (0.5.20)",
        kind=GENERAL,
    ),
)
