# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the drafter's token ids mean the base's tokens?"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..checks import Check
from .pair import Pair, verdict

# 8 bytes for each of the largest vocabulary seen (262,144), with room.
MAX_TABLE_BYTES = 4_194_304
INTEGERS = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "U16": "H", "U32": "I", "U64": "Q"}


def draft_ids(pair: Pair) -> Sequence[int] | None:
    """The base's id for each draft id (d2t holds the differences), or None without d2t. Raises CheckpointError.

    SGLang srt/models/llama_eagle3.py load_weights: hot_token_id = d2t + arange.
    """
    tensor = pair.drafter.tensors.get("d2t")
    if tensor is None or tensor.dtype not in INTEGERS or len(tensor.shape) != 1:
        return None
    data = pair.drafter.data("d2t", MAX_TABLE_BYTES)
    offsets = struct.unpack(f"<{tensor.shape[0]}{INTEGERS[tensor.dtype]}", data)
    return [position + offset for position, offset in enumerate(offsets)]


def sizes(pair: Pair) -> list[Check]:
    """The vocabularies are the same, or a table of the right length and range leads from one to the other."""
    request, config = pair.request, pair.drafter.config
    source = request.where("srt/models/llama_eagle3.py")
    drafter = request.variable("drafter")
    base = pair.base.config.text_part.need("vocab_size")
    own = config.need("vocab_size")
    checks = [
        verdict(
            "drafter.vocab_size",
            own == base,
            f"vocab_size {base}, that of the base",
            f"vocab_size {own} in {config.where}",
            f"set {drafter} to a drafter made for this base",
            source,
        )
    ]
    draft = config.integer("draft_vocab_size") or own
    table = pair.drafter.tensors.get("d2t")
    if table is None:
        checks.append(
            verdict(
                "drafter.d2t",
                draft == base,
                f"a table d2t from {draft} draft ids to the base's {base}, or vocabularies of the same size",
                "no d2t" if draft != base else f"no d2t, and {draft} ids in both",
                f"set {drafter} to a drafter that ships d2t",
                source,
            )
        )
        return checks
    wanted = f"d2t of {draft} whole numbers that lead into the base's {base} ids"
    ids = draft_ids(pair)
    if ids is None or len(ids) != draft:
        found = f"d2t {list(table.shape)} of {table.dtype}"
        fix = f"set {drafter} to a drafter whose d2t belongs to its config.json"
        return [*checks, Check("drafter.d2t", "fail", wanted, found, fix, source)]
    low, high = min(ids), max(ids)
    checks.append(
        verdict(
            "drafter.d2t",
            low >= 0 and high < base,
            wanted,
            f"{len(ids)} ids from {low} to {high}",
            f"set {drafter} to a drafter made for this base",
            source,
        )
    )
    return checks
