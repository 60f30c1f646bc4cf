# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drafter that does not fit, or is not used."""

from __future__ import annotations

from ..signature import H200, HINT, SGLANG, Signature

# The frames of a drafter's traceback, and no more than so many characters up to the exception.
_IN_DRAFTER = r"models/\w*eagle3?\.py\"[\s\S]{0,6000}?"

SIGNATURES = (
    Signature(
        id="drafter.hidden_size",
        pattern=_IN_DRAFTER
        + r"RuntimeError: mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<given>\d+) and (?P<wanted>\d+)x",
        cause="the drafter was made for another base model: it wants {wanted} hidden values and gets {given}. The "
        "advice "
        "about memory that the engine prints after it is wrong",
        fix="use the drafter that was trained for this base model (drafter_compat compares them before a start)",
        source=f"{H200}; sglang/srt/models/llama_eagle3.py, fc",
    ),
    Signature(
        id="drafter.hidden_norm",
        pattern=_IN_DRAFTER
        + r"Check failed: input\.size\(1\) == weight\.size\(0\) \((?P<given>\d+) vs\. (?P<wanted>\d+)\)",
        cause="the drafter was made for another base model: its norm has {wanted} values and gets {given}. The "
        "advice about "
        "memory that the engine prints after it is wrong",
        fix="use the drafter that was trained for this base model (drafter_compat compares them before a start)",
        source=f"{H200}; sglang/srt/models/llama_eagle3.py, input_layernorm",
    ),
    Signature(
        id="drafter.vocabulary",
        pattern=r"vectorized gather kernel index out of bounds|index\w*Index: .{0,80}Assertion `srcIndex < "
        r"srcSelectDimSize`|"
        r"^IndexError: index out of range in self",
        cause="a token id is beyond the end of an embedding: the drafter's vocabulary is not that of the base model",
        fix="use a drafter of the same tokenizer (drafter_compat compares vocab_size and d2t before a start)",
        source=f"{H200}, which then reports Xid 43; {SGLANG}7139",
    ),
    Signature(
        id="drafter.none",
        pattern=r"^AttributeError: '(?P<base>\w+)' object has no attribute '(?:hot_token_id|set_embed)'",
        cause="no drafter was given, so the engine loaded the base model {base} a second time as its own drafter",
        fix="set speculative_draft_model_path",
        source=f"{H200}; {SGLANG}36528",
    ),
    Signature(
        id="drafter.context_length",
        pattern=r"Target model's context_length \((?P<target>\d+)\) is greater than the derived context_length "
        r"\((?P<derived>\d+)\)[^\n]*set the env var",
        cause="the base model is served with {target} tokens of context, and the drafter's configuration allows "
        "{derived}",
        fix="set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in the environment, or context_length to {derived}",
        source=f"{H200}; sglang/srt/configs/model_config.py:1031 (0.5.20)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="drafter.quantization",
        pattern=r"^TypeError: CompressedTensorsConfig\.__init__\(\) missing \d+ required positional arguments",
        cause="quantization compressed-tensors was given, and the engine applies it to the drafter, which is not "
        "quantised",
        fix="leave quantization out, or set speculative_draft_model_quantization to unquant (0.5.7 and later)",
        source=f"{H200}; sglang/srt/model_loader/weight_utils.py:321 (0.5.15)",
    ),
    Signature(
        id="drafter.attention",
        pattern=r"^ValueError: \w+ backend can only be used with MLA models|"
        r"^AttributeError: 'ModelConfig' object has no attribute 'kv_lora_rank'",
        cause="the drafter has no MLA attention and inherits an attention backend of the base model that can do "
        "nothing else",
        fix="set speculative_draft_attention_backend to triton (0.5.7 and later)",
        source=f"{H200} (flashmla, cutlass_mla); {SGLANG}23490 (trtllm_mla)",
    ),
    Signature(
        id="drafter.base_class",
        pattern=r"^AttributeError: '(?P<base>\w+)' object has no attribute '"
        r"(?:set_eagle3_layers_to_capture|set_dflash_layers_to_capture|get_embed_and_head)'",
        cause="this version of the engine cannot give the hidden states of {base} to a drafter",
        fix="install a version whose class for this base model supports the algorithm (sglang_info tells), or "
        "serve without it",
        source="sglang/srt/model_executor/model_runner_components/attention_backend_setup.py:55 (0.5.20)",
    ),
    Signature(
        id="drafter.class",
        pattern=r"Model architectures \['(?P<name>\w*(?:Eagle3?|EAGLE3?|DFlash|Speculator|Draft)\w*)'",
        cause="this version of the engine knows no drafter of the class {name}",
        fix="install a version that knows it (Eagle3DeepseekV2ForCausalLM: 0.5.12, DFlashDraftModel: 0.5.11), or "
        "take another "
        "drafter",
        source=f"sglang/srt/models/registry.py:51 (0.5.20); {SGLANG}25673",
    ),
    Signature(
        id="drafter.weights",
        pattern=r"speculative/\w*eagle\w*\.py\"[\s\S]{0,8000}?Attempted to load weight "
        r"\(torch\.Size\(\[(?P<have>[\d, ]+)\]\)\) into "
        r"parameter \(torch\.Size\(\[(?P<want>[\d, ]+)\]\)\)",
        cause="a tensor of the drafter has the shape {have} where its configuration says {want}",
        fix="bring the drafter's config.json and weights from one revision (hf_snapshot verifies them)",
        source=f"sglang/srt/model_loader/weight_utils.py:1597 (0.5.20); {SGLANG}9074",
    ),
    Signature(
        id="drafter.dtype",
        pattern=_IN_DRAFTER
        + r"expected m\w+ and m\w+ to have the same dtype, but got: (?P<given>[\w:]+) != (?P<wanted>[\w:]+)",
        cause="the base model computes in {given} and the drafter in {wanted}; without a dtype in its "
        "configuration the "
        "engine takes float16",
        fix="set dtype to bfloat16",
        source="sglang/srt/configs/model_config.py:2284 (0.5.23): a missing dtype becomes float16",
    ),
    Signature(
        id="drafter.draft_vocab_size",
        pattern=r"^AttributeError: '\w+' object has no attribute 'draft_vocab_size'",
        cause="the drafter's config.json has no draft_vocab_size",
        fix="add draft_vocab_size (null if it equals the base model's vocabulary) to the drafter's config.json, "
        "or take a "
        "drafter that was exported for SGLang",
        source="sglang/srt/models/llama_eagle3.py:295 (0.5.20)",
    ),
    Signature(
        id="drafter.accepts_nothing",
        pattern=r"accept len: 1\.00, accept rate: 0\.00",
        unless=r"accept len: (?!1\.00)\d",
        cause="the base model accepted not one draft token: the server is right, and slower than without speculation",
        fix="check speculative_algorithm (EAGLE3, not EAGLE), the drafter's layer ids and the base model it was "
        "trained for "
        "(drafter_compat)",
        source=f"{H200}; {SGLANG}21272",
        kind=HINT,
    ),
    Signature(
        id="drafter.tensors_left_out",
        pattern=r"Eagle3 MLA: skipping unexpected weight (?P<name>\S+)",
        cause="the engine left out the drafter's tensor {name}: its configuration or this version does not use "
        "it, and fewer "
        "tokens are accepted",
        fix="bring the drafter's config.json from the revision of its weights; fc_norm and norm_output need "
        "0.5.12 or later",
        source="seen on an H200 with SGLang 0.5.15: accept length 2.2 instead of 3.2; "
        "sglang/srt/models/kimi_k25_eagle3.py:492",
        versions="0.5.12 and later",
        kind=HINT,
    ),
    Signature(
        id="drafter.numbers_changed",
        pattern=r"speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1",
        cause="with topk 1 the engine drafts speculative_num_steps + 1 tokens, not the number that was asked for",
        fix="set speculative_num_draft_tokens to speculative_num_steps + 1",
        source="sglang/srt/arg_groups/speculative_hook.py:974 (0.5.20)",
        kind=HINT,
    ),
)
