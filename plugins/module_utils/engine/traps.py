# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine accepts and should not: its validation lacks these rules, they show after the load or never.

They are judged whether or not the engine was asked. Where a rule needs a model's config and that is not on this
machine, the check is skipped and says so.
"""

from __future__ import annotations

from ..checks import Check
from . import flags as f
from .algorithms import CHAIN_ALGORITHMS
from .releases import Span
from .rules import Rule
from .situation import NO_VERSION, Question, Situation


def _no_algorithm(situation: Situation) -> Check | None:
    """Without an algorithm the engine takes no notice of the other speculative flags (handle_speculative_decoding)."""
    idle = [flag for flag in situation.line.values if flag.startswith("--speculative-") and flag != f.ALGORITHM]
    if situation.algorithm is not None or not idle:
        return None
    told = ", ".join(situation.named(flag) for flag in idle)
    ask = Question("args.no_algorithm", f"{f.ALGORITHM} beside {told}", "SGLang arg_groups/speculative_hook.py")
    fix = f"set {situation.set_to(f.ALGORITHM, 'EAGLE3')} or remove {told}"
    return ask.warned("none: without it they have no effect", fix)


def _drafter_path(situation: Situation) -> Check | None:
    """EAGLE3 without a drafter: the engine loads the base a second time as drafter, then dies on hot_token_id."""
    if situation.algorithm not in ("EAGLE3", "STANDALONE", "DFLASH"):
        return None
    ask = Question("args.drafter_path", "the path of a drafter", "SGLang configs/model_config.py, from_server_args")
    path = situation.line.text(f.DRAFTER)
    if path is not None and path != situation.line.text(f.MODEL):
        return ask.passed(path)
    found = f"{situation.named(f.DRAFTER)} is {'the base model itself' if path else 'not given'}"
    fix = f"set {situation.named(f.DRAFTER)} to the folder of a drafter for {situation.algorithm}"
    return ask.failed(found, fix)


def _eagle_algorithm(situation: Situation) -> Check | None:
    """EAGLE with an EAGLE-3 drafter serves without an error, but hands it no aux states: nothing is accepted.

    Seen on 0.5.15.post1: accept length 1.0 for a drafter that needs the states, 1.86 under EAGLE3.
    """
    path = situation.line.text(f.DRAFTER)
    if situation.algorithm not in ("EAGLE", "NEXTN", "EAGLE3") or path is None:
        return None
    source = "SGLang models/llama_eagle3.py, speculative/spec_info.py (is_eagle3)"
    ask = Question("args.drafter_algorithm", "the algorithm that the drafter's architecture is made for", source)
    drafter = situation.drafter
    if drafter is None:
        return ask.skipped(_absent(path))
    architecture = ", ".join(drafter.architectures) or "no architecture"
    found = f"{situation.named(f.ALGORITHM)} = {situation.algorithm} with {architecture} ({path})"
    if situation.algorithm != "EAGLE3" and any("Eagle3" in name for name in drafter.architectures):
        return ask.failed(found, f"set {situation.set_to(f.ALGORITHM, 'EAGLE3')}")
    return ask.passed(found)


# Bases for which the engine itself chooses topk 4 (_auto_choose_speculative_params).
_TREE_BASES = ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")
_CHAIN_WORKER = Span(since="0.5.7", until="0.5.12")
_CHAIN_WORKER_BY_DEFAULT = Span(since="0.5.11", until="0.5.12")


def _chosen_topk(situation: Situation) -> Check | None:
    """Numbers left to the engine, 0.5.7 to 0.5.12: it tests topk before it chooses it, and topk 4 gets a worker for 1.

    The worker is spec v2, switched on by SGLANG_ENABLE_SPEC_V2 (by default from 0.5.11 on).
    """
    unset = not any(flag in situation.line for flag in situation.numbers)
    if situation.algorithm not in CHAIN_ALGORITHMS or not unset or f.ADAPTIVE in situation.line:
        return None
    ask = Question("args.chosen_topk", "a topk that the worker can draft", "SGLang server_args.py 0.5.7 to 0.5.12")
    if situation.version is None:
        return ask.skipped(NO_VERSION)
    concerned = _CHAIN_WORKER.holds(situation.version)
    if concerned is None:
        return ask.skipped(f"the rule of {situation.version} is not known")
    if not concerned:
        return None
    switch = situation.environment.get("SGLANG_ENABLE_SPEC_V2")
    default = bool(_CHAIN_WORKER_BY_DEFAULT.holds(situation.version))
    on = default if switch is None else switch.strip().lower() in ("1", "true", "yes", "y")
    if not on:
        return ask.passed("spec v2 is off")
    base = situation.base
    if base is None:
        return ask.skipped(_absent(situation.line.text(f.MODEL)))
    if not set(base.architectures) & set(_TREE_BASES):
        return ask.passed(f"{', '.join(base.architectures)}: the engine chooses topk 1")
    values = ", ".join(situation.set_to(flag, value) for flag, value in zip(situation.numbers, (3, 1, 4)))
    found = f"none is given: {situation.version} chooses topk 4 for {base.architectures[0]}, its worker takes 1"
    return ask.failed(found, f"set {values}")


def _drafter_quantization(situation: Situation) -> Check | None:
    """``--quantization`` as typed goes to the drafter too: an unquantized one then has no config to read.

    With compressed-tensors: TypeError, CompressedTensorsConfig.__init__() missing 5 required positional arguments,
    after the base is loaded. With others the drafter is quantized on the fly (get_quant_config).
    """
    method, path = situation.line.text(f.QUANTIZATION), situation.line.text(f.DRAFTER)
    if situation.algorithm is None or method is None or path is None:
        return None
    source = "SGLang model_loader/weight_utils.py, get_quant_config"
    ask = Question("args.drafter_quantization", "a drafter that is loaded as it is stored", source)
    own = situation.line.text(f.DRAFTER_QUANTIZATION)
    if own is not None:
        return ask.passed(f"{f.DRAFTER_QUANTIZATION} {own}")
    drafter = situation.drafter
    if drafter is None:
        return ask.skipped(_absent(path))
    if drafter.quantized:
        return ask.passed(f"{path} declares its own quantization")
    found = f"{situation.named(f.QUANTIZATION)} = {method} is taken for the unquantized {path} too"
    has_flag = situation.version is None or Span(since="0.5.7").holds(situation.version)
    fix = f"set {situation.set_to(f.DRAFTER_QUANTIZATION, 'unquant')}"
    if not has_flag:
        fix = f"remove {situation.named(f.QUANTIZATION)}: the base's config.json declares its quantization itself"
    return ask.failed(found, fix) if method == "compressed-tensors" else ask.warned(found, fix)


# Attention backends that serve models with MLA only (layers/attention/attention_registry.py).
_MLA_ONLY = ("trtllm_mla", "tokenspeed_mla", "cutedsl_mla", "flashmla", "cutlass_mla")


def _drafter_attention(situation: Situation) -> Check | None:
    """A drafter without MLA on an MLA-only backend fails when the draft worker starts, after the base is loaded.

    Seen on 0.5.15.post1: AttributeError, 'ModelConfig' object has no attribute 'kv_lora_rank'.
    """
    path = situation.line.text(f.DRAFTER)
    if situation.algorithm not in CHAIN_ALGORITHMS or path is None:
        return None
    backends = {flag: situation.effective(flag) for flag in (f.ATTENTION, f.PREFILL_ATTENTION, f.DECODE_ATTENTION)}
    only = {flag: backend for flag, backend in backends.items() if backend in _MLA_ONLY}
    own = situation.line.text(f.DRAFTER_ATTENTION)
    base, drafter = situation.base, situation.drafter
    if not only and (base is None or not base.mla):
        return None
    source = "SGLang layers/attention/attention_registry.py, speculative/draft_utils.py"
    ask = Question("args.drafter_attention", "an attention backend that can serve the drafter", source)
    if own is not None and own not in _MLA_ONLY:
        return ask.passed(f"{f.DRAFTER_ATTENTION} {own}")
    if drafter is None:
        return ask.skipped(_absent(path))
    if drafter.mla:
        return ask.passed(f"{path} uses MLA as well")
    fix = f"set {situation.set_to(f.DRAFTER_ATTENTION, 'triton')}"
    if own is not None:
        return ask.failed(f"{situation.named(f.DRAFTER_ATTENTION)} = {own}, and {path} does not use MLA", fix)
    if only:
        flag, backend = next(iter(only.items()))
        return ask.failed(f"{situation.named(flag)} = {backend}, and {path} does not use MLA", fix)
    if not any(backends.values()):
        why = f"{f.ATTENTION} is not given: on some GPUs the engine chooses an MLA-only backend, and {path} has no MLA"
        return ask.skipped(why)
    return ask.passed(", ".join(f"{flag} {backend}" for flag, backend in backends.items() if backend))


def _absent(path: str | None) -> str:
    return f"there is no {path}/config.json on this machine"


def _abbreviated(situation: Situation) -> Check | None:
    """A flag that is no whole one: argparse takes it for the only one that begins so, without a word.

    The next release may have a second one that begins so, and whatever looks a flag up by its name does not see it.
    """
    given = tuple(dict.fromkeys(situation.line.given))
    short = {flag: read.option for flag, read in situation.spelled.items() if flag in given and flag != read.option}
    source = "argparse, allow_abbrev; SGLang server_args.py, prepare_server_args (0.4.6 to 0.5.23)"
    if short:
        ask = Question("args.abbreviated", ", ".join(short.values()), source)
        found = ", ".join(situation.named(flag) for flag in short)
        whole = ", ".join(f"{option} instead of {situation.named(flag)}" for flag, option in short.items())
        return ask.failed(f"{found}, which the engine completes without a word", f"write {whole}")
    ask = Question("args.abbreviated", "flags by their whole names", source)
    return ask.skipped(_unread(situation)) if _unread(situation) else ask.passed(f"all {len(given)}")


def _twice(situation: Situation) -> Check | None:
    """One setting by two flags, or by one flag twice: argparse takes the last one (no flag of SGLang's adds up)."""
    by_setting: dict[str, list[str]] = {}
    for flag in situation.line.given:
        read = situation.spelled.get(flag)
        by_setting.setdefault(read.setting if read else flag, []).append(flag)
    source = "argparse; SGLang server_args.py, prepare_server_args (0.4.6 to 0.5.23)"
    ask = Question("args.twice", "each setting once", source)
    doubled = [flags for flags in by_setting.values() if len(flags) > 1]
    if doubled:
        found = ", ".join(" and ".join(situation.named(flag) for flag in flags) for flags in doubled)
        fix = ", ".join(f"keep {situation.named(flags[0])} alone, with the value that is meant" for flags in doubled)
        return ask.failed(f"{found}: the engine takes the last one without a word", fix)
    return ask.skipped(_unread(situation)) if _unread(situation) else ask.passed(f"all {len(by_setting)}")


def _unread(situation: Situation) -> str:
    """Why it is not known how flags of the list are read, empty where it is."""
    unknown = dict.fromkeys(flag for flag in situation.line.given if flag not in situation.spelled)
    return f"the engine was not there to tell how it reads {', '.join(unknown)}" if unknown else ""


TRAPS: tuple[Rule, ...] = (
    _abbreviated,
    _twice,
    _no_algorithm,
    _drafter_path,
    _eagle_algorithm,
    _chosen_topk,
    _drafter_quantization,
    _drafter_attention,
)


def judge(situation: Situation) -> list[Check]:
    """The checks of all traps that apply; none where a file brings settings (the rules say so)."""
    if situation.settings_file:
        return []
    return [check for check in (trap(situation) for trap in TRAPS) if check is not None]
