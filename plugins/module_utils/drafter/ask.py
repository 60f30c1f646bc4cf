# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole question: read the base, read the drafter, judge the pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..checkpoint.errors import CheckpointError, ConfigError, NotReadError
from ..checkpoint.hub import Hub, Limits, open_source
from ..checkpoint.reader import Checkpoint, read_checkpoint
from ..checkpoint.source import Cost
from ..checks import FAIL, PASS, SKIPPED, Check, summary
from ..engine.packages import site_packages_of
from ..engine.source import read_engine
from ..engine.versions import parse_version
from .identity import algorithm, base_class, built_in_head, model_type, release
from .judge import apply, judge
from .layers import captured_layers
from .pair import Pair, Request
from .sizes import quantisation

# A remote pair may cost this much: all configs and headers of a 1T model's pair are well below, one shard is far above.
MAX_BYTES = 8_000_000
MAX_REQUESTS = 60


@dataclass(frozen=True)
class Question:
    """The options of drafter_compat; the module documents them."""

    base: str
    engine: str
    drafter: str | None = None
    base_revision: str = "main"
    drafter_revision: str = "main"
    algorithm: str | None = None
    tp_size: int = 1
    context_length: int | None = None
    quantization: str | None = None
    draft_quantization: str | None = None
    attention_backend: str | None = None
    draft_attention_backend: str | None = None
    dtype: str = "auto"
    trust_remote_code: bool | None = None
    allow_longer_context: bool = False
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    timeout: int = 60
    names: Mapping[str, str] = field(default_factory=dict)

    def variable(self, option: str) -> str:
        """The operator's name for an option."""
        return self.names.get(option, option)


@dataclass(frozen=True)
class Answer:
    """What was found. ``base`` and ``drafter`` are what was read of them, None when nothing could be."""

    subject: str
    checks: tuple[Check, ...]
    base: dict[str, object] | None
    drafter: dict[str, object] | None
    cost: Cost

    @property
    def compatible(self) -> bool:
        """No check failed."""
        return all(check.status != FAIL for check in self.checks)

    @property
    def summary(self) -> str:
        """One sentence."""
        return summary(self.subject, self.checks)


def ask(question: Question) -> Answer:
    """Reads and judges. Raises ValueError when ``engine`` is neither a version nor a venv with SGLang in it, or
    tp_size no size."""
    if question.tp_size < 1:
        raise ValueError(f"{question.variable('tp_size')} is {question.tp_size}; set it to 1 or more")
    installed = None
    if question.engine.startswith("/"):
        installed = read_engine(site_packages_of(Path(question.engine)))
    request = Request(
        engine=installed.version if installed is not None else parse_version(question.engine),
        installed=installed,
        algorithm=question.algorithm or "",
        tp_size=question.tp_size,
        context_length=question.context_length,
        quantization=question.quantization,
        draft_quantization=question.draft_quantization,
        attention_backend=question.attention_backend,
        draft_attention_backend=question.draft_attention_backend,
        dtype=question.dtype,
        trust_remote_code=question.trust_remote_code,
        allow_longer_context=question.allow_longer_context,
        names=question.names,
    )
    cost = Cost()
    limits = Limits(MAX_BYTES, MAX_REQUESTS, time.monotonic() + question.timeout)
    checks, base = _read(question, "base", question.base, question.base_revision, cost, limits)
    subject = f"base {question.base}"
    drafter: Checkpoint | None = None
    layers: list[int] | None = None
    if base is not None:
        kinds = (("base.architecture", partial(base_class, request=request)), _model_type("base", request))
        checks += apply(kinds, base)
    if question.drafter is None:
        if base is not None and request.method == "EAGLE":
            checks += apply((("drafter.mtp_layer", built_in_head),), Pair(base, base, request))
        checks.append(Check("drafter.fit", SKIPPED, "a drafter that fits the base", "no drafter is set"))
    else:
        subject = f"drafter {question.drafter} on {subject}"
        named = [*algorithm(request), *release(request)]
        more, drafter = _read(question, "drafter", question.drafter, question.drafter_revision, cost, limits)
        checks += named + more
        if base is None or drafter is None or any(check.status == FAIL for check in named + more):
            reason = "not compared: see the failed checks"
            checks.append(Check("drafter.fit", SKIPPED, "a drafter that fits the base", reason))
        else:
            checks += apply((_model_type("drafter", request),), drafter)
            pair = Pair(base, drafter, request)
            checks += judge(pair)
            layers = _captured(pair)
    told = _told(drafter)
    if told is not None:
        told["captured_layers"] = layers
    return Answer(subject, tuple(checks), _told(base), told, cost)


def _captured(pair: Pair) -> list[int] | None:
    try:
        return captured_layers(pair)
    except ConfigError:
        return None


def _model_type(role: str, request: Request) -> tuple[str, Callable[[Checkpoint], list[Check]]]:
    return f"{role}.model_type", partial(model_type, request=request)


def _read(
    question: Question, role: str, value: str, revision: str, cost: Cost, limits: Limits
) -> tuple[list[Check], Checkpoint | None]:
    id = f"{role}.readable"
    variable = question.variable(role)
    try:
        source = open_source(value, revision, variable, question.endpoint, question.token, cost, limits)
        checkpoint = read_checkpoint(source, role)
    except CheckpointError as error:
        return [Check(id, FAIL, f"{variable}: {error.expected}", error.found, error.fix)], None
    name = checkpoint.config.values.get("architectures")
    read = Check(id, PASS, f"{variable}: a readable checkpoint", f"{value} ({name})")
    return [read, _weights(checkpoint, variable)], checkpoint


def _weights(checkpoint: Checkpoint, variable: str) -> Check:
    """The weight files are there and whole, as far as that is seen without reading them."""
    id, expected = f"{checkpoint.role}.weights", f"{variable}: all weight files, none cut short"
    if isinstance(checkpoint.source, Hub):
        return Check(id, SKIPPED, expected, "not on this host yet")
    try:
        number, total = checkpoint.outline
    except NotReadError as error:
        return Check(id, SKIPPED, expected, error.found)
    except CheckpointError as error:
        return Check(id, FAIL, f"{variable}: {error.expected}", error.found, error.fix)
    return Check(id, PASS, expected, f"{number} files of {total} bytes")


# What is told of each model beside where it was read, under the name that config.json has for it.
TOLD = (
    "architectures",
    "model_type",
    "hidden_size",
    "target_hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "kv_lora_rank",
    "vocab_size",
    "draft_vocab_size",
    "eagle_config",
    "dflash_config",
    "num_nextn_predict_layers",
)


def _told(checkpoint: Checkpoint | None) -> dict[str, object] | None:
    """What was read, normalised: the language model's values, null for what is not there."""
    if checkpoint is None:
        return None
    told: dict[str, object] = dict(checkpoint.source.describe())
    config = checkpoint.config
    try:
        text = config.text_part
        told["context"], told["dtype"] = text.context(), text.dtype or config.dtype
        told["quantization"] = quantisation(text) or quantisation(config)
    except ConfigError:
        text = config
    for key in TOLD:
        told[key] = config.values.get(key, text.values.get(key))
    return told
