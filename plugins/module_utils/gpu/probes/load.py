# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work the GPUs for some seconds: copies, a matrix burn and a real all_reduce, one process a GPU, through PyTorch.

Run by child.py as a script of its own under the engine's interpreter; its argument is a JSON object {count, limit,
burn, sizes}: the number of GPUs, the seconds that one phase may take, the seconds of the burn, the all_reduce sizes in
bytes. A phase that takes longer is ended by SIGALRM, which also reaches a process that waits in a library. Nothing is
written to a disk. Records:

- {kind: phase, rank, phase, at}: import, copy, burn, all_reduce, done; {kind: error, rank, phase, text};
- {kind: copy, rank, key, value}: host_to_device, device_to_host, device_to_device in bytes per second (the last counts
  bytes read and bytes written), pcie_generation and pcie_width while copying;
- {kind: burn, rank, products, flops, mismatches}; {kind: all_reduce, rank, bytes, seconds, bandwidth, wrong}, bandwidth
  being NCCL's bus bandwidth in bytes per second;
- {kind: sample, gpu, at, utilization, power, memory, temperature, clock_sm, clock_reasons} twice a second (NVML's
  units);
- {kind: end, rank, code}: exit status, or minus the signal.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from typing import Any

COPY_BYTES = 256 * 2**20
COPIES = 8
DEVICE_BYTES = 2**30
ORDER = 8192
PRODUCTS = 20
ROUNDS = 10
# How long the others may take once one rank has failed, in seconds.
GRACE = 5.0


def say(kind: str, **facts: object) -> None:
    """One record in one write, so that the ranks' lines do not mix."""
    os.write(1, (json.dumps({"kind": kind, **facts}) + "\n").encode())


class Watch:
    """NVML's view while the GPUs work; without nvidia-ml-py there is none."""

    def __init__(self, count: int) -> None:
        self.handles: list[Any] = []
        try:
            self.library: Any = importlib.import_module("pynvml")
            self.library.nvmlInit()
            self.handles = [self.library.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        except Exception:  # The work goes on without it; the judgement says what was not seen.
            self.handles = []

    def ask(self, name: str, gpu: int, *arguments: Any) -> Any:
        """One value, None where it is not told."""
        try:
            return getattr(self.library, name)(self.handles[gpu], *arguments)
        except Exception:
            return None

    def sample(self) -> None:
        """A record for each GPU."""
        for gpu in range(len(self.handles)):
            utilization = self.ask("nvmlDeviceGetUtilizationRates", gpu)
            memory = self.ask("nvmlDeviceGetMemoryInfo", gpu)
            say(
                "sample",
                gpu=gpu,
                at=time.monotonic(),
                utilization=None if utilization is None else int(utilization.gpu),
                power=self.ask("nvmlDeviceGetPowerUsage", gpu),
                memory=None if memory is None else int(memory.used),
                temperature=self.ask("nvmlDeviceGetTemperature", gpu, 0),
                clock_sm=self.ask("nvmlDeviceGetClockInfo", gpu, 1),
                clock_reasons=self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", gpu),
            )


class Rank:
    """One process on one GPU."""

    def __init__(self, rank: int, plan: dict[str, Any], port: int, turn: Any, barrier: Any) -> None:
        self.rank = rank
        self.plan = plan
        self.port = port
        self.turn = turn
        self.barrier = barrier
        self.phase = "import"
        self.torch: Any = None

    def run(self) -> None:
        """All phases; the exit status is 1 after an error, which was told."""
        try:
            self.enter("import", 0)
            self.torch = importlib.import_module("torch")
            self.torch.cuda.set_device(self.rank)
            self.torch.ones(1, device="cuda").sum().item()
            self.meet()
            self.enter("copy", 0)
            with self.turn:  # One at a time: they share the host's memory and switches.
                self.copy()
            self.meet()
            self.enter("burn", self.plan["burn"])
            self.burn()
            self.meet()
            if self.plan["count"] > 1:
                self.enter("all_reduce", 0)
                self.all_reduce()
            self.enter("done", 0)
        except Exception as error:
            say("error", rank=self.rank, phase=self.phase, text=f"{type(error).__name__}: {error}".splitlines()[0])
            self.barrier.abort()
            os._exit(1)
        os._exit(0)

    def enter(self, phase: str, extra: float) -> None:
        """Start a phase and its time limit."""
        self.phase = phase
        say("phase", rank=self.rank, phase=phase, at=time.monotonic())
        waiting = self.plan["count"] if phase == "copy" else 1
        signal.alarm(int(self.plan["limit"] * waiting + extra) if phase != "done" else 0)

    def meet(self) -> None:
        """Wait for the others: a phase begins together."""
        self.barrier.wait()

    def copy(self) -> None:
        """Bandwidths of this GPU alone, and its PCIe link while it works."""
        cuda = self.torch.cuda
        host = self.torch.empty(COPY_BYTES, dtype=self.torch.uint8, pin_memory=True)
        device = self.torch.empty(COPY_BYTES, dtype=self.torch.uint8, device="cuda")
        watch = Watch(self.plan["count"])
        generation, width = 0, 0
        for key, target, source in (("host_to_device", device, host), ("device_to_host", host, device)):
            target.copy_(source, non_blocking=True)
            cuda.synchronize()
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            for _turn in range(COPIES):
                target.copy_(source, non_blocking=True)
            end.record()
            while watch.handles and not end.query():
                generation = max(generation, watch.ask("nvmlDeviceGetCurrPcieLinkGeneration", self.rank) or 0)
                width = max(width, watch.ask("nvmlDeviceGetCurrPcieLinkWidth", self.rank) or 0)
            end.synchronize()
            self.tell(key, COPIES * COPY_BYTES / (start.elapsed_time(end) / 1e3))
        if generation and width:
            self.tell("pcie_generation", generation)
            self.tell("pcie_width", width)
        del host, device
        first = self.torch.empty(DEVICE_BYTES, dtype=self.torch.uint8, device="cuda")
        second = self.torch.empty_like(first)
        second.copy_(first)
        cuda.synchronize()
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        for _turn in range(COPIES):
            second.copy_(first)
        end.record()
        end.synchronize()
        self.tell("device_to_device", 2 * COPIES * DEVICE_BYTES / (start.elapsed_time(end) / 1e3))
        del first, second
        cuda.empty_cache()

    def tell(self, key: str, value: float) -> None:
        """One figure of the copies."""
        say("copy", rank=self.rank, key=key, value=value)

    def burn(self) -> None:
        """The same product again and again: its result must not change by a bit."""
        torch = self.torch
        torch.manual_seed(0)
        left = torch.randn(ORDER, ORDER, device="cuda", dtype=torch.bfloat16)
        right = torch.randn(ORDER, ORDER, device="cuda", dtype=torch.bfloat16)
        reference = left @ right
        torch.cuda.synchronize()
        products, mismatches, spent = 0, 0, 0.0
        until = time.monotonic() + self.plan["burn"]
        while products == 0 or time.monotonic() < until:
            began = time.monotonic()
            for _turn in range(PRODUCTS):
                result = left @ right
            torch.cuda.synchronize()
            spent += time.monotonic() - began
            products += PRODUCTS
            mismatches += int(not torch.equal(result, reference))
        flops = 2.0 * ORDER**3 * products / spent
        say("burn", rank=self.rank, products=products, flops=flops, mismatches=mismatches)
        del left, right, reference, result
        torch.cuda.empty_cache()

    def all_reduce(self) -> None:
        """Sum a tensor over all GPUs and compare every element with the sum that arithmetic gives."""
        torch = self.torch
        distributed = importlib.import_module("torch.distributed")
        count = self.plan["count"]
        distributed.init_process_group(
            "nccl", init_method=f"tcp://127.0.0.1:{self.port}", world_size=count, rank=self.rank
        )
        for size in self.plan["sizes"]:
            tensor = torch.full((size // 4,), float(self.rank + 1), device="cuda")
            distributed.all_reduce(tensor)
            wrong = int((tensor != count * (count + 1) / 2).sum().item())
            tensor.zero_()
            torch.cuda.synchronize()
            began = time.monotonic()
            for _turn in range(ROUNDS):
                distributed.all_reduce(tensor)
            torch.cuda.synchronize()
            seconds = (time.monotonic() - began) / ROUNDS
            bandwidth = size / seconds * 2 * (count - 1) / count
            say("all_reduce", rank=self.rank, bytes=size, seconds=seconds, bandwidth=bandwidth, wrong=wrong)
        distributed.destroy_process_group()


def free_port() -> int:
    """A port of the loopback for the ranks to meet at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> int:
    """Start the ranks, watch them, and never outlive them."""
    plan = json.loads(sys.argv[1])
    # NVML and nvidia-smi count in the order of the PCI bus.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    context = multiprocessing.get_context("fork")
    turn, barrier, port = context.Lock(), context.Barrier(plan["count"]), free_port()
    ranks = [context.Process(target=Rank(rank, plan, port, turn, barrier).run) for rank in range(plan["count"])]
    for process in ranks:
        process.start()
    watch = Watch(plan["count"])
    failed_at = None
    while any(process.is_alive() for process in ranks):
        watch.sample()
        time.sleep(0.5)
        if failed_at is None and any(process.exitcode for process in ranks):
            failed_at = time.monotonic()
            with contextlib.suppress(OSError):
                barrier.abort()
        if failed_at is not None and time.monotonic() - failed_at > GRACE:
            for process in ranks:
                process.kill()
    for rank, process in enumerate(ranks):
        say("end", rank=rank, code=process.exitcode)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
