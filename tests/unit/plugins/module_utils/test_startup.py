# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.startup import Progress, duration, progress

T = "[2026-11-29 14:27:51] "
BEGUN = (
    f"launch_server.py:55: UserWarning: use sglang serve\n{T}server_args=ServerArgs(model_path='/srv/models/base')\n"
)
JOINED = f"{T}Init torch distributed begin.\n{T}Init torch distributed ends. elapsed=0.20 s, mem usage=0.09 GB\n"
BASE = f"{T}Load weight begin. avail mem=93.13 GB\n"
SHARDS = "Multi-thread loading shards"
BASE_END = f"{T}Load weight end. elapsed=21.39 s, type=KimiK25ForConditionalGeneration, avail mem=23.95 GB\n"
POOL = f"{T}KV Cache is allocated. dtype: torch.bfloat16, #tokens: 40000, KV size: 0.34 GB\n{T}Memory pool end.\n"
VERIFY = (
    f"{T}Capture target verify CUDA graph begin. backend=full, num_tokens_per_bs=4, bs=[1, 2, 4], avail mem=65 GB\n"
)
GRAPH = "\rCapturing batches (bs=44 avail_mem=65.63 GB):   4%|4         | {} [00:00<00:06,  3.37it/s]"
SERVER = f"{T}INFO:     Started server process [3513]\n{T}INFO:     Uvicorn running on http://127.0.0.1:30000\n"
LOADED = BEGUN + JOINED + BASE + BASE_END


def shards(done: int, left: str = "08:20", what: str = SHARDS) -> str:
    return f"\r{what}: {done * 100 // 64:3d}% Completed | {done}/64 [02:00<{left},  1.10s/it]"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "importing"),
        (BEGUN, "starting the workers"),
        (BEGUN + JOINED, "starting the workers"),
        (BEGUN + JOINED + BASE, "loading weights of the base model"),
        (BEGUN + JOINED + BASE + shards(0, "?"), "loading weights of the base model: shard 0 of 64 (0 %)"),
        (
            BEGUN + JOINED + BASE + shards(0, "?") + shards(23),
            "loading weights of the base model: shard 23 of 64 (35 %), about 8 min left",
        ),
        (
            BEGUN + JOINED + BASE + shards(63) + shards(64, "00:00") + "\n",
            "loading weights of the base model: 64 of 64 shards are read and being prepared",
        ),
        (LOADED + JOINED + BASE, "loading weights of the drafter"),
        (LOADED + POOL, "allocating the KV cache"),
        (LOADED + POOL + VERIFY, "capturing graphs of the target verify"),
        (
            LOADED + POOL + VERIFY + GRAPH.format("1/23"),
            "capturing graphs of the target verify: graph 1 of 23 (4 %), about 6 s left",
        ),
        (f"{LOADED}{T}Capture cuda graph begin. This can take up to several minutes.\n", "capturing graphs"),
        (f"{LOADED}{T}Capture draft cuda graph begin.\n", "capturing graphs of the draft"),
        (LOADED + POOL + SERVER, "warming up"),
        (f"{LOADED}{SERVER}{T}The server is fired up and ready to roll!\n", "ready"),
        (f"{LOADED}{T}The server is fired up and ready to roll!\n{SERVER}", "ready"),
    ],
)
def test_how_far_a_start_is(text: str, sentence: str) -> None:
    assert progress(text).sentence() == sentence


@pytest.mark.parametrize(
    "what",
    [
        "Multi-thread loading shards",
        "Loading safetensors checkpoint shards",
        "Loading pt checkpoint shards",
        "Loading safetensors using Runai Model Streamer",
    ],
)
def test_the_bar_of_each_loader(what: str) -> None:
    assert progress(BASE + shards(23, what=what)).percent == 35


def test_fastsafetensors_has_another_bar() -> None:
    bar = "\rLoading safetensors using Fastsafetensor loader:  50%|#####     | 4/8 [00:05<00:05,  1.25s/it]"
    assert progress(BASE + bar).left_s == 5


def test_a_bar_whose_lines_end_at_each_step() -> None:
    """As with TQDM_UNIT in the unit's environment: the unit of the rate carries a line feed."""
    ended = [shards(done).replace("s/it]", "s/it\n]") for done in (1, 2, 3)]
    assert progress(BASE + "".join(ended)).done == 3


def test_a_bar_that_is_cut_off_is_no_bar() -> None:
    assert progress(BASE + shards(23)[:-20]).done is None


def test_of_eight_ranks_the_first_speaks() -> None:
    ranks = "".join(
        line.replace("] ", f" {rank}] ")
        for line in (BASE, BASE_END)
        for rank in ("TP3", "TP0", "TP1 EP1", "DP0 TP7", "TP2")
    )
    assert progress(ranks).what == "base model"
    assert progress(ranks + BASE.replace("] ", " TP0] ")).what == "drafter"


def test_a_request_s_bar_is_none_of_the_start() -> None:
    assert progress(LOADED + POOL + shards(5)) == Progress("allocating the KV cache")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (119.4, "119 s"), (120, "2 min"), (7199, "119 min"), (7260, "2 h 1 min")]
)
def test_times_as_one_says_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_hours_left() -> None:
    assert progress(BASE + shards(1, "1:02:03")).left_s == 3723
