# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates of the API: what clients will ask of the server, asked once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import FAIL, PASS, SKIPPED, WARN, Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.api import Completion, Message, Streamed

MODELS = ("serve.models", "the served model in the list")
COMPLETION = ("serve.completion", "text")
CHAT = ("serve.chat", "an answer to a message")
STREAM = ("serve.stream", "an answer in chunks that ends with [DONE]")
STOP = ("serve.stop", "an answer that ends before the stop string")
JSON_SCHEMA = ("serve.json_schema", "an answer that is valid against the schema")
TOOL_CALL = ("serve.tool_call", "a parsed call of the tool")

CHAT_PROMPT = "Say in one sentence what the sea is like."
ANSWER_TOKENS = 32

SCHEMA_PROMPT = "Is the sea salty? Answer as JSON."
# Closed values alone: a model of any size comes to an end.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}, "certain": {"type": "boolean"}},
    "required": ["answer", "certain"],
    "additionalProperties": False,
}
SCHEMA_REQUEST: dict[str, object] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
    # The grammar allows white space without end, and a tiny model takes it: what repeats becomes ever less likely.
    "frequency_penalty": 2.0,
}

TOOL = "read_thermometer"
TOOL_PROMPT = f"How warm is it in the engine room now? Call the tool {TOOL} to find out."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Reads the temperature of a room.",
            "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
        },
    }
]
LONG_ANSWER_TOKENS = 256

_EXCERPT = 60


def served_name(in_effect: Mapping[str, Any]) -> str:
    """The name that clients give. The engine takes the model's path where none was chosen."""
    return str(in_effect.get("served_model_name") or in_effect.get("model_path") or "default")


def models(in_effect: Mapping[str, Any], listed: Mapping[str, int | None]) -> Check:
    """The name that clients give is one that the server lists."""
    name = served_name(in_effect)
    if name in listed:
        return Check(MODELS[0], PASS, name, name)
    found = ", ".join(listed) or "an empty list"
    return Check(
        MODELS[0], FAIL, name, found, "see what answers at this address: it is not the server that was started"
    )


def text(answer: Completion) -> Check:
    """A completion is text, and not one letter over and over."""
    name, expected = COMPLETION
    letters = set(answer.text) - set(" \n")
    if not letters:
        return Check(name, FAIL, expected, "nothing", "check the tokenizer of the base model")
    if len(letters) == 1:
        return Check(
            name,
            FAIL,
            expected,
            f"one letter over and over: {_excerpt(answer.text)}",
            "check quantisation and attention backend for this GPU: logits that are no numbers look like this",
            "sgl-project/sglang issue 18954",
        )
    return Check(name, PASS, expected, _excerpt(answer.text))


def chat(answer: Message) -> Check:
    """A message is answered, if only by thoughts."""
    name, expected = CHAT
    found = answer.content.strip() or answer.reasoning.strip()
    if found:
        return Check(name, PASS, expected, _excerpt(found))
    return Check(name, FAIL, expected, f"no text ({answer.finish})", "check the model's chat template")


def stream(answer: Streamed) -> Check:
    """Chunks arrive one by one, and the end is told."""
    name, expected = STREAM
    found = f"{answer.chunks} chunks, {'[DONE]' if answer.done else 'no [DONE]'}"
    if not answer.done:
        return Check(name, FAIL, expected, found, "see the journal of the server for what broke off the answer")
    if answer.chunks < 2:
        return Check(name, FAIL, expected, found, "lower --stream-interval, or remove the proxy that holds chunks back")
    return Check(name, PASS, expected, found)


def stop_string(answer: str) -> str | None:
    """A word of an answer that first occurs within it, to stop at when it is asked for again."""
    for found in re.finditer(r"\w{2,}", answer):
        if answer[: found.start()].strip() and answer.index(found.group()) == found.start():
            return found.group()
    return None


def stop(word: str, answer: Completion) -> Check:
    """The answer ends before the stop string. Its tokens may be drafted and verified beyond it."""
    name, expected = STOP
    found = _excerpt(answer.text)
    if word in answer.text:
        return Check(
            name,
            FAIL,
            f"{expected} {word!r}",
            found,
            "report it to SGLang, and do not serve clients that use stop strings",
        )
    if answer.finish == "stop":
        return Check(name, PASS, f"{expected} {word!r}", found)
    return Check(name, SKIPPED, expected, f"the answer took another way than before and never came to {word!r}")


def json_schema(answer: Message) -> Check:
    """The answer can be read, and keeps to the schema."""
    name, expected = JSON_SCHEMA
    if _still_thinking(answer):
        return Check(name, SKIPPED, expected, f"the model still thought after {LONG_ANSWER_TOKENS} tokens")
    try:
        told = json.loads(answer.content)
        valid = isinstance(told, dict) and set(told) == set(SCHEMA["required"])
        valid = valid and told["answer"] in ("yes", "no") and isinstance(told["certain"], bool)
    except (ValueError, RecursionError, TypeError):
        valid = False
    if valid:
        return Check(name, PASS, expected, _excerpt(answer.content))
    fix = "see the journal of the server for its grammar backend, and choose another with --grammar-backend"
    return Check(name, FAIL, expected, f"{_excerpt(answer.content)} ({answer.finish})", fix)


def tool_call(parser: str, answer: Message) -> Check:
    """The call is parsed, and not left in the text."""
    name, expected = TOOL_CALL
    for call in answer.tool_calls:
        if call.name == TOOL and _is_object(call.arguments):
            return Check(name, PASS, expected, f"{call.name}({call.arguments})")
        fix = f"check that --tool-call-parser {parser} is the one for this model"
        return Check(name, FAIL, expected, f"{_excerpt(call.name)}({_excerpt(call.arguments)})", fix)
    told = answer.content or answer.reasoning
    # A call that nobody parsed has the tool's name and the marks of some format in it.
    if TOOL in told and re.search(r"[{<]", told):
        fix = f"choose the --tool-call-parser for this model: {parser} left the call in the text"
        return Check(name, FAIL, expected, _excerpt(told), fix)
    if _still_thinking(answer):
        return Check(name, SKIPPED, expected, f"the model still thought after {LONG_ANSWER_TOKENS} tokens")
    fix = "ask the model for a tool call by hand: it answered with text, which may be its own choice"
    return Check(name, WARN, expected, _excerpt(told) if told.strip() else f"no text ({answer.finish})", fix)


def _still_thinking(answer: Message) -> bool:
    return answer.finish == "length" and bool(answer.reasoning) and not answer.content.strip()


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _excerpt(told: str) -> str:
    return json.dumps(told if len(told) <= _EXCERPT else told[:_EXCERPT] + "...", ensure_ascii=False)
