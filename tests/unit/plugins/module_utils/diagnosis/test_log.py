# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis import log
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.log import first_exception, last_lines, read

from tests.fixtures.engine_logs import LOGS


def lines(raw: bytes) -> list[str]:
    return [line.text for line in read(raw).lines]


@pytest.mark.parametrize(
    "raw",
    [
        b"Nov  3 17:00:00 ct200 python[123]: Load weight begin\n",
        b"Nov 29 17:00:00.123456 ct200 sglang: Load weight begin\n",
        b"2026-11-29T17:00:00+0100 ct200 python[123]: Load weight begin\n",
        b"sglang-kimi-k2  | Load weight begin\n",
        b"\x1b[1;32mLoad weight begin\x1b[0m\n",
        b"\nLoad weight \x07begin  \n",
    ],
    ids=["journal", "journal with parts of seconds", "journal with ISO times", "compose", "colours", "bell"],
)
def test_what_stands_around_the_message_is_left_out(raw: bytes) -> None:
    assert lines(raw) == ["Load weight begin"]


def test_a_bar_is_split_at_its_carriage_returns_and_keeps_its_line() -> None:
    bars = read(b"a\n\r  0%|  | 0/2\r 50%|# | 1/2\rdone\nb\n").lines
    assert [(line.number, line.text) for line in bars] == [
        (1, "a"),
        (2, "  0%|  | 0/2"),
        (2, " 50%|# | 1/2"),
        (2, "done"),
        (3, "b"),
    ]


def test_an_endless_line_is_cut() -> None:
    assert [len(line) for line in lines(b"x" * 100_000)] == [2000]


def test_the_arguments_are_left_out() -> None:
    assert lines(b"[x] server_args=ServerArgs(api_key='k')\n[x] server_args={'api_key': 'k'}\nnext\n") == ["next"]


def test_a_large_file_is_read_from_its_end_with_its_own_line_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LONGEST", 40)
    file = tmp_path / "log"
    file.write_text("".join(f"line number {number}\n" for number in range(1, 11)), encoding="utf-8")
    kept = read(*log.tail(str(file))).lines
    assert [(line.number, line.text) for line in kept[-2:]] == [(9, "line number 9"), (10, "line number 10")]
    assert len(kept) == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        log.tail(str(tmp_path / "log"))


def told(text: str) -> tuple[str, str, int] | None:
    raised = first_exception(read(text.encode()))
    return None if raised is None else (raised.text, raised.where, raised.number)


def test_of_a_chain_the_exception_that_was_raised_first() -> None:
    assert told(LOGS["drafter.dtype"]) == (
        "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: c10::BFloat16 != c10::Half",
        "sglang/srt/models/llama_eagle3.py:221 in forward",
        21,
    )


def test_what_a_worker_died_of_before_what_another_process_shrugged_off() -> None:
    shrugged = 'Traceback (most recent call last):\n  File "/a/b.py", line 1, in f\n    x\nKeyError: 1\n'
    died = shrugged.replace("Traceback", "[2026-11-29 14:28:57 TP3] Scheduler hit an exception: Traceback")
    assert told(shrugged + died.replace("KeyError: 1", "MemoryError")) == ("MemoryError", "/a/b.py:1 in f", 8)
    assert told(shrugged) == ("KeyError: 1", "/a/b.py:1 in f", 4)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("launch_server.py: error: unrecognized arguments: --x", "unrecognized arguments: --x"),
        ("sglang serve: error: unrecognized arguments: --x", "unrecognized arguments: --x"),
        ("terminate called after throwing an instance of 'E'\n  what():  NCCL died", "NCCL died"),
        ("Fatal Python error: Bus error", "Bus error"),
    ],
)
def test_ends_without_a_traceback(text: str, wanted: str) -> None:
    assert told(text) == (wanted, "", text.count("\n") + 1)


def test_a_message_that_begins_with_an_empty_line() -> None:
    assert told(LOGS["install.kernels"]) == (
        "ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!",
        "sglang/launch_server.py:67 in <module>",
        8,
    )


def test_a_log_that_ends_within_a_traceback() -> None:
    assert told('Traceback (most recent call last):\n  File "/a/sglang/srt/b.py", line 1, in f') == (
        "the log ends within a traceback",
        "sglang/srt/b.py:1 in f",
        2,
    )


def test_no_exception() -> None:
    assert told("all is well\n") is None


def test_noise_is_left_out_of_the_last_lines() -> None:
    noise = (
        "[t] Ignore import error when loading sglang.srt.models.x: No module named 'y'\n"
        "/a/b.py:55: UserWarning: 'python -m' is supported\n  warnings.warn(\n"
        '[t] INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
        "[t] Decode batch, #running-req: 1\n"
        "[1.2K blob data]\n"
        "Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]\n"
        "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    )
    assert last_lines(read(f"first\n{noise}last\n".encode()), 8) == ["first", "last"]


def test_lines_that_are_alike_are_shown_once() -> None:
    alike = "".join(f"block: [{number},0,0] failed\n" for number in range(64))
    assert last_lines(read(f"first\n{alike}last\n".encode()), 8) == [
        "first",
        "block: [63,0,0] failed (and 63 more like it)",
        "last",
    ]
    assert last_lines(read(alike.encode()), 1) == ["block: [63,0,0] failed (and 63 more like it)"]


def test_no_more_lines_than_asked_for_and_none_longer() -> None:
    text = "".join(f"{chr(97 + number) * 400}\n" for number in range(20))
    kept = last_lines(read(text.encode()), 3)
    assert [(len(line), line[0], line[-4:]) for line in kept] == [
        (304, "r", " ..."),
        (304, "s", " ..."),
        (304, "t", " ..."),
    ]
