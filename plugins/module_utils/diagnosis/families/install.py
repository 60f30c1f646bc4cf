# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that are missing or do not belong together."""

from __future__ import annotations

from ..signature import GENERAL, SGLANG, Signature

SIGNATURES = (
    Signature(
        id="install.kernels",
        pattern=r"\[sgl_kernel\] CRITICAL: Could not load any common_ops library",
        cause="sglang-kernel cannot be loaded: it was built for another PyTorch or CUDA, or a library of the "
        "system is missing",
        fix="install PyTorch and sglang-kernel as this SGLang pins them (role sglang_install); the log names what "
        "was missing "
        "under 'Error details'",
        source=f"{SGLANG}29646, {SGLANG}16052, https://github.com/sgl-project/sglang/pull/30562",
    ),
    Signature(
        id="install.symbol",
        pattern=r"^ImportError: (?P<file>/\S+\.so\S*): undefined symbol: (?P<symbol>\S+)",
        cause="{file} was built for another version of PyTorch or CUDA: it misses {symbol}",
        fix="install both as this SGLang pins them (role sglang_install)",
        source="https://github.com/agentica-project/rllm/issues/8",
    ),
    Signature(
        id="install.library",
        pattern=r"^(?:ImportError|OSError): (?P<file>lib[\w.+-]+): cannot open shared object file",
        cause="the library {file} is not installed",
        fix="install the package that holds it; libcudart, libnvrtc and libnccl come with the wheels that PyTorch "
        "asks for",
        source=f"{SGLANG}16052",
    ),
    Signature(
        id="install.glibc",
        pattern=r"version `GLIBC_(?P<version>[\d.]+)' not found",
        cause="a wheel needs glibc {version}, which this distribution does not have",
        fix="use Debian 12, Ubuntu 22.04 or later: SGLang's wheels are built for glibc 2.34 from 0.5.11 on",
        source="the wheels' tag manylinux_2_34",
        versions="0.5.11 and later",
    ),
    Signature(
        id="install.too_old",
        pattern=r"^Exception: (?P<package>[\w-]+) (?:is installed with version (?P<have>\S+), which is less than "
        r"the|with) minimum "
        r"required version (?P<want>[\w.]*\w)",
        cause="the engine wants {package} {want} or later",
        fix="install the packages as this SGLang pins them (role sglang_install)",
        source="sglang/srt/utils/common.py:2210 (0.5.20)",
    ),
    Signature(
        id="install.compiler",
        pattern=r"Could not find nvcc|nvcc: not found|CUDA_HOME environment variable is not set|"
        r"Ninja is required to load C\+\+ extensions|No such file or directory: '(?:/[^'\n]*/)?(?:nvcc|ninja)'|"
        r"Could not find CUDA installation",
        cause="the engine compiles kernels at the first start, and nvcc or ninja is not on the unit's PATH",
        fix="install the compiler and name it in the unit's environment: CUDA_HOME and PATH (role cuda_toolkit)",
        source="https://github.com/smg-project/smg/pull/513 (0.5.9 and later compile kernels); gptq_marlin_repack "
        "on Kimi K2.6",
    ),
    Signature(
        id="install.compiler_old",
        pattern=r"nvcc fatal\s*: Unsupported gpu architecture '(?P<arch>\w+)'",
        cause="this nvcc is too old for the GPU: it does not know {arch}",
        fix="install CUDA 12.8 or later for Blackwell (role cuda_toolkit), and let CUDA_HOME name it",
        source="https://github.com/sgl-project/sglang/pull/9340",
    ),
    Signature(
        id="install.compile",
        pattern=r"ninja exited with status (?P<status>\d+)|ninja: build stopped",
        cause="a kernel could not be compiled",
        fix="read the first line with 'error:' in the log: it comes from the compiler",
        source=f"{SGLANG}26545",
        kind=GENERAL,
    ),
    Signature(
        id="install.package",
        pattern=r"^ModuleNotFoundError: No module named '(?P<name>[\w.]+)'",
        cause="the engine imports {name}, which is not installed in its venv",
        fix="install the packages that this SGLang asks for (role sglang_install; sglang_info lists what is missing)",
        source="seen on an H200 with SGLang 0.5.15 (cutlass)",
        kind=GENERAL,
    ),
)
