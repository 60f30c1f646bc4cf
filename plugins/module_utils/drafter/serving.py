# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Would the flags that the pair is served with stop the drafter, after minutes of loading the base?"""

from __future__ import annotations

from ..checkpoint.config import Config
from ..checks import Check
from .pair import MLA, Pair, Request, skipped, verdict
from .sizes import quantisation

OVERWRITE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
# Quantisation methods whose class cannot be made without the checkpoint's own settings: TypeError.
# SGLang 0.5.20 srt/layers/quantization, __init__ of the configs in QUANTIZATION_METHODS.
NEED_SETTINGS = frozenset(
    {
        "awq",
        "awq_marlin",
        "gptq",
        "gptq_marlin",
        "moe_wna16",
        "compressed-tensors",
        "compressed_tensors",
        "auto-round",
        "modelopt_mixed",
    }
)
# Pairs of a flag and a checkpoint's method that go together. SGLang 0.5.20 srt/configs/model_config.py
# compatible_quantization_methods.
SAME_METHOD = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt",),
    "modelopt_mixed": ("modelopt",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
}
# Kernels that only models with multi-head latent attention can use, and those that such models cannot use.
# SGLang 0.5.20 srt/layers/attention/attention_registry.py; flashmla and cutlass_mla fail in the draft worker for want
# of kv_lora_rank, as seen with 0.5.15.
MLA_BACKENDS = frozenset({"trtllm_mla", "tokenspeed_mla", "cutedsl_mla", "flashmla", "cutlass_mla"})
PLAIN_BACKENDS = frozenset({"trtllm_mha", "hpc_ops"})
# Backends that the draft worker has no counterpart of. SGLang 0.5.9 and 0.5.23 srt/speculative/draft_utils.py.
NO_DRAFT_BACKENDS = frozenset({"cutlass_mla", "torch_native", "flex_attention", "dual_chunk_flash_attn"})
DRAFT_BACKENDS = frozenset(
    {"flashinfer", "triton", "aiter", "fa3", "flashmla", "trtllm_mha", "trtllm_mla", "nsa", "ascend"}
)
FLOATS = {"float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32"}


def context(pair: Pair) -> list[Check]:
    """The drafter's own limit is not below the context that the base is served with.

    SGLang srt/configs/model_config.py _derive_context_length: a warning up to 0.4.9, from 0.5.2 on a ValueError that
    comes after the base's weights are loaded.
    """
    request = pair.request
    source = request.where("srt/configs/model_config.py _derive_context_length")
    filled = request.since("0.5.10")
    base, own = (checkpoint.config.text_part.context(filled) for checkpoint in (pair.base, pair.drafter))
    length = request.variable("context_length")
    raises = request.since("0.5.2") and not request.allow_longer_context
    asked = request.context_length
    checks = []
    if asked is not None:
        checks.append(
            verdict(
                "base.context",
                asked <= base,
                f"a context of at most {base} tokens, which the base derives from its config",
                f"{length} {asked}",
                f"set {length} to {base} or less",
                source,
                otherwise="fail" if raises else "warn",
            )
        )
    served = asked if asked is not None else base
    fix = f"set {length} to {own} or less, or give the engine {OVERWRITE}=1 and expect less to be accepted beyond it"
    if not raises:
        fix = f"set {length} to {own} or less, or expect less to be accepted beyond it"
    checks.append(
        verdict(
            "drafter.context",
            served <= own,
            f"a drafter for {served} tokens, the context of the base",
            f"{own} tokens derived from {pair.drafter.config.where}",
            fix,
            source,
            otherwise="fail" if raises else "warn",
        )
    )
    return checks


def resolved_dtype(config: Config, request: Request) -> str | None:
    """The type that the engine computes in; None when the config names one that is not known here. Raises ConfigError.

    SGLang 0.5.20 srt/configs/model_config.py _get_and_verify_dtype: float32, or none at all, becomes float16
    (bfloat16 for gemma).
    """
    if request.dtype != "auto":
        return FLOATS.get(request.dtype)
    declared = config.text_part.dtype or config.dtype
    if declared is not None and declared != "float32":
        return FLOATS.get(declared)
    return "bfloat16" if (config.text_part.text("model_type") or "").startswith("gemma") else "float16"


def dtype(pair: Pair) -> list[Check]:
    """The drafter computes in the type of the states that the base hands over."""
    request = pair.request
    id, source = "drafter.dtype", request.where("srt/configs/model_config.py _get_and_verify_dtype")
    base, own = resolved_dtype(pair.base.config, request), resolved_dtype(pair.drafter.config, request)
    expected = f"a drafter that computes in {base}, the base's type"
    if base is None or own is None:
        return [skipped(id, expected, "the declared type is not one that is known here", source)]
    declared = pair.drafter.config.dtype
    return [
        verdict(
            id,
            base == own,
            expected,
            f"{own}"
            if declared or request.dtype != "auto"
            else f"{own}, since {pair.drafter.config.where} names no type",
            f"set {request.variable('dtype')} to {base}, or torch_dtype in the drafter's config.json",
            source,
        )
    ]


def quantization(pair: Pair) -> list[Check]:
    """What the base is quantised with is not forced on a drafter that is not."""
    request = pair.request
    checks = []
    theirs, asked = quantisation(pair.base.config.text_part) or quantisation(pair.base.config), request.quantization
    if asked not in (None, "unquant") and theirs is not None:
        checks.append(
            verdict(
                "base.quantization",
                _same(asked, theirs),
                f"{theirs}, which the base declares",
                f"{request.variable('quantization')} {asked}",
                f"leave {request.variable('quantization')} unset: the engine reads the base's own",
                request.where("srt/configs/model_config.py _verify_quantization"),
            )
        )
    return [*checks, draft_quantization(pair)]


def draft_quantization(pair: Pair) -> Check:
    """What reaches the drafter: its own method, what is set for it, or what is typed for the base."""
    request = pair.request
    id, source = "drafter.quantization", request.where("srt/model_loader/weight_utils.py get_quant_config")
    separate = request.since("0.5.7")
    own = quantisation(pair.drafter.config)
    given = request.draft_quantization if separate else None
    value = given if given is not None else request.quantization
    variable = request.variable("draft_quantization" if given is not None else "quantization")
    if value == "unquant" and separate:
        value = None
    unset = f"set {request.variable('draft_quantization')} to unquant" if separate else f"leave {variable} unset"
    expected = "no quantisation that the drafter's weights do not have"
    if own is not None:
        if value is None or _same(value, own):
            return Check(id, "pass", expected, f"{own}, which the drafter declares", "", source)
        found = f"{variable} {value} for a drafter that declares {own}"
        if not request.since("0.5.6"):
            return Check(id, "fail", f"{own}, which the drafter declares", found, f"leave {variable} unset", source)
        return Check(id, "pass", expected, f"{found}, which is what counts", "", source)
    if value is None:
        return Check(id, "pass", expected, "none", "", source)
    found = f"{variable} {value} for a drafter that declares none"
    if value in NEED_SETTINGS:
        return Check(
            id, "fail", expected, f"{found}: the engine ends with a TypeError after the base is loaded", unset, source
        )
    if pair.drafter.config.architecture == MLA and value != "modelopt_fp4":
        return Check(id, "fail", expected, f"{found}, whose class takes plain weights only", unset, source)
    return Check(id, "warn", expected, f"{found}: its weights are quantised as they are loaded", unset, source)


def _same(flag: str, method: str) -> bool:
    plain = method.replace("_", "-")
    return flag.replace("_", "-") == plain or method in SAME_METHOD.get(flag, ()) or plain in SAME_METHOD.get(flag, ())


def attention_backend(pair: Pair) -> list[Check]:
    """The drafter's kind of attention has a kernel in the backend that it will get."""
    request = pair.request
    id, source = "drafter.attention_backend", request.where("srt/layers/attention/attention_registry.py")
    draft = request.variable("draft_attention_backend")
    separate = request.since("0.5.7")
    value = request.draft_attention_backend if separate else None
    variable = draft if value is not None else request.variable("attention_backend")
    value = value if value is not None else request.attention_backend
    mla = pair.drafter.config.text_part.integer("kv_lora_rank") is not None
    kind = "multi-head latent attention" if mla else "grouped-query attention"
    expected = f"a backend for a drafter with {kind}"
    if value is None:
        reason = "neither backend is set: the engine chooses by the GPU, and the drafter gets the base's"
        return [skipped(id, expected, reason, source)]
    fix = f"set {draft} to triton" if separate else f"set {variable} to triton or flashinfer"
    if value in (PLAIN_BACKENDS if mla else MLA_BACKENDS) or value in NO_DRAFT_BACKENDS:
        why = "which has no draft worker" if value in NO_DRAFT_BACKENDS else "made for the other kind"
        return [Check(id, "fail", expected, f"{variable} {value}, {why}", fix, source)]
    if value in DRAFT_BACKENDS:
        return [Check(id, "pass", expected, f"{variable} {value}", "", source)]
    return [skipped(id, expected, f"{variable} {value} is not in the tables here", source)]
