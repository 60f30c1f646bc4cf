# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The speculative flags of the engine's command line by release: since when, until when, and what to write instead.

Source: every ``--speculative-*`` declaration (``add_argument`` in sglang/srt/server_args.py, ``A[...]`` fields from
0.5.14 on, sglang/srt/arg_groups/fields/ from 0.5.20 on) of the releases in releases.py. A flag that a release does not
have ends its start with argparse's "unrecognized arguments", exit status 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .releases import Span

ALGORITHM = "--speculative-algorithm"
STEPS = "--speculative-num-steps"
TOPK = "--speculative-eagle-topk"
DRAFT_TOKENS = "--speculative-num-draft-tokens"
DRAFTER = "--speculative-draft-model-path"
DRAFTER_QUANTIZATION = "--speculative-draft-model-quantization"
DRAFTER_ATTENTION = "--speculative-draft-attention-backend"
ADAPTIVE = "--speculative-adaptive"
CONFIG = "--config"
MODEL = "--model-path"
TP = "--tp-size"
PP = "--pp-size"
QUANTIZATION = "--quantization"
ATTENTION = "--attention-backend"
PREFILL_ATTENTION = "--prefill-attention-backend"
DECODE_ATTENTION = "--decode-attention-backend"
PAGE_SIZE = "--page-size"
# Their values are never told: API keys and the password of a TLS key.
SECRET = ("--api-key", "--admin-api-key", "--ssl-keyfile-password")

# Other spellings that the engine's parser takes for the same setting.
ALIASES: Mapping[str, str] = {
    "--model": MODEL,
    "--tensor-parallel-size": TP,
    "--pipeline-parallel-size": PP,
    "--speculative-draft-model": DRAFTER,
}


def setting(name: str) -> str:
    """What a flag's name sets, with underscores; ``speculative-draft-model`` is another spelling of one."""
    flag = f"--{name.replace('_', '-')}"
    return ALIASES.get(flag, flag)[2:].replace("-", "_")


@dataclass(frozen=True)
class Flag:
    """One flag: the releases that have it, and what does its work elsewhere."""

    name: str
    span: Span
    instead: str


@dataclass(frozen=True)
class Spelling:
    """How a flag is read: the option string that it is taken for, and the setting which that, or an alias, sets."""

    option: str
    setting: str


SPECULATIVE = tuple(
    Flag(name, Span(since, until), instead)
    for name, since, until, instead in (
        (ALGORITHM, None, None, ""),
        (DRAFTER, None, None, ""),
        (STEPS, None, None, ""),
        (TOPK, None, None, ""),
        (DRAFT_TOKENS, None, None, ""),
        ("--speculative-accept-threshold-acc", None, None, ""),
        ("--speculative-accept-threshold-single", None, None, ""),
        ("--speculative-token-map", None, None, ""),
        ("--speculative-attention-mode", "0.5.2", None, ""),
        ("--speculative-draft-model-revision", "0.5.2", None, ""),
        ("--enable-beta-spec", "0.5.3.post3", "0.5.3.post3", "the variable SGLANG_ENABLE_SPEC_V2=1 (0.5.4 to 0.5.13)"),
        ("--speculative-draft-load-format", "0.5.3.post3", None, ""),
        ("--speculative-ngram-branch-length", "0.5.3.post3", "0.5.9", "--speculative-ngram-max-trie-depth"),
        ("--speculative-ngram-capacity", "0.5.3.post3", None, ""),
        ("--speculative-ngram-match-type", "0.5.3.post3", None, ""),
        ("--speculative-ngram-max-bfs-breadth", "0.5.3.post3", None, ""),
        ("--speculative-ngram-max-match-window-size", "0.5.3.post3", "0.5.9", "--speculative-ngram-max-trie-depth"),
        ("--speculative-ngram-min-bfs-breadth", "0.5.3.post3", None, ""),
        ("--speculative-ngram-min-match-window-size", "0.5.3.post3", "0.5.9", "--speculative-ngram-max-trie-depth"),
        ("--speculative-moe-runner-backend", "0.5.4.post3", None, ""),
        ("--speculative-moe-a2a-backend", "0.5.6.post2", None, ""),
        ("--enable-multi-layer-eagle", "0.5.7", None, ""),
        (DRAFTER_ATTENTION, "0.5.7", None, ""),
        (DRAFTER_QUANTIZATION, "0.5.7", None, ""),
        ("--speculative-ngram-max-trie-depth", "0.5.10.post1", None, ""),
        (ADAPTIVE, "0.5.11", None, ""),
        ("--speculative-adaptive-config", "0.5.11", None, ""),
        ("--speculative-dflash-block-size", "0.5.11", None, ""),
        ("--speculative-dflash-draft-window-size", "0.5.11", "0.5.19", "--speculative-draft-window-size"),
        ("--speculative-ngram-external-corpus-max-tokens", "0.5.11", None, ""),
        ("--speculative-ngram-external-corpus-path", "0.5.11", None, ""),
        ("--speculative-ngram-external-sam-budget", "0.5.11", None, ""),
        ("--speculative-skip-dp-mlp-sync", "0.5.11", "0.5.22", ""),
        ("--speculative-draft-window-size", "0.5.12", None, ""),
        ("--speculative-use-rejection-sampling", "0.5.14", None, ""),
        ("--decoupled-spec-bind-endpoint", "0.5.15", None, ""),
        ("--decoupled-spec-connect-endpoints", "0.5.15", None, ""),
        ("--decoupled-spec-rank", "0.5.15", None, ""),
        ("--decoupled-spec-role", "0.5.15", None, ""),
        ("--spec-trace-dir", "0.5.15", None, ""),
        ("--enable-gdn-replayssm-spec", "0.5.16", "0.5.19", "--enable-linear-replayssm-spec"),
        ("--speculative-dspark-align-verify-tokens-to-graph-tier", "0.5.16", None, ""),
        ("--speculative-dspark-block-size", "0.5.16", None, ""),
        ("--speculative-dspark-confidence-sts-path", "0.5.16", None, ""),
        ("--speculative-dspark-sps-table-path", "0.5.16", None, ""),
        ("--enable-linear-replayssm-spec", "0.5.17", None, ""),
        ("--speculative-draft-kv-cache-dtype", "0.5.18", None, ""),
        ("--speculative-dsa-topk-backend", "0.5.19", None, ""),
        ("--speculative-domino-candidate-pool-size", "0.5.20", None, ""),
        ("--uno-lora-path", "0.5.20", None, ""),
        ("--speculative-draft-sink-size", "0.5.21", None, ""),
        ("--speculative-enable-w4a4-mxfp4-megamoe", "0.5.22", None, ""),
        ("--speculative-use-block-verification", "0.5.22", None, ""),
    )
)


def is_speculative(name: str) -> bool:
    """Whether a flag belongs to speculative decoding, by its name."""
    return re.search(r"speculative|(^--|-)spec(-|$)|eagle|^--uno-", name) is not None


def spelled_in(given: Sequence[str], declared: Mapping[str, str]) -> dict[str, Spelling]:
    """How the engine's parser reads the flags of a list, as far as that is known.

    Besides whole flags argparse takes any beginning that fits only one (``--speculative-algo``); what fits none or
    several stands for itself. ``declared`` maps the flags of the installed engine to those whose aliases they are ("":
    to none); without it only speculative flags and the aliases of the tables are known, others are left out.
    """
    known = dict(declared) or dict.fromkeys((*ALIASES, *ALIASES.values(), *(flag.name for flag in SPECULATIVE)), "")
    found: dict[str, Spelling] = {}
    for flag in given:
        options = [flag] if flag in known else []
        if not options and (declared or flag.startswith("--speculative-")):
            options = [name for name in known if name.startswith(flag)]
        if len(options) == 1:
            main = known[options[0]] or options[0]
            found[flag] = Spelling(options[0], ALIASES.get(main, main))
        elif declared:
            found[flag] = Spelling(flag, flag)
    return found
