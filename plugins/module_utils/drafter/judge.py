# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules, applied to one pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..checkpoint.errors import BudgetError, CheckpointError, ConfigError
from ..checks import FAIL, SKIPPED, Check
from . import identity, layers, sizes, vocabulary
from .pair import Pair

Rule = Callable[[Pair], list[Check]]
# What a rule's check is called when the rule itself cannot be applied.
EAGLE3_RULES: Sequence[tuple[str, Rule]] = (
    ("drafter.hidden_size", sizes.hidden_size),
    ("drafter.vocab_size", vocabulary.sizes),
    ("drafter.aux_layer_ids", layers.aux_layer_ids),
)


def judge(pair: Pair) -> list[Check]:
    """The checks of one pair: the kind of drafter first, and what depends on it only where it is right."""
    checks = apply((("drafter.architecture", identity.architecture),), pair)
    if any(check.status == FAIL for check in checks):
        return [*checks, Check("drafter.fit", SKIPPED, "a drafter that fits the base", "it is of the wrong kind")]
    if pair.request.method == "EAGLE3":
        checks += apply(EAGLE3_RULES, pair)
    else:
        reason = f"no rules for {pair.request.method} are known here"
        checks.append(Check("drafter.fit", SKIPPED, "a drafter that fits the base", reason))
    return checks


def apply(rules: Sequence[tuple[str, Rule]], pair: Pair) -> list[Check]:
    """The rules' checks. What cannot be read is one failed check; each rule that it stopped is skipped."""
    checks: list[Check] = []
    seen: set[str] = set()
    for id, rule in rules:
        try:
            checks += rule(pair)
        except BudgetError as error:
            checks.append(Check(id, SKIPPED, error.expected, error.found))
        except CheckpointError as error:
            if str(error) not in seen:
                seen.add(str(error))
                kind = "config" if isinstance(error, ConfigError) else "weights"
                checks.append(Check(f"checkpoint.{kind}", FAIL, error.expected, error.found, error.fix))
            checks.append(Check(id, SKIPPED, "a readable checkpoint", f"not compared: {error.found}"))
    return checks
