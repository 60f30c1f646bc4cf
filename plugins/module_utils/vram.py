# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Will base and drafter fit into the GPUs, and how many tokens are left? From headers, sharding and stated assumptions.

The engine's own sum, per GPU (SGLang 0.5.20 srt/model_executor/kv_cache_configurator and pool_configurator.py, the same
sum since 0.4.6)::

    key-value cache = mem_fraction x memory before loading - weights - what else loading takes
    tokens          = key-value cache / bytes of a token

All sizes are bytes, per GPU where the name says so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from .checkpoint.config import Config
from .checkpoint.errors import CheckpointError, NotReadError
from .checkpoint.hub import Limits, open_source
from .checkpoint.reader import read_checkpoint
from .checkpoint.safetensors import Tensor
from .checkpoint.source import Cost
from .checks import FAIL, PASS, SKIPPED, WARN, Check, summary

GIB = 2**30
# A remote model of a terabyte costs its headers: 64 shards of half a megabyte.
MAX_BYTES = 128_000_000
MAX_REQUESTS = 1_000
FP8 = ("fp8_e4m3", "fp8_e5m2")

# What each rank of a tensor-parallel group holds whole. SGLang 0.5.20 srt/models/deepseek_v2.py (the projections into
# the latent and the router are ReplicatedLinear), llama_eagle3.py (fc is a plain Linear), srt/layers/layernorm.py.
REPLICATED = re.compile(
    r"norm|(^|\.)(q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj_with_mqa|e_score_correction_bias|weight_shape)(\.|$)"
    r"|\.mlp\.gate\.|\.router\.|^fc\."
)
# Vision towers are held whole unless the engine is told otherwise. SGLang 0.5.20 srt/models/kimi_k25.py.
VISION = re.compile(r"(^|\.)(vision_tower|vision_model|visual|mm_projector|multi_modal_projector|patch_embed)(\.|$)")
KEY_VALUE = re.compile(r"\.self_attn\.[kv]_proj\.")
# Tables that the engine keeps outside the GPU, or drops.
TABLES = ("d2t", "t2d")
NO_DIGITS = str.maketrans("", "", "0123456789")


@dataclass(frozen=True)
class Assumptions:
    """Bytes per GPU that no file tells. ``context``: driver and communication before loading; ``load``: what loading
    takes beside weights; the rest stays outside the engine's share: graphs, activations, images.

    Chosen so that the sum gives the 116,153 tokens (bfloat16) that Kimi K2.6 was seen with on 8 x 96 GB at 0.85,
    where 0.90 ran out of memory.
    """

    context: int = GIB
    load: int = GIB
    graphs: int = 3 * GIB
    graphs_with_drafter: int = 5 * GIB
    activations: int = 3 * GIB
    images: int = 5 * GIB


@dataclass(frozen=True)
class Weights:
    """A model's weights: ``split`` is shared out by tensor parallelism, ``replicated`` is on each GPU."""

    total: int
    split: int
    key_value: int
    replicated: int

    def per_gpu(self, tp: int, kv_heads: int | None) -> int:
        """Bytes on one of ``tp`` GPUs; fewer key-value heads than GPUs are held more than once."""
        share = -(-self.key_value // tp)
        if kv_heads is not None and kv_heads < tp:
            share = -(-self.key_value // kv_heads)
        return -(-self.split // tp) + share + self.replicated


@dataclass(frozen=True)
class Question:
    """The options of vram_plan; the module documents them."""

    base: str
    gpus: Sequence[int]
    mem_fraction: float
    drafter: str | None = None
    base_revision: str = "main"
    drafter_revision: str = "main"
    algorithm: str | None = None
    tp_size: int = 1
    context_length: int | None = None
    kv_cache_dtype: str = "auto"
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    timeout: int = 120
    assumptions: Assumptions = field(default_factory=Assumptions)
    names: Mapping[str, str] = field(default_factory=dict)

    def variable(self, option: str) -> str:
        """The operator's name for an option."""
        return self.names.get(option, option)


@dataclass(frozen=True)
class Plan:
    """The sum for one GPU. ``outside`` is what stays for graphs and activations, ``needed_outside`` what they will
    take."""

    memory: int
    before_load: int
    share: int
    base_weights: int
    drafter_weights: int
    load: int
    kv_cache: int
    kv_per_token_base: int
    kv_per_token_drafter: int
    kv_per_token_counted: int
    max_total_tokens: int
    tokens_without_drafter: int
    largest_context: int
    outside: int
    needed_outside: int


@dataclass(frozen=True)
class Answer:
    """What was found; ``plan`` is None without GPUs or readable models."""

    subject: str
    checks: tuple[Check, ...]
    plan: Plan | None
    models: Mapping[str, Mapping[str, object]]
    cost: Cost

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None when that could not be worked out."""
        if any(check.status == FAIL for check in self.checks):
            return False
        return True if self.plan is not None else None

    @property
    def summary(self) -> str:
        """One sentence."""
        return summary(self.subject, self.checks)


def weigh(tensors: Iterable[tuple[str, Tensor]], layers: int, own_embedding: bool) -> Weights:
    """A model's tensors by what tensor parallelism does with them.

    Left out are layers behind the last one (multi-token prediction, loaded only as a drafter) and, unless
    ``own_embedding``, an embedding that the base's replaces.
    """
    held = {"split": 0, "key_value": 0, "replicated": 0, "left out": 0}
    # What a tensor is follows from its name without the numbers: a few dozen kinds, however many experts there are.
    kinds: dict[str, tuple[str, bool]] = {}
    for name, tensor in tensors:
        key = name.translate(NO_DIGITS)
        if key not in kinds:
            kinds[key] = _kind(name, len(tensor.shape), own_embedding), VISION.search(name) is None
        kind, of_text = kinds[key]
        if of_text:
            number = name.partition("layers.")[2].partition(".")[0]
            if number.isdigit() and int(number) >= layers:
                kind = "left out"
        held[kind] += tensor.bytes
    held.pop("left out")
    return Weights(total=sum(held.values()), **held)


def _kind(name: str, dimensions: int, own_embedding: bool) -> str:
    if name in TABLES or (not own_embedding and "embed_tokens." in name):
        return "left out"
    if VISION.search(name) or dimensions < 2 or REPLICATED.search(name):
        return "replicated"
    return "key_value" if KEY_VALUE.search(name) else "split"


def kv_layers(config: Config) -> tuple[int, str]:
    """Layers that cache keys and values, and what is not counted exactly (empty when all is). Raises ConfigError.

    Layers with a linear state instead cache nothing per token; those with a window cache less than is counted here.
    """
    types = config.texts("layer_types")
    linear = sum("linear" in kind or "mamba" in kind for kind in types)
    interval = config.integer("full_attention_interval")
    if types:
        told = f"{linear} layers with a state that is not counted" if linear else ""
        if any("sliding" in kind for kind in types):
            told = f"{told}; " * bool(told) + "layers with a window are counted as if they had none"
        return max(1, config.layers - linear), told
    if interval is not None and interval > 1:
        full = max(1, config.layers // interval)
        return full, f"{config.layers - full} layers with a state that is not counted"
    return config.layers, ""


def kv_bytes(config: Config, tp: int, element: int) -> int:
    """Bytes of one token in the cache of one GPU. Raises ConfigError.

    A latent is one for all heads and so on each GPU whole (SGLang 0.5.20 pool_configurator.py _compute_cell_size);
    heads are shared out, at least one on each GPU.
    """
    layers, dummy = kv_layers(config)
    rank = config.integer("kv_lora_rank")
    if rank is not None:
        return layers * (rank + config.need("qk_rope_head_dim")) * element
    heads = config.need("num_attention_heads")
    size = config.integer("head_dim") or max(1, config.need("hidden_size") // heads)
    value = config.integer("v_head_dim") or size
    shared = config.integer("num_key_value_heads") or heads
    return layers * max(1, shared // tp) * (size + value) * element


@dataclass(frozen=True)
class Model:
    """What is read of one model: where, its config, the language model's part of that, and its weights."""

    source: Mapping[str, str]
    config: Config
    text: Config
    weights: Weights

    def per_gpu(self, tp: int) -> int:
        """Bytes of weights on one of ``tp`` GPUs. Raises ConfigError."""
        heads = None if self.text.integer("kv_lora_rank") is not None else self.text.integer("num_key_value_heads")
        return self.weights.per_gpu(tp, heads)


def plan(question: Question) -> Answer:
    """Reads the headers and does the sum. Raises ValueError when a number given is out of its range."""
    if not 0 < question.mem_fraction < 1:
        variable = question.variable("mem_fraction")
        raise ValueError(f"{variable} is {question.mem_fraction}; set it to a number between 0 and 1")
    if question.tp_size < 1:
        raise ValueError(f"{question.variable('tp_size')} is {question.tp_size}; set it to 1 or more")
    cost = Cost()
    checks, models = read_models(question, cost)
    more, sum_ = work_out(question, models) if all(check.status == PASS for check in checks) else ([], None)
    if sum_ is None and not more:
        reason = "not worked out: see the other checks"
        more = [Check("vram.fit", SKIPPED, "weights and cache that fit into the GPUs", reason)]
    told = {
        role: {**model.source, **asdict(model.weights), "per_gpu_even": -(-model.weights.total // question.tp_size)}
        for role, model in models.items()
    }
    subject = f"base {question.base}" + (f" with drafter {question.drafter}" if question.drafter else "")
    return Answer(f"{subject} on {question.tp_size} GPUs", (*checks, *more), sum_, told, cost)


def read_models(question: Question, cost: Cost) -> tuple[list[Check], dict[str, Model]]:
    """Base and drafter by role, and a check for each; those that could not be read are missing."""
    limits = Limits(MAX_BYTES, MAX_REQUESTS, time.monotonic() + question.timeout)
    checks: list[Check] = []
    models: dict[str, Model] = {}
    for role, value, revision in (
        ("base", question.base, question.base_revision),
        ("drafter", question.drafter, question.drafter_revision),
    ):
        if value is None:
            continue
        id, variable = f"{role}.readable", question.variable(role)
        try:
            source = open_source(value, revision, variable, question.endpoint, question.token, cost, limits)
            checkpoint = read_checkpoint(source, role)
            text = checkpoint.config.text_part
            own = role == "base" or _keeps_embedding(text) or question.algorithm == "STANDALONE"
            weights = weigh(checkpoint.tensors.items(), text.layers, own)
            model = Model(source.describe(), checkpoint.config, text, weights)
            # Whatever the sum asks of the config, asked here, where a bad value has a name.
            _numbers(model, question)
        except NotReadError as error:
            checks.append(Check(id, SKIPPED, f"{variable}: {error.expected}", error.found))
        except CheckpointError as error:
            checks.append(Check(id, FAIL, f"{variable}: {error.expected}", error.found, error.fix))
        else:
            models[role] = model
            found = f"{weights.total} bytes of weights"
            checks.append(Check(id, PASS, f"{variable}: readable headers", found))
    return checks, models


def _numbers(model: Model, question: Question) -> None:
    model.text.integer("num_attention_heads")
    model.text.context()
    model.per_gpu(question.tp_size)
    kv_bytes(model.text, question.tp_size, _element(model.text, question.kv_cache_dtype))


def work_out(question: Question, models: Mapping[str, Model]) -> tuple[list[Check], Plan | None]:
    """The sum, judged; no plan without GPUs."""
    gpus = _gpus(question)
    if gpus.status in (FAIL, SKIPPED):
        return [gpus], None
    sum_ = _sum(question, models)
    return [gpus, *_judge(question, models, sum_)], sum_


def _keeps_embedding(config: Config) -> bool:
    """The drafter's own embedding stays. SGLang srt/models/llama.py set_embed."""
    target = config.integer("target_hidden_size")
    return target is not None and target != config.integer("hidden_size")


def _gpus(question: Question) -> Check:
    id, count = "vram.gpus", len(question.gpus)
    expected = f"{question.tp_size} GPUs of one size, {question.variable('tp_size')}"
    if not count:
        return Check(id, SKIPPED, expected, "no GPUs are given")
    used = sorted(question.gpus, reverse=True)[: question.tp_size]
    found = f"{count} GPUs, the smallest used of {_gib(used[-1])}, the largest of {_gib(used[0])}"
    if count < question.tp_size:
        return Check(id, FAIL, expected, found, f"set {question.variable('tp_size')} to {count} or less")
    if used[-1] < 0.95 * used[0]:
        return Check(id, WARN, expected, found, "the smallest one decides; leave it out, or lower the memory fraction")
    return Check(id, PASS, expected, found)


def _element(config: Config, kv_cache_dtype: str) -> int:
    """Bytes of a number in the cache."""
    if kv_cache_dtype == "auto":
        return 4 if (config.dtype or "") == "float32" else 2
    return 1 if kv_cache_dtype in FP8 else 2


def _sum(question: Question, models: Mapping[str, Model]) -> Plan:
    tp, assumed = question.tp_size, question.assumptions
    base, drafter = models["base"], models.get("drafter")
    element = _element(base.text, question.kv_cache_dtype)
    memory = sorted(question.gpus, reverse=True)[tp - 1]
    before = max(0, memory - assumed.context)
    share = int(before * question.mem_fraction)
    held = base.per_gpu(tp)
    per_token = kv_bytes(base.text, tp, element)
    without = max(0, share - held - assumed.load) // per_token
    drafter_held = drafter_token = 0
    counted = per_token
    needed = assumed.graphs
    if drafter is not None:
        needed = assumed.graphs_with_drafter
        drafter_held = drafter.per_gpu(tp)
        drafter_token = kv_bytes(drafter.text, tp, element)
        # The engine counts a draft layer as one of the base's, except for DFLASH, whose cache it knows.
        layers = per_token * drafter.text.layers // kv_layers(base.text)[0]
        counted += drafter_token if question.algorithm == "DFLASH" else layers
    cache = max(0, share - held - drafter_held - assumed.load)
    tokens = cache // counted
    needed += assumed.activations + (assumed.images if base.config.has("vision_config") else 0)
    # Where the drafter's cache is larger than it was counted, the difference comes from what stays outside.
    needed += max(0, tokens * (per_token + drafter_token - counted))
    return Plan(
        memory=memory,
        before_load=before,
        share=share,
        base_weights=held,
        drafter_weights=drafter_held,
        load=assumed.load,
        kv_cache=cache,
        kv_per_token_base=per_token,
        kv_per_token_drafter=drafter_token,
        kv_per_token_counted=counted,
        max_total_tokens=tokens,
        tokens_without_drafter=without,
        largest_context=min(tokens, base.text.context()),
        outside=before - share,
        needed_outside=needed,
    )


def _judge(question: Question, models: Mapping[str, Model], sum_: Plan) -> list[Check]:
    fraction = question.variable("mem_fraction")
    taken = sum_.base_weights + sum_.drafter_weights + sum_.load
    fits = taken < sum_.share
    expected = (
        f"weights below {_gib(sum_.share)}, {question.mem_fraction} of the {_gib(sum_.before_load)} free at start"
    )
    found = f"{_gib(sum_.base_weights)} base, {_gib(sum_.drafter_weights)} drafter, {_gib(sum_.load)} for loading"
    source = "SGLang srt/model_executor/pool_configurator.py"
    checks = []
    if fits:
        checks.append(Check("vram.weights", PASS, expected, found, "", source))
    else:
        checks.append(Check("vram.weights", FAIL, expected, found, _room(question, models, taken), source))
        reason = "the weights alone do not fit"
        return [*checks, Check("vram.tokens", SKIPPED, "room for the context", reason, "", source)]
    text = models["base"].text
    asked = question.context_length
    wanted = asked if asked is not None else text.context()
    expected = f"room for one request of {wanted} tokens" + ("" if asked is not None else ", the base's own limit")
    found = f"{sum_.max_total_tokens} tokens at {sum_.kv_per_token_counted} bytes each"
    cost = sum_.tokens_without_drafter - sum_.max_total_tokens
    if "drafter" in models:
        found += f" (the drafter costs {cost} tokens)"
    if sum_.max_total_tokens >= wanted:
        checks.append(Check("vram.tokens", PASS, expected, found, "", source))
    else:
        status = FAIL if asked is not None or not sum_.max_total_tokens else WARN
        checks.append(Check("vram.tokens", status, expected, found, _more(question, sum_, wanted), source))
    expected = f"{_gib(sum_.needed_outside)} outside the engine's share, for graphs, activations and the like (assumed)"
    found = f"{_gib(sum_.outside)}"
    if sum_.outside >= sum_.needed_outside:
        checks.append(Check("vram.outside", PASS, expected, found, "", source))
    else:
        highest = max(0.0, 1 - sum_.needed_outside / sum_.before_load)
        fix = f"set {fraction} to {int(highest * 100) / 100:.2f} or less"
        checks.append(Check("vram.outside", WARN, expected, found, fix, source))
    dummy, uncounted = kv_layers(text)
    if uncounted:
        checks.append(Check("vram.layout", SKIPPED, "a cache that is the same for each layer", uncounted, "", source))
    return checks


def _room(question: Question, models: Mapping[str, Model], taken: int) -> str:
    """The shortest way to make the weights fit."""
    assumed, tp = question.assumptions, question.tp_size
    base = models["base"]
    share = int((sorted(question.gpus, reverse=True)[tp - 1] - assumed.context) * question.mem_fraction)
    ways = []
    if "drafter" in models and taken - models["drafter"].per_gpu(tp) < share:
        ways.append(f"leave {question.variable('drafter')} unset")
    heads = base.text.integer("num_attention_heads") or 0
    for more in (2, 4, 8, 16, 32, 64):
        if more > tp and heads % more == 0 and base.per_gpu(more) + assumed.load < share:
            ways.append(f"split it over {more} such GPUs ({question.variable('tp_size')} {more})")
            break
    ways.append(f"take GPUs of more than {_gib(int(taken / question.mem_fraction) + assumed.context)} each")
    return ", or ".join(ways)


def _more(question: Question, sum_: Plan, wanted: int) -> str:
    """The shortest way to the tokens that are wanted."""
    ways = []
    if question.kv_cache_dtype not in FP8 and sum_.kv_cache // max(1, sum_.kv_per_token_counted // 2) >= wanted:
        ways.append(f"set {question.variable('kv_cache_dtype')} to fp8_e4m3")
    if sum_.tokens_without_drafter >= wanted:
        ways.append(f"leave {question.variable('drafter')} unset")
    fraction = (
        wanted * sum_.kv_per_token_counted + sum_.base_weights + sum_.drafter_weights + sum_.load
    ) / sum_.before_load
    rounded = -int(-fraction * 100 // 1) / 100
    if rounded <= 1 - sum_.needed_outside / sum_.before_load:
        ways.append(f"set {question.variable('mem_fraction')} to {rounded:.2f}")
    if sum_.max_total_tokens:
        ways.append(f"set {question.variable('context_length')} to {sum_.max_total_tokens} or less")
    return ", or ".join(ways) or f"take larger GPUs, or a larger {question.variable('tp_size')}"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
