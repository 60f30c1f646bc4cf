# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the drafter's token ids mean the base's tokens?"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..checks import Check
from .pair import LLAMA, Pair, skipped, verdict

# 8 bytes for each of the largest vocabulary seen (262,144), with room.
MAX_TABLE_BYTES = 4_194_304
INTEGERS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "U16": "H", "U32": "I", "U64": "Q"}


def vocab_size(pair: Pair) -> list[Check]:
    """The drafter's embedding is laid out for the base's vocabulary."""
    request, config = pair.request, pair.drafter.config
    base, own = pair.base.config.text_part.need("vocab_size"), config.need("vocab_size")
    # On one GPU the base's embedding takes the place of the drafter's, whatever its own size; on several the rows are
    # found by the drafter's own size (vocab_parallel_embedding.py).
    target = config.integer("target_hidden_size")
    keeps = target is not None and target != config.need("hidden_size")
    mild = request.tp_size == 1 and not keeps
    return [
        verdict(
            "drafter.vocab_size",
            own == base,
            f"vocab_size {base}, that of the base",
            f"vocab_size {own} in {config.where}",
            f"set {request.variable('drafter')} to a drafter made for this base",
            request.where("srt/models/llama_eagle3.py, srt/layers/vocab_parallel_embedding.py"),
            otherwise="warn" if mild else "fail",
        )
    ]


def head(pair: Pair) -> list[Check]:
    """The config says where the drafter's head comes from, and the weights agree."""
    request, config = pair.request, pair.drafter.config
    id, source = "drafter.lm_head", request.where("srt/models/llama_eagle3.py")
    drafter = request.variable("drafter")
    ships = "lm_head.weight" in pair.drafter.tensors
    if config.flag("tie_word_embeddings"):
        return [
            verdict(
                id,
                not ships,
                "no lm_head.weight where tie_word_embeddings is true",
                "lm_head.weight, which the engine passes over" if ships else "none: the base's embedding is the head",
                f"set tie_word_embeddings to false in the config.json of {drafter}",
                source,
            )
        ]
    if config.architecture == LLAMA and not config.has("draft_vocab_size"):
        fix = f"add draft_vocab_size to the config.json of {drafter}: the rows of its lm_head.weight"
        return [Check(id, "fail", f"draft_vocab_size in {config.where}", "no such key", fix, source)]
    if config.integer("draft_vocab_size") is not None:
        told = f"draft_vocab_size {config.integer('draft_vocab_size')}, its own head"
        return [Check(id, "pass", "a head of its own, or the base's", told, "", source)]
    if config.architecture == LLAMA and not request.since("0.5.2"):
        fix = "install SGLang 0.5.2 or later, which takes the base's head then"
        return [Check(id, "fail", "draft_vocab_size as a number", "null", fix, source)]
    base, own = pair.base.config.text_part.need("hidden_size"), config.need("hidden_size")
    if base != own:
        found = f"the base's head of width {base} for states of width {own}"
        fix = f"set {drafter} to a drafter with a head of its own"
        return [Check(id, "fail", f"a head for hidden size {own}", found, fix, source)]
    if ships:
        found = "lm_head.weight in the drafter, which the base's replaces since draft_vocab_size is not set"
        fix = f"set draft_vocab_size in the config.json of {drafter} to the rows of its lm_head.weight"
        return [Check(id, "warn", "the head that the drafter was trained with", found, fix, source)]
    return [Check(id, "pass", "a head of its own, or the base's", "the base's", "", source)]


def draft_ids(pair: Pair) -> Sequence[int] | None:
    """The base's id for each draft id (d2t holds the differences), or None when d2t is no table. Raises
    CheckpointError.

    SGLang srt/models/llama_eagle3.py load_weights: hot_token_id = d2t + arange.
    """
    tensor = pair.drafter.tensors["d2t"]
    if tensor.dtype not in INTEGERS or len(tensor.shape) != 1:
        return None
    data = pair.drafter.data("d2t", MAX_TABLE_BYTES)
    offsets = struct.unpack(f"<{tensor.shape[0]}{INTEGERS[tensor.dtype]}", data)
    return [position + offset for position, offset in enumerate(offsets)]


def table(pair: Pair) -> list[Check]:
    """Draft ids are the base's ids, or d2t leads from each to one of the base's."""
    request, config = pair.request, pair.drafter.config
    id, source = "drafter.d2t", request.where("srt/models/llama_eagle3.py load_weights")
    drafter = request.variable("drafter")
    base = pair.base.config.text_part.need("vocab_size")
    tied = config.flag("tie_word_embeddings")
    draft = config.integer("draft_vocab_size") or (base if tied else config.need("vocab_size"))
    tensors = pair.drafter.tensors
    if "d2t" not in tensors:
        return [
            verdict(
                id,
                draft == base,
                f"d2t from {draft} draft ids to the base's {base}, or vocabularies of one size",
                "no d2t" if draft != base else f"no d2t, and {base} ids in both",
                f"set {drafter} to a drafter that ships d2t",
                source,
            )
        ]
    expected = f"d2t: {draft} whole numbers that lead into the base's {base} ids"
    ids = draft_ids(pair)
    if ids is None or len(ids) != draft or not ids:
        found = f"d2t {list(tensors['d2t'].shape)} of {tensors['d2t'].dtype}"
        fix = f"set {drafter} to a drafter whose d2t belongs to its config.json"
        return [Check(id, "fail", expected, found, fix, source)]
    low, high = min(ids), max(ids)
    inside = low >= 0 and high < base
    fix = f"set {drafter} to a drafter made for this base"
    checks = [verdict(id, inside, expected, f"{len(ids)} ids from {low} to {high}", fix, source)]
    if inside:
        again = len(ids) - len(set(ids))
        checks.append(
            verdict(
                "drafter.d2t_unique",
                not again,
                "another id of the base for each draft id",
                f"{again} draft ids that lead to the id of another one" if again else "no id twice",
                f"set {drafter} to a drafter whose d2t is whole",
                source,
                otherwise="warn",
            )
        )
        checks += reverse(pair, ids, base)
    return checks


def reverse(pair: Pair, ids: Sequence[int], base: int) -> list[Check]:
    """t2d, which the engine does not read, marks the same ids: otherwise one of the two tables is not this
    drafter's."""
    id = "drafter.t2d"
    expected = f"t2d to mark the {len(set(ids))} ids that d2t leads to"
    tensor = pair.drafter.tensors.get("t2d")
    if tensor is None:
        return [skipped(id, expected, "the drafter ships no t2d, and the engine reads none")]
    if tensor.dtype not in ("BOOL", "U8", "I8") or len(tensor.shape) != 1:
        return [skipped(id, expected, f"t2d {list(tensor.shape)} of {tensor.dtype} is not a list of marks")]
    data = pair.drafter.data("t2d", MAX_TABLE_BYTES)
    marked = {position for position, mark in enumerate(data) if mark}
    good = marked == set(ids) and len(data) == base
    found = f"t2d of {len(data)} ids, {len(marked)} marked, {len(marked & set(ids))} of them in d2t"
    fix = f"set {pair.request.variable('drafter')} to a drafter whose tables belong together"
    return [verdict(id, good, expected, found, fix, "speculators src/speculators/model.py", otherwise="warn")]
