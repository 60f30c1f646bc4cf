# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""torch.distributed of the double: the sum is what arithmetic gives, without any communication."""

from __future__ import annotations

import time

from torch import FAULTS, Tensor, fault, state


def init_process_group(backend: str, init_method: str, world_size: int, rank: int) -> None:
    state["world"] = world_size


def all_reduce(tensor: Tensor) -> None:
    fault("all_reduce")
    time.sleep(0.001)
    count = state["world"]
    wrong = FAULTS.get("wrong_sum") == state["rank"]
    tensor.value = count * (count + 1) / 2 + wrong if tensor.value else 0.0


def destroy_process_group() -> None:
    pass
