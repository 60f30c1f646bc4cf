# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that the engine refuses."""

from __future__ import annotations

from ..signature import H200, Signature

SIGNATURES = (
    Signature(
        id="flags.unknown",
        pattern=r"error: unrecognized arguments: (?P<flags>.+)",
        cause="the engine does not know {flags}: misspelt, or a flag of another version",
        fix="take it out of the arguments, or write it as the installed version does (sglang_args checks that)",
        source="argparse, as sglang/srt/server_args.py uses it",
    ),
    Signature(
        id="flags.value",
        pattern=r"error: argument (?P<flag>--[\w-]+)[^:\n]*: (?P<why>(?:invalid|expected)[^\n]{1,120})",
        cause="the engine refuses the value of {flag}: {why}",
        fix="give {flag} a value that the installed version accepts",
        source="argparse, as sglang/srt/server_args.py uses it",
    ),
    Signature(
        id="flags.draft_numbers",
        pattern=r"in _handle_(?:eagle_family|speculative_decoding)\n(?:.*\n){0,6}?AssertionError\s*$",
        cause="speculative_num_draft_tokens or speculative_eagle_topk was given without speculative_num_steps; "
        "the engine "
        "asserts that without a word",
        fix="give speculative_num_steps, speculative_eagle_topk and speculative_num_draft_tokens together, or "
        "none of them",
        source=f"{H200}; sglang/srt/arg_groups/speculative_hook.py:380 (0.5.15)",
    ),
    Signature(
        id="flags.draft_topk",
        pattern=r"in _handle_(?:eagle_family|speculative_decoding)\n(?:.*\n){0,6}?"
        r"TypeError: '>' not supported between instances of 'NoneType' and 'int'",
        cause="speculative_num_steps was given without speculative_eagle_topk",
        fix="give speculative_num_steps, speculative_eagle_topk and speculative_num_draft_tokens together, or "
        "none of them",
        source=f"{H200}; sglang/srt/arg_groups/speculative_hook.py:455 (0.5.15)",
    ),
    Signature(
        id="flags.draft_pipeline",
        pattern=r"Pipeline parallelism is not compatible with overlap schedule, speculative decoding",
        cause="speculative decoding and pipeline parallelism exclude each other",
        fix="leave pp_size at 1 and split the model with tp_size",
        source="sglang/srt/arg_groups/validation_hook.py:83 (0.5.20), sglang/srt/server_args.py:7250 (0.5.12)",
    ),
    Signature(
        id="flags.draft_page_size",
        pattern=r"topk\S* > 1 with page_size\S* > 1 is (?:unstable|only supported)",
        cause="a draft tree (topk above 1) over KV pages of more than one token is wrong on this attention backend",
        fix="set speculative_eagle_topk to 1",
        source="sglang/srt/server_args.py:3843 (0.5.12), sglang/srt/arg_groups/speculative_hook.py:993 (0.5.20)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="flags.draft_topk_backend",
        pattern=r"Error: (?:Currently )?(?P<what>[\w ]{1,60}?)(?: currently)? only supports topk ?= ?1",
        cause="{what} drafts a chain only, and topk is above 1",
        fix="set speculative_eagle_topk to 1 and speculative_num_draft_tokens to speculative_num_steps + 1",
        source="sglang/srt/arg_groups/speculative_hook.py:920 (0.5.20), "
        "sglang/srt/speculative/eagle_worker_v2.py:1136 (0.5.12)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="flags.draft_backend",
        pattern=r"EAGLE is not supported in (?:\w+ )?attention backend (?P<backend>\w+)",
        cause="the attention backend {backend} cannot draft",
        fix="set speculative_draft_attention_backend to triton, flashinfer or fa3 (0.5.7 and later)",
        source="sglang/srt/speculative/draft_utils.py:119 (0.5.20)",
    ),
    Signature(
        id="flags.backend_gpu",
        pattern=r"^ValueError: (?P<backend>.{1,40}) backend is only supported on (?P<gpus>.{1,60}?)\. ",
        cause="the attention backend {backend} runs on {gpus} only",
        fix="choose another attention_backend; triton runs on every NVIDIA GPU",
        source=f"{H200}; sglang/srt/arg_groups/overrides.py:1596 (0.5.15)",
    ),
    Signature(
        id="flags.tp_size",
        pattern=r"^AssertionError: (?P<number>\d+) is not divisible by (?P<parts>\d+)",
        cause="{number} heads or rows of a model cannot be split into {parts} equal parts",
        fix="choose a tp_size that divides the attention heads of the base model and of the drafter",
        source="sglang/srt/distributed/utils.py:55 (0.5.20)",
    ),
    Signature(
        id="flags.quantization",
        pattern=r"Quantization method specified in the model config \((?P<have>[\w-]+)\) does not match the "
        r"quantization "
        r"method specified in the `quantization` argument \((?P<asked>[\w-]+)\)",
        cause="the checkpoint is quantised with {have}, and quantization asks for {asked}",
        fix="leave quantization out: the engine reads it from the checkpoint",
        source="sglang/srt/configs/model_config.py:1857 (0.5.20)",
    ),
)
