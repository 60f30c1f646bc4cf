# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A double of PyTorch: what probes/load.py calls, a simulated clock, and the faults that TORCH_DOUBLE (JSON) names.

Keys: ``bandwidth`` (bytes per second of any copy), ``error`` ({phase: text}), ``hang`` (a phase), ``wrong_product`` and
``wrong_sum`` (a rank each). Tensors have a size in bytes and one value.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

FAULTS: dict[str, Any] = json.loads(os.environ.get("TORCH_DOUBLE", "{}"))
uint8, bfloat16 = 1, 2
state: dict[str, Any] = {"rank": 0, "clock": 0.0}

if "import" in FAULTS.get("error", {}):
    raise ImportError(FAULTS["error"]["import"])


def fault(phase: str) -> None:
    """Fail or never return where the scenario says so."""
    if phase in FAULTS.get("error", {}):
        raise RuntimeError(FAULTS["error"][phase])
    if FAULTS.get("hang") == phase:
        time.sleep(600)


class Tensor:
    """So many bytes, all of one value."""

    def __init__(self, size: int, value: float = 0.0) -> None:
        self.size, self.value = size, value

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Tensor:
        fault("copy")
        state["clock"] += self.size / FAULTS.get("bandwidth", 50e9)
        self.value = other.value
        return self

    def zero_(self) -> Tensor:
        self.value = 0.0
        return self

    def sum(self) -> Tensor:
        return self

    def item(self) -> float:
        return self.value

    def __ne__(self, other: object) -> Any:
        return Tensor(self.size, float(self.size // 4 if self.value != other else 0))

    __hash__ = None

    def __matmul__(self, other: Tensor) -> Tensor:
        fault("burn")
        time.sleep(0.005)
        state["products"] = state.get("products", 0) + 1
        wrong = FAULTS.get("wrong_product") == state["rank"] and state["products"] > 1
        return Tensor(self.size, self.value * other.value + wrong)


def empty(size: int, dtype: int = 1, device: str = "cpu", pin_memory: bool = False) -> Tensor:
    return Tensor(size * dtype)


def empty_like(other: Tensor) -> Tensor:
    return Tensor(other.size)


def ones(size: int, device: str) -> Tensor:
    return Tensor(4 * size, 1.0)


def full(shape: tuple[int], value: float, device: str) -> Tensor:
    return Tensor(4 * shape[0], value)


def randn(rows: int, columns: int, device: str, dtype: int) -> Tensor:
    return Tensor(rows * columns * dtype, 3.0)


def equal(one: Tensor, other: Tensor) -> bool:
    return one.value == other.value


def manual_seed(seed: int) -> None:
    pass


class Event:
    """A moment of the simulated clock; the first question finds the work still going on."""

    def __init__(self, enable_timing: bool) -> None:
        self.asked = False

    def record(self) -> None:
        self.at = state["clock"]

    def query(self) -> bool:
        self.asked, before = True, self.asked
        return before

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * 1e3


class cuda:
    """torch.cuda"""

    Event = Event

    @staticmethod
    def set_device(rank: int) -> None:
        state["rank"] = rank
        fault("context")

    @staticmethod
    def synchronize() -> None:
        pass

    @staticmethod
    def empty_cache() -> None:
        pass
