# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked about a base and a drafter, and the words in which the answer names the operator's variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..checkpoint.reader import Checkpoint
from ..checks import FAIL, PASS, SKIPPED, Check
from ..engine.source import EngineInfo
from ..engine.versions import Version, parse_version

LLAMA = "LlamaForCausalLMEagle3"
MLA = "Eagle3DeepseekV2ForCausalLM"
# How the engine resolves the flag: NEXTN is EAGLE under another name in every version.
# SGLang 0.5.20 srt/speculative/spec_info.py from_string; the same name map since 0.4.6.
SAME_ALGORITHM = {"NEXTN": "EAGLE"}


@dataclass(frozen=True)
class Request:
    """How the pair is to be served. ``names`` maps an option (base, drafter, ...) to the operator's variable for it."""

    engine: Version
    algorithm: str
    # The installed engine's own source, where one was given: what it registers is then known and not remembered.
    installed: EngineInfo | None = None
    tp_size: int = 1
    context_length: int | None = None
    quantization: str | None = None
    draft_quantization: str | None = None
    attention_backend: str | None = None
    draft_attention_backend: str | None = None
    dtype: str = "auto"
    trust_remote_code: bool | None = None
    allow_longer_context: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def since(self, version: str) -> bool:
        """The engine is of this version or a later one."""
        return self.engine >= parse_version(version)

    def variable(self, option: str) -> str:
        """The operator's name for an option."""
        return self.names.get(option, option)

    @property
    def method(self) -> str:
        """The algorithm in capitals, aliases resolved."""
        name = self.algorithm.upper()
        return SAME_ALGORITHM.get(name, name)

    def where(self, file: str) -> str:
        """A ``source`` of a check: the engine's file in this version."""
        return f"SGLang {self.engine} {file}"


@dataclass(frozen=True)
class Pair:
    """A base, a drafter, and how they are to be served together."""

    base: Checkpoint
    drafter: Checkpoint
    request: Request


def verdict(id: str, ok: bool, expected: str, actual: str, fix: str, source: str, otherwise: str = FAIL) -> Check:
    """A check that passes when ``ok``, and is ``otherwise`` (fail or warn) with its fix when not."""
    if ok:
        return Check(id, PASS, expected, actual, "", source)
    return Check(id, otherwise, expected, actual, fix, source)


def skipped(id: str, expected: str, reason: str, source: str = "") -> Check:
    """A check that was not made, with the reason."""
    return Check(id, SKIPPED, expected, reason, "", source)
