# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Completion, Message, Streamed, ToolCall
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe import serving

IN_EFFECT = {"served_model_name": "tiny", "model_path": "/srv/models/tiny"}


def said(content: str = "", reasoning: str = "", finish: str = "stop", calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message(content, reasoning, calls, finish)


def called(name: str, arguments: str) -> Message:
    return said(calls=(ToolCall(name, arguments),))


@pytest.mark.parametrize(
    ("in_effect", "listed", "status"),
    [
        (IN_EFFECT, {"tiny": 2048, "lora": None}, "pass"),
        ({"model_path": "/srv/models/tiny"}, {"/srv/models/tiny": 2048}, "pass"),
        (IN_EFFECT, {"other": 2048}, "fail"),
        (IN_EFFECT, {}, "fail"),
    ],
)
def test_the_served_model_is_listed(in_effect: dict[str, str], listed: dict[str, int | None], status: str) -> None:
    assert serving.models(in_effect, listed).status == status


@pytest.mark.parametrize(
    ("text", "status", "fix"),
    [(" the sea", "pass", ""), (" \n", "fail", "tokenizer"), ("!!! !!!", "fail", "quantisation and attention backend")],
)
def test_a_completion_is_text(text: str, status: str, fix: str) -> None:
    check = serving.text(Completion(text, "length"))
    assert check.status == status
    assert fix in check.fix


@pytest.mark.parametrize(
    ("answer", "status"),
    [(said("wide"), "pass"), (said(reasoning="hm"), "pass"), (said(" \n", finish="abort"), "fail")],
)
def test_a_message_is_answered(answer: Message, status: str) -> None:
    assert serving.chat(answer).status == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [(Streamed("ab", 2, True), "pass"), (Streamed("ab", 2, False), "fail"), (Streamed("ab", 1, True), "fail")],
)
def test_a_stream_has_chunks_and_an_end(answer: Streamed, status: str) -> None:
    assert serving.stream(answer).status == status


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (" and the sea", "the"),
        ("the the sea", "sea"),
        # The first word has nothing before it, a letter is too little.
        (" sea", None),
        ("sea a b c", None),
        # Its first occurrence is within another word.
        ("these are the see", "are"),
        ("", None),
    ],
)
def test_a_word_to_stop_at_first_occurs_within_the_answer(answer: str, word: str | None) -> None:
    assert serving.stop_string(answer) == word


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [(" and ", "stop", "pass"), (" and the", "stop", "fail"), (" a lake", "length", "skipped")],
)
def test_an_answer_ends_before_the_stop_string(text: str, finish: str, status: str) -> None:
    assert serving.stop("the", Completion(text, finish)).status == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (said('{"answer": "no",\n "certain": false}'), "pass"),
        (said('{"answer": "no"}'), "fail"),
        (said('{"answer": "no", "certain": "false"}'), "fail"),
        (said('{"answer": "maybe", "certain": true}'), "fail"),
        (said('{"answer": ["no"], "certain": true}'), "fail"),
        (said('{"answer": "no", "certain": true, "more": 1}'), "fail"),
        (said('["answer", "certain"]'), "fail"),
        (said("[" * 100_000), "fail"),
        (said("The sea is salty.", finish="length"), "fail"),
        (said("", "let me think", "length"), "skipped"),
    ],
)
def test_json_keeps_to_the_schema(answer: Message, status: str) -> None:
    assert serving.json_schema(answer).status == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (called(serving.TOOL, '{"room": "engine room"}'), "pass"),
        (called("other", "{}"), "fail"),
        (called(serving.TOOL, '{"room": '), "fail"),
        (called(serving.TOOL, "[]"), "fail"),
        (said(f"<|tool_call_begin|>functions.{serving.TOOL}:0" + '{"room": "engine room"}'), "fail"),
        (said(f"You could call {serving.TOOL}."), "warn"),
        (said("", finish="abort"), "warn"),
        (said("", "let me think", "length"), "skipped"),
    ],
)
def test_a_tool_call_is_parsed(answer: Message, status: str) -> None:
    assert serving.tool_call("kimi_k2", answer).status == status
