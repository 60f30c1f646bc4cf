# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the layer ids name layers that the base has, as many as the drafter expects, in the convention that is meant?"""

from __future__ import annotations

from ..checks import Check
from .capture import DEEPSEEK_FAMILY, captured
from .pair import MLA, Pair, skipped, verdict
from .sizes import layer_ids, states


def captured_layers(pair: Pair) -> list[int] | None:
    """The layers of the base whose input an EAGLE-3 drafter is fed with; None when there are none. Raises
    ConfigError."""
    if pair.request.method != "EAGLE3":
        return None
    config = pair.base.config
    ids = layer_ids(pair.drafter.config)
    return list(captured(ids, config.architecture or "", config.text_part.layers, pair.request).taken)


def aux_layer_ids(pair: Pair) -> list[Check]:
    """Each layer that is asked for exists, and there are as many as the drafter's fc takes."""
    request, config = pair.request, pair.drafter.config
    id, source = "drafter.aux_layer_ids", request.where("srt/models set_eagle3_layers_to_capture")
    layers = pair.base.config.text_part.layers
    eagle = config.mapping("eagle_config")
    if eagle is not None and not eagle.flag("use_aux_hidden_state", default=True):
        told = "use_aux_hidden_state false: the base's last state is taken, and fc is not used"
        return [skipped(id, "layers of the base to capture", told, source)]
    ids = layer_ids(config)
    if ids is not None and len(ids) == 0:
        fix = "give eagle_config.eagle_aux_hidden_state_layer_ids the layers that the drafter was trained on"
        return [Check(id, "fail", "layers of the base to capture", "an empty list of ids", fix, source)]
    capture = captured(ids, pair.base.config.architecture or "", layers, request)
    count = states(config, request)
    top = config.integers("eagle_aux_hidden_state_layer_ids")
    told = f"ids {list(ids)}" if ids is not None else "no ids in eagle_config, so the engine's own choice"
    if ids is None and top is not None:
        told += f" (the base does not read the ids {list(top)} at the top level of config.json)"
    good = len(capture.taken) == count and len(capture.asked) == count
    checks = [
        verdict(
            id,
            good,
            f"{count} different layers of the base's {layers} to capture",
            f"{told}: before layers {list(capture.asked)} are asked for, {list(capture.taken)} exist",
            "set eagle_config.eagle_aux_hidden_state_layer_ids in the drafter's config.json to the layers it was"
            f" trained on, or set {request.variable('drafter')} to a drafter made for this base",
            source,
        )
    ]
    if good:
        checks.append(convention(pair, ids, capture.taken))
    return checks


def convention(pair: Pair, ids: tuple[int, ...] | None, taken: tuple[int, ...]) -> Check:
    """Whether the ids are counted as the drafter's training counted them.

    One layer off is silent: the same weights give an accept length of 1.79 with one convention and 1.00 with the other.
    """
    request = pair.request
    id, source = "drafter.aux_layer_convention", request.where("srt/models set_eagle3_layers_to_capture")
    base = pair.base.config.architecture or ""
    expected = "the layers that the drafter was trained on"
    told = f"the base's state is taken as it enters layers {list(taken)}"
    top = pair.drafter.config.integers("eagle_aux_hidden_state_layer_ids")
    fix = (
        "compare these layers with the drafter's training configuration (or measure the accept length),"
        " and shift eagle_config.eagle_aux_hidden_state_layer_ids by one if they differ"
    )
    if ids is None:
        if pair.drafter.config.architecture == MLA or top is not None:
            return Check(
                id, "warn", expected, f"{told}, the engine's own choice without ids in eagle_config", fix, source
            )
        return skipped(id, expected, f"{told}, the engine's own choice; the config does not tell", source)
    if top is not None and top != ids:
        found = f"{told}; eagle_config says {list(ids)}, the top level of config.json {list(top)}"
        return Check(id, "warn", expected, found, fix, source)
    if base not in DEEPSEEK_FAMILY:
        return skipped(id, expected, f"{told}, one behind the ids {list(ids)}; the config does not tell", source)
    # The rule changed in 0.5.13: only there do ids that do not start with 1 mean something else than before.
    if ids[0] == 1:
        found = f"{told}, one behind the ids {list(ids)}, as ids that start with 1 are meant in every release"
        return Check(id, "pass", expected, found, "", source)
    rule, other = "one behind the ids", "from 0.5.13 on it is one layer earlier"
    if request.since("0.5.13"):
        rule, other = "as the ids are, since they do not start with 1", "up to 0.5.12 it was one layer later"
    return Check(id, "warn", expected, f"{told}, {rule} {list(ids)}; {other}", fix, source)
