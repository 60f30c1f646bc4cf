# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The speculative algorithms that each SGLang release accepts, and how it spells them.

Source: ``SpeculativeAlgorithm`` in sglang/srt/speculative/spec_info.py and the declaration of
``--speculative-algorithm`` (sglang/srt/server_args.py, from 0.5.20 on sglang/srt/arg_groups/fields/spec.py) of the
releases in releases.py.
"""

from __future__ import annotations

from .releases import READ, Span, is_covered
from .versions import Version, parse_version

_ALGORITHMS = {
    "EAGLE": Span(),
    "EAGLE3": Span(),
    # Another name of EAGLE in every release.
    "NEXTN": Span(),
    "STANDALONE": Span(since="0.5.2"),
    "NGRAM": Span(since="0.5.3.post3"),
    "DFLASH": Span(since="0.5.11"),
    "FROZEN_KV_MTP": Span(since="0.5.12"),
    "DSPARK": Span(since="0.5.16"),
    "UNO": Span(since="0.5.20"),
}
# Up to 0.5.11 argparse holds literal choices; from 0.5.12 on the name is upper-cased and plugins may add names.
_LITERAL_CHOICES = Span(until="0.5.11")

# Draft by steps, topk and draft tokens: _handle_speculative_decoding, later _handle_eagle_family (speculative_hook.py).
CHAIN_ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")


def known_algorithms(version: str | Version) -> tuple[str, ...]:
    """The names that ``--speculative-algorithm`` takes in this release.

    A name of which the tables do not tell is left out; releases newer than the newest one read are answered as that.
    """
    release = parse_version(version) if isinstance(version, str) else version
    return tuple(name for name, span in _ALGORITHMS.items() if span.holds(min(release, READ[-1])))


def may_know(name: str, version: Version) -> bool:
    """Whether a name outside ``known_algorithms`` may still be one of the release's: the tables do not tell."""
    span = _ALGORITHMS.get(name.upper())
    return not is_covered(version) or (span is not None and span.holds(version) is None)


def takes_any_case(version: Version) -> bool | None:
    """Whether ``eagle3`` is as good as ``EAGLE3``; None where the tables do not tell."""
    literal = _LITERAL_CHOICES.holds(version)
    return None if literal is None else not literal
