# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the engine's own answer to checks: what it refused and why, and what it silently changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import flags as f
from . import rules
from .asking import Answer
from .situation import Question, Situation

_EXPECTED = "the engine's own parser and validation accept the list"
# What the engine decides by the GPU it finds. Resolved without that GPU, these hold for no other machine.
_BY_HARDWARE = re.compile(
    r"attention_backend|sampling_backend|grammar_backend|runner_backend|gemm_backend|a2a_backend|mem_fraction|cuda_graph|"
    r"chunked_prefill_size|page_size|kv_cache_dtype|max_prefill_tokens|max_total_tokens|custom_all_reduce|^dtype$"
)
# A refusal that speaks of the GPU says nothing about another machine.
_OF_HARDWARE = re.compile(r"\bSM ?\d|Hopper|Blackwell|Ampere|GPU|CUDA|capability|accelerator|nvidia", re.IGNORECASE)
# What transformers and huggingface_hub raise where there is no model; the message does not always name it.
_NO_MODEL = ("OSError", "HFValidationError", "LocalEntryNotFoundError", "OfflineModeIsEnabled")
# Settings that are stored under another name than the one argparse gives them, up to 0.5.13.
_STORED_AS = {
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
}


@dataclass(frozen=True)
class Adjusted:
    """A value that the engine changed. ``binding``: it will be changed on the target as well."""

    flag: str
    asked: object
    effective: object
    reason: str
    binding: bool


def adjusted(answer: Answer, situation: Situation) -> list[Adjusted]:
    """What was asked and becomes something else: by the engine, where it gave no answer by the rule of the chain."""
    found: list[Adjusted] = []
    shortened = rules.shortened_chain(situation) if answer.stage != "done" else None
    if shortened is not None:
        reason = "with topk 1 the engine makes draft tokens steps + 1"
        found.append(Adjusted(f.DRAFT_TOKENS, *shortened, reason, binding=True))
    for dest, flag in answer.explicit.items():
        name = _STORED_AS.get(dest, dest)
        asked = answer.parsed.get(dest)
        if name not in answer.resolved or _same(name, asked, answer.resolved[name]):
            continue
        binding = not (answer.elsewhere and _BY_HARDWARE.search(name))
        found.append(Adjusted(flag, asked, answer.resolved[name], _reason(answer, name, flag), binding))
    return found


def _same(name: str, asked: object, effective: object) -> bool:
    if asked == effective or str(asked) == str(effective):
        return True
    if name == "speculative_algorithm":
        # Upper-cased from 0.5.12 on; NEXTN is another name of EAGLE.
        return {"NEXTN": "EAGLE"}.get(str(asked).upper(), str(asked).upper()) == effective
    if name == "speculative_draft_model_quantization":
        return asked == "unquant" and effective is None
    if isinstance(asked, str) and isinstance(effective, (dict, list)):
        try:
            return bool(json.loads(asked) == effective)
        except ValueError:
            return False
    return False


def _reason(answer: Answer, name: str, flag: str) -> str:
    """The last warning that names the setting, else the step of the engine that decided it."""
    words = (name, flag, name.replace("_", " "))
    told = [warning for warning in answer.warnings if any(word in warning.lower() for word in words)]
    if told:
        return told[-1]
    return f"decided by {answer.steps[name]}" if name in answer.steps else "the engine does not say why"


def not_binding(answer: Answer) -> list[str]:
    """The settings that hold for this machine only."""
    return sorted(name for name in answer.resolved if _BY_HARDWARE.search(name)) if answer.elsewhere else []


def checks(answer: Answer, situation: Situation, refused_by: Sequence[Check]) -> list[Check]:
    """The engine's verdict. ``refused_by`` are the failed rules: they say in words what a bare error means."""
    if answer.stage == "done":
        return [_accepted(answer), *_adjusted(answer, situation)]
    ask = Question("args.engine", _EXPECTED, str(answer.place))
    if answer.stage in ("start", "import"):
        why = answer.message if answer.stage == "start" else f"it cannot be imported: {answer.error}: {answer.message}"
        where = f" ({answer.place})" if str(answer.place) else ""
        return [ask.skipped(f"{why}{where}; {not_judged()}")]
    if answer.stage == "timeout":
        return [ask.failed(answer.message, "read the last lines for what it waits for, or raise timeout")]
    if answer.stage == "died":
        return [ask.failed(answer.message, "run the engine by hand with these arguments: it ends before it serves")]
    if refused_by:
        # The rules have said it already, with the fix.
        return [ask.failed(_quoted(answer), f"see {', '.join(check.id for check in refused_by)}")]
    return [_refused(answer, situation, ask)]


def not_judged() -> str:
    """What a list without the engine's verdict lacks."""
    return "types of values, and combinations that no other check here names, were not judged"


def _quoted(answer: Answer) -> str:
    """The engine's error, with its place and, where it says nothing, with the line that it failed on."""
    if answer.stage == "parse":
        return answer.message
    where = f" at {answer.place}" if str(answer.place) else ""
    said = answer.message.strip()
    if answer.error == "AssertionError" and not said:
        return f"an assertion without a message{where}: {answer.place.code}"
    line = f": {answer.place.code}" if answer.error in ("TypeError", "AttributeError") else ""
    return f"{answer.error}: {said}{where}{line}"


def _refused(answer: Answer, situation: Situation, ask: Question) -> Check:
    blamed = _blamed(answer, situation)
    missing = _missing_model(answer, situation)
    if missing is not None:
        flag, value = missing
        if value.startswith("/"):
            fix = f"set {situation.named(flag)} to a folder that has the model, or put the model there"
            return ask.failed(f"{situation.named(flag)} = {value}, where no model is", fix)
        why = f"the config of {value} ({situation.named(flag)}) is not on this machine and nothing is fetched here"
        return ask.skipped(f"{why}; {not_judged()}")
    if answer.elsewhere and _OF_HARDWARE.search(answer.message):
        return ask.skipped(f"refused for want of the target's GPU: {_quoted(answer)}; {not_judged()}")
    named = ", ".join(situation.named(flag) for flag in blamed)
    fix = f"change or remove {named}" if named else "change the setting that the message speaks of"
    lacking = [flag for flag in blamed if flag not in situation.line]
    if answer.error in ("AssertionError", "TypeError") and lacking:
        fix = f"set {', '.join(situation.named(flag) for flag in lacking)} as well, or change {named}"
    return ask.failed(_quoted(answer), fix)


def _blamed(answer: Answer, situation: Situation) -> list[str]:
    """The flags that an error speaks of: by name in its message, by a value there, by name in the line that failed."""
    known = situation.engine.flags if situation.engine else {flag.name: flag for flag in f.SPECULATIVE}
    for text in (answer.message, answer.place.code):
        found = re.findall(r"--[a-z][a-z0-9-]+", text)
        found += ["--" + word.replace("_", "-") for word in re.findall(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+", text)]
        flags = [flag for flag in dict.fromkeys(found) if flag in known or flag in situation.line]
        words = set(re.findall(r"[^\s'\",:;()]+", text))
        flags = flags or [flag for flag, values in situation.line.values.items() if words & set(values)]
        if flags:
            return flags
    return []


def _missing_model(answer: Answer, situation: Situation) -> tuple[str, str] | None:
    """The flag and value of a model that the engine could not find."""
    absent = {flag: situation.line.text(flag) or "" for flag in (f.MODEL, f.DRAFTER) if situation.missing_model(flag)}
    named = [item for item in absent.items() if item[1] in answer.message]
    by_kind = list(absent.items()) if answer.error in _NO_MODEL else []
    return next(iter(named or by_kind), None)


def _accepted(answer: Answer) -> Check:
    found = f"it resolves, for {answer.resolved.get('device')}"
    if answer.elsewhere:
        found += "; there is no GPU here, so what depends on one does not hold for the target"
    return Check("args.engine", PASS, _EXPECTED, found)


def _adjusted(answer: Answer, situation: Situation) -> Iterator[Check]:
    """One check for each changed value, or one that says there is none."""
    changed = adjusted(answer, situation)
    expected = "every value that was asked for is what the engine uses"
    if not changed:
        yield Check("args.adjusted", PASS, expected, f"{len(answer.explicit)} values, all kept")
    for item in changed:
        name = item.flag[2:].replace("-", "_")
        found = f"{situation.named(item.flag)} = {item.asked} becomes {item.effective}: {item.reason}"
        identity = f"args.adjusted.{name}"
        expected = f"{item.flag} is used as asked"
        if not item.binding:
            yield Check(identity, SKIPPED, expected, f"{found}; decided without the target's GPU")
            continue
        fix = _ways_out(item, answer.resolved, situation)
        stops = f.is_speculative(item.flag) and item.flag not in situation.allow_adjusted
        yield Check(identity, FAIL if stops else WARN, expected, found, fix)


def _ways_out(item: Adjusted, resolved: Mapping[str, object], situation: Situation) -> str:
    take = f"set {situation.set_to(item.flag, item.effective)}, which is what would run"
    steps = resolved.get("speculative_num_steps")
    if item.flag == f.DRAFT_TOKENS and isinstance(item.asked, int) and isinstance(steps, int) and item.asked > 1:
        return f"set {situation.set_to(f.STEPS, item.asked - 1)} to keep {item.asked} draft tokens, or {take}"
    return f"{take}, or accept the change in allow_adjusted"
