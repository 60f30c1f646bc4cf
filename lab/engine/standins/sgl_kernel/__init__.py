# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU stand-in for the package sgl-kernel, of which no CPU wheel is published.

SGLang's CPU path asks it for attention and for the bookkeeping of speculation. Both are written here in plain PyTorch
for the one case that the lab runs: plain text, EAGLE with topk 1, so that a draft is a chain and not a tree. Every
other name can be imported and says so when it is called.
"""

from __future__ import annotations

import ctypes
from typing import Any, NoReturn

import torch

__version__ = "0.0.0+cpustandin"

QLEN_ONLY = 1


def build_tree_kernel_efficient_cpu(
    parent_list,
    selected_index,
    verified_seq_len,
    tree_mask,
    positions,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    topk,
    depth,
    draft_token_num,
    tree_mask_mode,
):
    """Lay out the draft of each request as a chain: each token follows the one before it, none has a sibling."""
    if topk != 1 or tree_mask_mode != QLEN_ONLY:
        raise NotImplementedError("stand-in: only topk 1 with the QLEN_ONLY mask")
    tokens, requests = draft_token_num, verified_seq_len.numel()
    step = torch.arange(tokens)
    positions.copy_((verified_seq_len.view(requests, 1) + step).reshape(-1))
    retrive_index.copy_(torch.arange(requests * tokens).view(requests, tokens))
    retrive_next_token.copy_(torch.cat([step[1:], torch.tensor([-1])]).expand(requests, tokens))
    retrive_next_sibling.fill_(-1)
    causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    tree_mask.copy_(causal.expand(requests, tokens, tokens).reshape(tree_mask.shape))


def verify_tree_greedy_cpu(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Accept a draft token while it and all before it equal the base model's own choice one place earlier."""
    requests, tokens = candidates.shape
    if not bool((retrive_next_sibling == -1).all()):
        raise NotImplementedError("stand-in: chains only")
    target = target_predict.view(requests, tokens)
    accepted = (candidates[:, 1:] == target[:, :-1]).int().cumprod(dim=1).sum(dim=1)
    accepted = accepted.clamp(max=accept_index.shape[1] - 1)
    for request in range(requests):
        kept = int(accepted[request]) + 1
        rows = retrive_index[request, :kept]
        accept_index[request, :kept] = rows.to(accept_index.dtype)
        predicts[rows.long()] = target[request, :kept].to(predicts.dtype)
    accept_token_num.copy_(accepted.to(accept_token_num.dtype))


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    """Write each request's new cache slots into its row of the token table."""
    at = 0
    for row, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist()):
        req_to_token[row, start:end] = out_cache_loc[at : at + end - start].to(req_to_token.dtype)
        at += end - start


def assign_extend_cache_locs_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    """Read each request's cache slots back out of its row of the token table."""
    at = 0
    for row, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist()):
        out_cache_loc[at : at + end - start] = req_to_token[row, start:end].to(out_cache_loc.dtype)
        at += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices, req_to_token, seq_lens, out_cache_loc, pool_len, topk, num_steps
):
    """The slots behind each request's prefix are those of its draft."""
    slots = topk * num_steps
    for request, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist())):
        out_cache_loc[request * slots : (request + 1) * slots] = req_to_token[row, length : length + slots]


def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    """The last accepted token of each request is the base model's own."""
    rows = torch.arange(accept_lens.numel())
    bonus_tokens.copy_(accept_tokens.view(-1, accept_stride)[rows, accept_lens.long() - 1])


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc):
    """Gather the cache slots of what was accepted."""
    kept = out_cache_loc[accept_index[accept_index >= 0].long()]
    accept_out_cache_loc[: kept.numel()] = kept


def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc):
    """Move rows of every layer's KV cache, read whole before the first is written."""
    moves = [(target, source) for target, source in zip(tgt_loc.tolist(), src_loc.tolist()) if target != source]
    for pointer, stride in zip(data_ptrs.tolist(), strides.tolist()):
        rows = [(target, ctypes.string_at(pointer + source * stride, stride)) for target, source in moves]
        for target, row in rows:
            ctypes.memmove(pointer + target * stride, row, stride)


def build_draft_decode_metadata_cpu(req_to_token, req_pool_indices, seq_lens, topk, num_steps, pool_len):
    """A chain's draft slots already follow its prefix in the token table."""
    if topk != 1:
        raise NotImplementedError("stand-in: topk 1 only")
    return req_to_token[req_pool_indices.long()].contiguous()


def _attend(query, k_buffer, v_buffer, slots, scaling, mask):
    keys, values = k_buffer[slots].to(query.dtype), v_buffer[slots].to(query.dtype)
    query, keys, values = (x.transpose(0, 1).unsqueeze(0) for x in (query, keys, values))
    attended = torch.nn.functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask, scale=scaling, enable_gqa=True
    )
    return attended.squeeze(0).transpose(0, 1)


def _plain_only(*features: object) -> None:
    if any(isinstance(feature, torch.Tensor) or feature for feature in features):
        raise NotImplementedError("stand-in: plain causal text attention only")


def _extend_attention_cpu(
    q,
    k,
    v,
    o,
    k_buffer,
    v_buffer,
    k_scale,
    v_scale,
    req_to_token,
    req_pool_indices,
    seq_lens,
    extend_seq_lens,
    extend_start_loc,
    max_extend,
    scaling,
    logit_cap,
    is_cross,
    sliding_window,
    encoder_lens,
    sinks,
    tree_mask,
    is_causal,
):
    _plain_only(logit_cap, is_cross, sliding_window, sinks, tree_mask)
    for request, row in enumerate(req_pool_indices.tolist()):
        total, new, at = int(seq_lens[request]), int(extend_seq_lens[request]), int(extend_start_loc[request])
        mask = torch.ones(new, total, dtype=torch.bool)
        if is_causal:
            mask = mask.tril(total - new)
        o[at : at + new] = _attend(
            q[at : at + new], k_buffer, v_buffer, req_to_token[row, :total].long(), scaling, mask
        )


def _decode_attention_cpu(
    q,
    k_buffer,
    v_buffer,
    k_scale,
    v_scale,
    o,
    k,
    v,
    loc,
    attn_logits,
    req_to_token,
    req_pool_indices,
    seq_lens,
    scaling,
    logit_cap,
    is_cross,
    sliding_window,
    encoder_lens,
    sinks,
):
    _plain_only(logit_cap, is_cross, sliding_window, sinks)
    if k is not None:
        k_buffer[loc] = k.view(-1, *k_buffer.shape[1:]).to(k_buffer.dtype)
        v_buffer[loc] = v.view(-1, *v_buffer.shape[1:]).to(v_buffer.dtype)
    for request, row in enumerate(req_pool_indices.tolist()):
        slots = req_to_token[row, : int(seq_lens[request])].long()
        o[request : request + 1] = _attend(q[request : request + 1], k_buffer, v_buffer, slots, scaling, None)


# The attention backend "intel_amx" looks its two kernels up here; it needs nothing else of AMX.
torch.ops.sgl_kernel.extend_attention_cpu = _extend_attention_cpu
torch.ops.sgl_kernel.decode_attention_cpu = _decode_attention_cpu


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"sgl_kernel.{name}: no CPU stand-in")

    return missing
