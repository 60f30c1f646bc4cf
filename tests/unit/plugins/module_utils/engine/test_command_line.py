# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.command_line import CommandLine, argv, systemd_exec
from hypothesis import given
from hypothesis import strategies as st


def read_as_systemd_does(line: str) -> list[str]:
    """An independent reading of a command line by systemd.service(5), systemd.syntax(7) and systemd.unit(5)."""
    line = line.rstrip("\n")
    assert "\n" not in line
    assert not line.endswith("\\")
    words: list[str] = []
    rest = line.strip(" \t")
    while rest:
        # An unquoted semicolon alone ends the command.
        assert not re.match(r";(\s|$)", rest)
        quote, word, at = "", "", 0
        while at < len(rest):
            char = rest[at]
            if char == "\\":
                escaped = rest[at + 1]
                word += {"t": "\t", "s": " ", "n": "\n", "\\": "\\", '"': '"', "'": "'"}[escaped]
                at += 1
            elif quote:
                if char == quote:
                    quote = ""
                else:
                    word += char
            elif char in "\"'":
                quote = char
            elif char in " \t":
                break
            else:
                word += char
            at += 1
        assert not quote
        words.append(word)
        rest = rest[at:].lstrip(" \t")
    read = []
    for word in words:
        assert not re.search(r"(?<!%)(%%)*%(?!%)", word), "a specifier"
        word = word.replace("%%", "%")
        assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", word), "a variable"
        read.append(word.replace("$$", "$"))
    return read


def test_argv_writes_each_kind_of_value() -> None:
    flags = {
        "model_path": "/srv/models/base",
        "tp-size": 8,
        "mem_fraction_static": 0.85,
        "enable-metrics": True,
        "skip-server-warmup": False,
        "revision": None,
        "cuda_graph_bs": [1, 2, 4],
        "lora-paths": [],
        "model-loader-extra-config": {"num_threads": 16, "enable_multithread_load": True},
    }
    assert argv(flags) == [
        *("--model-path", "/srv/models/base", "--tp-size", "8", "--mem-fraction-static", "0.85", "--enable-metrics"),
        *("--cuda-graph-bs", "1", "2", "4"),
        *("--model-loader-extra-config", '{"enable_multithread_load":true,"num_threads":16}'),
    ]


def test_argv_binds_a_value_that_looks_like_a_flag() -> None:
    assert argv({"chat-template": "--odd", "seed": -1}) == ["--chat-template=--odd", "--seed", "-1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"tp_size": 1, "tp-size": 2}, "--tp-size is given twice"),
        ({"--tp-size": 2}, "without leading dashes"),
        ({"a b": 2}, "not the name of a flag"),
        ({"": 2}, "not the name of a flag"),
        ({"cuda-graph-bs": [None]}, "neither text, a number nor a dictionary"),
        ({"cuda-graph-bs": [True]}, "neither text, a number nor a dictionary"),
        ({"lora-paths": ["--x"]}, "would be read as a flag"),
    ],
)
def test_argv_refuses(flags: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        argv(flags)


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("plain-word_1.0/x=y", "plain-word_1.0/x=y"),
        ("a b", '"a b"'),
        ("", '""'),
        (";", '";"'),
        ("50%", "50%%"),
        ("$HOME", '"$$HOME"'),
        ('say "x"', r'"say \"x\""'),
        ("back\\slash", r'"back\\slash"'),
        ("it's", '"it\'s"'),
        ("a\tb", r'"a\tb"'),
    ],
)
def test_systemd_exec_quotes(word: str, written: str) -> None:
    assert systemd_exec(["/bin/true", word]) == f"/bin/true {written}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/bin/true", "a\nb"], "a line break"),
        (["/bin/true", "a\rb"], "a line break"),
        (["/bin/true", "a\x00b"], "control character"),
        (["/bin/true", "a\x7fb"], "control character"),
        ([], "no command"),
        (["python"], "absolute path"),
        (["-/bin/true"], "absolute path"),
        (["/opt/$x/python"], "absolute path"),
    ],
)
def test_systemd_exec_refuses(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        systemd_exec(words)


# Every character a unit file can carry; the odd ones often.
CHARACTERS = st.one_of(
    st.sampled_from("\"'\\%$;{} \t#"), st.characters(exclude_categories=("Cc", "Cs"), include_characters="\t")
)


@given(st.lists(st.text(CHARACTERS), max_size=4))
def test_systemd_reads_back_what_was_meant(words: list[str]) -> None:
    command = ["/opt/sglang 1%/bin/python", *words]
    assert read_as_systemd_does(systemd_exec(command)) == command


def test_json_survives_both_steps() -> None:
    value = {"a": 'q"\\%$', "b": [1, 2.5, None]}
    words = read_as_systemd_does(systemd_exec(["/bin/true", *argv({"extra": value})]))
    assert json.loads(words[2]) == value


def test_read_takes_both_forms_and_the_last_value() -> None:
    line = CommandLine.read(
        ["--a", "1", "--b=2", "--on", "--a", "3", "--many", "x", "y", "--short=4"], {"--short": "--s"}
    )
    assert (line.number("--a"), line.number("--b"), line.text("--on")) == (3, 2, None)
    assert line.values["--many"] == ("x", "y")
    assert line.number("--s") == 4
    assert "--on" in line
    assert "--off" not in line


def test_read_takes_negative_numbers_as_values() -> None:
    assert CommandLine.read(["--seed", "-1"], {}).number("--seed") == -1


def test_number_is_none_for_text() -> None:
    assert CommandLine.read(["--tp-size", "eight"], {}).number("--tp-size") is None
