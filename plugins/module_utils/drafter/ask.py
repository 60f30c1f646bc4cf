# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole question: read the base, read the drafter, judge the pair."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..checkpoint.config import Config
from ..checkpoint.errors import CheckpointError, ConfigError, NotReadError
from ..checkpoint.hub import Hub, Limits, open_source
from ..checkpoint.reader import Checkpoint, read_checkpoint
from ..checkpoint.source import Cost
from ..checks import FAIL, PASS, SKIPPED, Check, summary
from ..engine.packages import site_packages_of
from ..engine.source import read_engine
from ..engine.versions import parse_version
from .identity import algorithm, base_class, release
from .judge import apply, judge
from .pair import Pair, Request

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
    drafter = None
    if base is not None:
        checks += apply((("base.architecture", lambda checkpoint: base_class(checkpoint, request)),), base)
    if question.drafter is None:
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
            checks += judge(Pair(base, drafter, request))
    return Answer(subject, tuple(checks), _told(base), _told(drafter), cost)


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


def _told(checkpoint: Checkpoint | None) -> dict[str, object] | None:
    """What was read, normalised: null for what is not there or not usable."""
    if checkpoint is None:
        return None
    text = _quiet(checkpoint.config)
    told: dict[str, object] = dict(checkpoint.source.describe())
    told["architectures"] = checkpoint.config.values.get("architectures")
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
    for key in (*sizes, "draft_vocab_size", "target_hidden_size", "max_position_embeddings"):
        told[key] = text.values.get(key)
    return told


def _quiet(config: Config) -> Config:
    try:
        return config.text_part
    except ConfigError:
        return config
