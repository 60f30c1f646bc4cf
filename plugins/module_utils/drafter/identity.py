# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is this drafter of a kind that the algorithm loads, in a form that this release loads, and made for this base?"""

from __future__ import annotations

import re

from ..checkpoint.config import Config
from ..checkpoint.reader import Checkpoint
from ..checks import Check
from ..engine.algorithms import known_algorithms, may_know, takes_any_case
from ..engine.releases import READ, is_covered
from .layouts import normalises_before_fc, uses_fc_norm
from .pair import MLA, Pair, Request, skipped, verdict

# Which classes the engine can load as a drafter, for which algorithm, and since when.
# SGLang EntryClass of srt/models/llama_eagle3.py, kimi_k25_eagle3.py, llama_eagle.py, qwen2_eagle.py,
# mistral_large_3_eagle.py, mistral_eagle.py, dflash.py; read in each release from 0.4.6.post5 to 0.5.23.
DRAFTERS: dict[str, tuple[str, str]] = {
    "LlamaForCausalLMEagle3": ("EAGLE3", "0.4.6"),
    "Eagle3DeepseekV2ForCausalLM": ("EAGLE3", "0.5.12"),
    "LlamaForCausalLMEagle": ("EAGLE", "0.4.6"),
    "Qwen2ForCausalLMEagle": ("EAGLE", "0.4.6"),
    "MistralLarge3ForCausalLMEagle": ("EAGLE", "0.5.6"),
    "MistralForCausalLMEagle": ("EAGLE", "0.5.11"),
    "DFlashDraftModel": ("DFLASH", "0.5.11"),
}
# Algorithms whose drafter must be one of the classes above; STANDALONE and the built-in heads of EAGLE take a base.
OWN_CLASS = ("EAGLE3", "DFLASH")
SPECULATORS_KEYS = ("speculators_config", "speculators_model_type", "transformer_layer_config")
CARD = "README.md"
CARD_BYTES = 65_536
# Words of a model's name that say nothing about which model it is.
NAME_NOISE = re.compile(r"[-_.](instruct|chat|base|hf|fp8|int4|awq|gptq|nvfp4|bf16)\b")


def base_class(base: Checkpoint, request: Request) -> list[Check]:
    """The base's class is one that this engine has code of its own for."""
    id, name, installed = "base.architecture", base.config.architecture, request.installed
    expected = f"a class that SGLang {request.engine} has code for"
    variable = request.variable("base")
    if name is None:
        fix = f"set {variable} to a checkpoint whose config.json names its class"
        return [Check(id, "fail", "a class in architectures of the base", "none", fix)]
    if installed is None:
        return [skipped(id, expected, f"{name}: the engine's source is not given, only its version")]
    known = installed.base_architectures.get(name)
    if known is not None:
        return [Check(id, "pass", expected, name, "", f"SGLang {request.engine} {known.source}")]
    fix = f"install a release that has {name}, or expect the slower code of the transformers library"
    return [Check(id, "warn", expected, f"{name}, which it does not register", fix, request.where("srt/models"))]


def model_type(checkpoint: Checkpoint, request: Request) -> list[Check]:
    """The transformers library is told which config class to read config.json with. Raises ConfigError.

    transformers 5.12 models/auto/configuration_auto.py from_pretrained; the 4.x releases fall back on the path's name.
    """
    id, name = f"{checkpoint.role}.model_type", checkpoint.config.text("model_type")
    fix = f"set {request.variable(checkpoint.role)} to a checkpoint whose config.json has it"
    return [
        verdict(
            id,
            name is not None,
            f"model_type in {checkpoint.config.where}",
            name or "no such key",
            fix,
            "transformers models/auto/configuration_auto.py",
            otherwise="fail" if request.since("0.5.10") else "warn",
        )
    ]


def captures(pair: Pair) -> list[Check]:
    """The base hands out the states that the drafter reads, and its embedding and head."""
    request, name = pair.request, pair.base.config.architecture or ""
    id, method = "base.captures", request.method
    hook = "set_eagle3_layers_to_capture" if method == "EAGLE3" else "set_dflash_layers_to_capture"
    expected = f"a base class with {hook} and get_embed_and_head"
    installed = request.installed
    if installed is None:
        return [skipped(id, expected, f"{name}: the engine's source is not given, only its version")]
    known = installed.base_architectures.get(name)
    place = "" if known is None else known.eagle3 if method == "EAGLE3" else known.dflash
    fix = f"install a release whose {name} has them, or leave {request.variable('algorithm')} unset"
    whole = known is not None and bool(place) and (bool(known.embed_head) or method == "DFLASH")
    source = f"SGLang {request.engine} {place}" if place else request.where("srt/models")
    return [verdict(id, whole, expected, f"{name} {'with' if whole else 'without'} them", fix, source)]


def release(request: Request) -> list[Check]:
    """The rules were read from this engine's release, or from its neighbours."""
    expected = f"SGLang {READ[0]} to {READ[-1]}, the releases that the rules were read from"
    if is_covered(request.engine):
        return [Check("engine.release", "pass", expected, f"SGLang {request.engine}")]
    return [skipped("engine.release", expected, f"SGLang {request.engine} may differ; judged by the nearest one")]


def algorithm(request: Request) -> list[Check]:
    """The engine of this version knows the algorithm, spelt as it is."""
    known = known_algorithms(request.engine)
    variable, name = request.variable("algorithm"), request.algorithm
    literal = takes_any_case(request.engine) is False
    spelt = name if literal else name.upper()
    expected = f"one of {', '.join(known)}, which SGLang {request.engine} knows"
    found = f"{variable} {name!r}"
    source = request.where("srt/speculative/spec_info.py")
    if spelt not in known and may_know(spelt, request.engine):
        return [skipped("drafter.algorithm", expected, f"{found}: a plugin or this release may know it", source)]
    fix = f"set {variable} to one of {', '.join(known)}"
    if name.upper() in known:
        fix = f"set {variable} to {name.upper()}"
    return [verdict("drafter.algorithm", spelt in known, expected, found, fix, source)]


def architecture(pair: Pair) -> list[Check]:
    """The drafter's class is one that this engine loads for this algorithm."""
    request, config = pair.request, pair.drafter.config
    id, name, method = "drafter.architecture", config.architecture, request.method
    source = request.where("srt/models/registry.py")
    drafter = request.variable("drafter")
    fitting = [known for known, (family, dummy) in DRAFTERS.items() if family == method]
    fits = " or ".join(fitting) or f"a drafter for {method}"
    speculators = [key for key in SPECULATORS_KEYS if config.has(key)]
    if speculators:
        expected = f"a checkpoint in the engine's own layout, architectures {fits}"
        found = f"a checkpoint of the speculators library ({', '.join(speculators)}; architectures {name or 'missing'})"
        fix = (
            f"set {drafter} to this drafter converted for SGLang: transformer_layer_config's values at the top level,"
            " the layer ids under eagle_config, tensors named as SGLang names them"
        )
        return [Check(id, "fail", expected, found, fix, source)]
    known = DRAFTERS.get(name or "")
    if known is None:
        if method in OWN_CLASS:
            fix = f"set {drafter} to a drafter made for {method}"
            return [Check(id, "fail", f"{fits} as architectures of the drafter", name or "none", fix, source)]
        if name is None:
            fix = f"set {drafter} to a checkpoint whose config.json names its class"
            return [Check(id, "fail", "a class in architectures of the drafter", "none", fix, source)]
        if request.installed is not None and name in request.installed.draft_architectures:
            place = request.installed.draft_architectures[name].source
            return [Check(id, "pass", f"a class that the engine loads for {method}", name, "", place)]
        if request.installed is not None and method == "STANDALONE":
            known_base = name in request.installed.base_architectures
            fix = f"set {drafter} to a model whose class SGLang {request.engine} registers"
            expected = f"a class that SGLang {request.engine} has code for"
            return [verdict(id, known_base, expected, name, fix, source, otherwise="warn")]
        reason = f"{name}: whether SGLang {request.engine} registers it is not known here"
        return [skipped(id, f"a class that the engine loads for {method}", reason, source)]
    family, since = known
    if family != method:
        # EAGLE takes an EAGLE-3 drafter without a word: it serves, and little or nothing is accepted.
        found = f"{request.variable('algorithm')} {request.algorithm} with {name}"
        fix = f"set {request.variable('algorithm')} to {family}"
        return [Check(id, "fail", f"the algorithm that {name} is made for, {family}", found, fix, source)]
    return [
        verdict(
            id,
            request.since(since),
            f"SGLang {since} or later for {name}",
            f"SGLang {request.engine}",
            f"install SGLang {since} or later, or set {drafter} to a drafter of another class",
            source,
        )
    ]


def not_the_base(pair: Pair) -> list[Check]:
    """The drafter is not the base once more."""
    same = pair.base.source.describe() == pair.drafter.source.describe()
    drafter = pair.request.variable("drafter")
    return [
        verdict(
            "drafter.differs",
            not same,
            "a drafter that is another checkpoint than the base",
            f"{pair.drafter.source.label} as both" if same else pair.drafter.source.label,
            f"set {drafter} to a drafter made for {pair.base.source.label}",
            pair.request.where("srt/arg_groups/speculative_hook.py"),
        )
    ]


def layers(pair: Pair) -> list[Check]:
    """As many layers as the class allows: one up to 0.5.11, one always for the MLA class."""
    request, config = pair.request, pair.drafter.config
    count = config.layers
    name = config.architecture
    any_number = name != MLA and request.since("0.5.12")
    told = "any number of layers" if any_number else f"1 layer, all that {name} takes in SGLang {request.engine}"
    return [
        verdict(
            "drafter.layers",
            any_number or count == 1,
            told,
            f"num_hidden_layers {count}",
            "install SGLang 0.5.12 or later"
            if name != MLA
            else f"set {request.variable('drafter')} to another drafter",
            request.where("srt/models/llama_eagle3.py"),
        )
    ]


def features(pair: Pair) -> list[Check]:
    """What the drafter was trained with is in this release; an older one passes over the key and drafts worse."""
    request, config = pair.request, pair.drafter.config
    mla = config.architecture == MLA
    newer = "0.5.13" if mla else "0.5.12"
    wanted: list[tuple[str, str | None]] = []
    if uses_fc_norm(config):
        wanted.append(("fc_norm", newer))
    if config.flag("norm_output"):
        wanted.append(("norm_output", newer))
    if normalises_before_fc(config):
        wanted.append(("norm_before_fc", None if mla else "0.5.17"))
    missing = [
        f"{name} (from SGLang {since})" if since else f"{name} (in no release for {config.architecture})"
        for name, since in wanted
        if since is None or not request.since(since)
    ]
    told = ", ".join(name for name, dummy in wanted) or "none of fc_norm, norm_output, norm_before_fc"
    return [
        verdict(
            "drafter.features",
            not missing,
            "each feature that the drafter was trained with in this engine",
            f"{told}; SGLang {request.engine} passes over {', '.join(missing)}" if missing else told,
            "install a release that has them, or expect a lower accept length",
            request.where("srt/models/llama_eagle3.py, kimi_k25_eagle3.py"),
            otherwise="warn",
        )
    ]


def built_in_head(pair: Pair) -> list[Check]:
    """EAGLE with a base class as drafter, or none at all, loads a multi-token-prediction layer: there must be one.

    SGLang srt/configs/model_config.py _config_draft_model rewrites the class; deepseek_nextn.py reads the layer
    behind the last one.
    """
    request, config = pair.request, pair.drafter.config.text_part
    id, source = "drafter.mtp_layer", request.where("srt/configs/model_config.py _config_draft_model")
    expected = f"a multi-token-prediction layer in {pair.drafter.source.label}, which {request.method} drafts with"
    fix = f"set {request.variable('drafter')} to a drafter made for this base"
    declared = config.integer("num_nextn_predict_layers", minimum=0)
    if declared is None:
        return [skipped(id, expected, f"num_nextn_predict_layers is not in {config.where}", source)]
    if not declared:
        return [Check(id, "fail", expected, f"num_nextn_predict_layers 0 in {config.where}", fix, source)]
    last = config.layers
    behind = re.compile(rf"(^|\.)layers\.{last}\.|(^|\.)mtp\.")
    names = pair.drafter.weight_map if pair.drafter.weight_map is not None else pair.drafter.tensors
    held = any(behind.search(name) for name in names)
    return [
        verdict(
            id,
            held,
            expected,
            f"num_nextn_predict_layers {declared}, {'some' if held else 'no'} tensors of such a layer",
            fix,
            source,
        )
    ]


def remote_code(pair: Pair) -> list[Check]:
    """Code that a checkpoint brings is either allowed, or not needed."""
    request = pair.request
    id, source = "pair.trust_remote_code", request.where("srt/utils/hf_transformers/common.py")
    bringing = []
    for checkpoint in (pair.base, pair.drafter):
        for file in ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"):
            values = checkpoint.config if file == "config.json" else checkpoint.json(file)
            if values is not None and values.has("auto_map"):
                bringing.append(f"{file} of the {checkpoint.role}")
    expected = "trust_remote_code where a checkpoint brings code of its own"
    if not bringing:
        return [Check(id, "pass", expected, "neither brings code", "", source)]
    told = f"code named by {', '.join(bringing)}"
    if request.trust_remote_code is None:
        return [skipped(id, expected, f"{told}; trust_remote_code is not given", source)]
    fix = f"set {request.variable('trust_remote_code')} to true once you have read that code"
    found = f"{told}; trust_remote_code {str(request.trust_remote_code).lower()}"
    return [verdict(id, request.trust_remote_code, expected, found, fix, source, otherwise="warn")]


def made_for(pair: Pair) -> list[Check]:
    """The base that the drafter's card or name tells is this one. A sibling's drafter works, and is accepted less."""
    id = "drafter.made_for"
    expected = f"a drafter made for {pair.base.source.label}"
    bases = {_plain(name) for name in _names(pair.base.config, pair.base.source.label)}
    card = pair.drafter.source.whole_or_none(CARD, CARD_BYTES)
    told = base_models(card.decode("utf-8", "replace")) if card is not None else []
    if told:
        if any(_plain(name) in bases for name in told):
            return [Check(id, "pass", expected, f"its card names {', '.join(told)}")]
        if any(_family(_plain(name)) == _family(base) for name in told for base in bases):
            fix = f"set {pair.request.variable('drafter')} to one made for this base, or expect a lower accept length"
            return [Check(id, "warn", expected, f"its card names {', '.join(told)}", fix)]
        return [skipped(id, expected, f"its card names {', '.join(told)}; the base's own name is not known")]
    own = _plain(pair.drafter.source.label)
    if any(base in own for base in bases if len(base) > 3):
        return [Check(id, "pass", expected, f"its name, {pair.drafter.source.label}")]
    told_version = re.search(r"[a-z]\d+[.-]\d+", own)
    for base in bases:
        version = re.search(r"[a-z]\d+[.-]\d+", base)
        if version and told_version and _family(own) == _family(base) and version[0] != told_version[0]:
            fix = f"set {pair.request.variable('drafter')} to one made for this base, or expect a lower accept length"
            return [Check(id, "warn", expected, f"its name, {pair.drafter.source.label}, tells another base", fix)]
    return [skipped(id, expected, "neither a card nor the drafter's name tells its base")]


def base_models(card: str) -> list[str]:
    """The models under ``base_model`` in a card's front matter."""
    match = re.match(r"---\s*\n(.*?)\n---", card, re.DOTALL)
    front = match[1] if match else ""
    found = re.search(r"^base_model:[ \t]*(.*(?:\n[ \t]*-.*)*)", front, re.MULTILINE)
    return re.findall(r"[\w.-]+/[\w.-]+", found[1]) if found else []


def _names(config: Config, label: str) -> list[str]:
    path = config.values.get("_name_or_path")
    return [label, path] if isinstance(path, str) and path else [label]


def _plain(name: str) -> str:
    """The last part of a name, in lower case, without words such as instruct or fp8."""
    return NAME_NOISE.sub("", name.rstrip("/").rsplit("/", 1)[-1].lower())


def _family(name: str) -> str:
    """The first word of a name: kimi of kimi-k2.6."""
    match = re.match(r"[a-z]+", name)
    return match[0] if match else name
