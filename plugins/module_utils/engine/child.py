# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs inside the engine's virtual environment: its own parser and validation, on one argument list.

This file's text is handed to that environment's Python, so it imports nothing of ours and, until it is asked to,
nothing of SGLang. It reads ``{"args": [...]}`` from standard input and writes one JSON object to standard output; all
that the engine prints goes to standard error. It follows sglang/launch_server.py and Engine._launch_subprocesses, up to
where processes are started: plugins, prepare_server_args, from 0.5.20 on resolve_once, check_server_args.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import logging
import os
import sys
import traceback
from typing import Any


class Refused(Exception):
    """The engine's parser refused the list; argparse would print this and exit with status 2."""


class Watch:
    """Sees what goes by while the engine resolves: how flags are read, the parsed values and the warnings."""

    def __init__(self) -> None:
        self.parsed: dict[str, Any] = {}
        self.explicit: dict[str, str] = {}
        self.spelled: dict[str, tuple[str, str]] = {}
        self.warnings: list[str] = []

    def install(self) -> None:
        parse_args, handle = argparse.ArgumentParser.parse_args, logging.Logger.handle

        def watched_parse(parser: Any, args: Any = None, namespace: Any = None) -> Any:
            # First, since a list that is refused has spellings too.
            self.spelled = spelled(parser, args)
            parsed = parse_args(parser, args, namespace)
            self.parsed = dict(vars(parsed))
            self.explicit = given(parser, args)
            return parsed

        def given(parser: argparse.ArgumentParser, args: Any) -> dict[str, str]:
            """The settings that were asked for, each with its flag: a second parse in which nothing has a default."""
            for action in parser._actions:
                action.default = argparse.SUPPRESS
            dests = vars(parse_args(parser, args, argparse.Namespace()))
            flags: dict[str, str] = {}
            for action in parser._actions:
                long = [option for option in action.option_strings if option.startswith("--")]
                own = "--" + action.dest.replace("_", "-")
                if action.dest in dests and long:
                    flags.setdefault(action.dest, own if own in long else long[0])
            return flags

        def spelled(parser: Any, args: Any) -> dict[str, tuple[str, str]]:
            """For each flag in the list the option string that it is taken for, and the name of its setting.

            A flag that the parser does not know, or takes for none of several, stands for itself.
            """
            known = parser._option_string_actions
            found: dict[str, tuple[str, str]] = {}
            for word in args:
                flag = word.partition("=")[0]
                if flag.startswith("--"):
                    options = [flag] if flag in known else [meant[1] for meant in parser._get_option_tuples(flag)]
                    found[flag] = (options[0], known[options[0]].dest) if len(options) == 1 else (flag, flag)
            return found

        def watched_handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                self.warnings.append(record.getMessage())
            handle(logger, record)

        def refuse(parser: argparse.ArgumentParser, message: str) -> None:
            raise Refused(message)

        for owner, name, watched in (
            (argparse.ArgumentParser, "parse_args", watched_parse),
            (argparse.ArgumentParser, "error", refuse),
            (logging.Logger, "handle", watched_handle),
        ):
            setattr(owner, name, watched)


def resolve(args: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings after resolution, and for settings that were declared (0.5.15 on) which step declared them."""
    module = importlib.import_module("sglang.srt.server_args")
    server_args = module.prepare_server_args(args)
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
    server_args.check_server_args()
    if hasattr(server_args, "resolved_dict"):
        values = server_args.resolved_dict()
    else:
        values = {name: value for name, value in vars(server_args).items() if not name.startswith("_")}
    steps = {name: step for step, names in getattr(server_args, "_resolved_overrides", None) or [] for name in names}
    return values, steps


def place(error: BaseException) -> dict[str, Any]:
    """Where in the engine an error came up."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/sglang/" in frame.filename]
    if not frames:
        return {"file": "", "line": 0, "code": "", "function": ""}
    last = frames[-1]
    return {
        "file": "sglang/" + last.filename.rpartition("/sglang/")[2],
        "line": last.lineno,
        "code": last.line,
        "function": last.name,
    }


def judge(args: list[str]) -> dict[str, Any]:
    """The answer for one argument list."""
    answer: dict[str, Any] = {"stage": "import", "elsewhere": False}
    watch = Watch()
    try:
        importlib.import_module("sglang.srt.server_args")
        if importlib.util.find_spec("sglang.srt.plugins") is not None:
            importlib.import_module("sglang.srt.plugins").load_plugins()
        cuda = bool(importlib.import_module("torch").cuda.is_available())
        answer["elsewhere"] = not cuda and ("cuda" in args or "--device=cuda" in args)
        answer["stage"] = "resolve"
        watch.install()
        try:
            values, steps = resolve(args)
        except RuntimeError as error:
            # Without --device the engine looks for an accelerator; what it would say on the target is asked instead.
            if "accelerator" not in str(error) or "--device" in args:
                raise
            answer["elsewhere"] = True
            watch.warnings.clear()
            values, steps = resolve([*args, "--device", "cuda"])
        answer.update(stage="done", resolved=values, steps=steps)
    except Refused as error:
        answer.update(stage="parse", error="argparse", message=str(error), **place(error))
    except (Exception, SystemExit) as error:
        answer.update(error=type(error).__name__, message=str(error), **place(error))
    answer.update(parsed=watch.parsed, explicit=watch.explicit, spelled=watch.spelled, warnings=watch.warnings)
    return answer


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = judge(json.load(sys.stdin)["args"])
    json.dump(answer, out, default=str)
    out.flush()
    # The engine's threads and exit handlers have nothing to say any more.
    os._exit(0)


if __name__ == "__main__":
    main()
