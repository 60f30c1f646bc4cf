# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the layer ids name layers that the base has, as many as the drafter expects?"""

from __future__ import annotations

from ..checks import Check
from .capture import captured
from .pair import Pair, verdict
from .sizes import layer_ids, states

SOURCE = "set_eagle3_layers_to_capture in srt/models"


def aux_layer_ids(pair: Pair) -> list[Check]:
    """Each layer that is asked for exists, and there are as many as the drafter's fc takes."""
    request, config = pair.request, pair.drafter.config
    base = pair.base.config
    layers = base.text_part.need("num_hidden_layers")
    ids = layer_ids(config)
    capture = captured(ids, base.architecture or "", layers, request)
    count = states(config, request)
    told = f"ids {list(ids)}" if ids is not None else "no ids, so the engine's own choice"
    good = len(capture.taken) == count and len(capture.asked) == count
    fix = (
        "set eagle_config.eagle_aux_hidden_state_layer_ids in the drafter's config.json to the layers it was trained"
        f" on, or set {request.variable('drafter')} to a drafter made for this base"
    )
    return [
        verdict(
            "drafter.aux_layer_ids",
            good,
            f"{count} different layers of the base's {layers} to capture",
            f"{told}: before layers {list(capture.asked)} are asked for, {list(capture.taken)} exist",
            fix,
            request.where(SOURCE),
        )
    ]
