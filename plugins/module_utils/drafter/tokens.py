# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do base and drafter count tokens alike?"""

from __future__ import annotations

from ..checkpoint.reader import Checkpoint
from ..checks import Check
from .pair import Pair, skipped, verdict

# Files that hold a vocabulary, the one that engines prefer first.
VOCABULARIES = ("tokenizer.json", "tiktoken.model", "tokenizer.model", "vocab.json")
SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")


def special_ids(pair: Pair) -> list[Check]:
    """The ids of the special tokens are the same in both configs, where both name them."""
    request = pair.request
    told, differing = [], []
    for key in SPECIAL:
        ours = _ids(pair.drafter.config.values.get(key))
        theirs = _declared(pair.base, key) if ours else set()
        if theirs and ours:
            told.append(f"{key} {sorted(ours)}")
            if not theirs & ours:
                differing.append(f"{key} {sorted(ours)} where the base has {sorted(theirs)}")
    id, expected = "drafter.special_tokens", "the base's special token ids"
    if not told:
        return [skipped(id, expected, "the two configs name none in common")]
    fix = f"set {request.variable('drafter')} to a drafter made for this base"
    return [verdict(id, not differing, expected, "; ".join(differing or told), fix, "", otherwise="warn")]


def _declared(base: Checkpoint, key: str) -> set[int]:
    """The ids in config.json, in its language model's part, or in generation_config.json. Raises CheckpointError."""
    for values in (base.config.values, base.config.text_part.values):
        if _ids(values.get(key)):
            return _ids(values.get(key))
    generation = base.json("generation_config.json")
    return _ids(generation.values.get(key)) if generation is not None else set()


def _ids(value: object) -> set[int]:
    values = value if isinstance(value, list) else [value]
    return {item for item in values if isinstance(item, int) and not isinstance(item, bool)}


def vocabulary_files(pair: Pair) -> list[Check]:
    """The vocabularies are one, proven by the hashes of their files."""
    standalone = pair.request.method == "STANDALONE"
    id, expected = "drafter.tokenizer", "the vocabulary of the base"
    for name in VOCABULARIES:
        ours = pair.drafter.source.digest(name)
        if ours is None:
            continue
        theirs = pair.base.source.digest(name)
        if theirs is None:
            return [skipped(id, expected, f"the drafter ships {name}, the base does not")]
        same = ours.equals(theirs)
        if same is None:
            return [skipped(id, expected, f"the hashes of {name} are of different kinds")]
        fix = f"set {pair.request.variable('drafter')} to a drafter made for this base"
        found = f"{name} of {ours.bytes} bytes, {'the same' if same else 'another one'}"
        otherwise = "fail" if standalone else "warn"
        return [verdict(id, same, expected, found, fix, "", otherwise)]
    reason = "the drafter ships no vocabulary"
    return [skipped(id, expected, reason if standalone else f"{reason}; the engine reads the base's alone")]


def sizes(pair: Pair) -> list[Check]:
    """STANDALONE drafts in its own vocabulary: no id may lie outside the base's."""
    request = pair.request
    base = pair.base.config.text_part.need("vocab_size")
    own = pair.drafter.config.text_part.need("vocab_size")
    fix = f"set {request.variable('drafter')} to a model of the base's family"
    return [
        verdict(
            "drafter.vocab_size",
            own == base,
            f"vocab_size {base}, that of the base",
            f"vocab_size {own}" + (" (rows that pad the table may differ)" if own < base else ""),
            fix,
            request.where("srt/speculative/standalone_worker_v2.py"),
            otherwise="warn" if own < base else "fail",
        )
    ]
