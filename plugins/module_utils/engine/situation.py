# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rules judge: an argument list, the engine and the models it is meant for, and how a rule answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from . import flags as f
from .command_line import CommandLine
from .source import EngineInfo
from .versions import Version

NO_VERSION = "the engine's version is not known"


@dataclass(frozen=True)
class ModelFacts:
    """What the rules need of a model's config.json: its architectures, whether it is quantized, whether it uses MLA."""

    architectures: tuple[str, ...]
    quantized: bool
    mla: bool


def model_facts(path: str | None) -> ModelFacts | None:
    """Reads a model's folder; None where the path is no folder here with a readable config.json."""
    folder = Path(path or "")
    if not folder.is_absolute():
        return None
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    # Models that see wrap the language model's config in text_config.
    text = config.get("text_config")
    parts = [config, text] if isinstance(text, dict) else [config]
    return ModelFacts(
        architectures=tuple(str(name) for name in config.get("architectures") or ()),
        quantized=any("quantization_config" in part or "compression_config" in part for part in parts)
        or (folder / "hf_quant_config.json").exists(),
        mla=any(part.get("kv_lora_rank") for part in parts),
    )


@dataclass(frozen=True)
class Situation:
    """An argument list and what it is meant for.

    ``names`` has the variable in which the operator set each flag. ``engine`` is the installed engine, if all of its
    files that matter could be read; ``resolved`` what it made of the list, as far as that holds on the target.
    ``spelled`` has how each flag of the list is read, without those of which that is not known.
    """

    line: CommandLine
    version: Version | None
    names: Mapping[str, str]
    environment: Mapping[str, str]
    allow_adjusted: Collection[str]
    engine: EngineInfo | None = None
    resolved: Mapping[str, object] = field(default_factory=dict)
    spelled: Mapping[str, f.Spelling] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        version: Version | None,
        names: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        allow_adjusted: Collection[str] = (),
        engine: EngineInfo | None = None,
    ) -> Situation:
        """From the module's parameters; flags in ``allow_adjusted`` may be written with or without dashes in front."""
        allowed = tuple("--" + name.lstrip("-").replace("_", "-") for name in allow_adjusted)
        source = engine if engine and not engine.problems else None
        declared = {name: flag.alias_of for name, flag in source.flags.items()} if source else {}
        spelled = f.spelled_in(CommandLine.read(words, {}).given, declared)
        aliases = {flag: f.ALIASES.get(read.option, read.option) for flag, read in spelled.items()}
        line = CommandLine.read(words, aliases)
        return cls(line, version, names or {}, environment or {}, allowed, source, spelled=spelled)

    def named(self, flag: str) -> str:
        """The flag with the variable that sets it."""
        variable = self.names.get(flag)
        return f"{flag} ({variable})" if variable else flag

    def set_to(self, flag: str, value: object) -> str:
        """What to write: the variable, or the flag where no variable is known, and its value."""
        variable = self.names.get(flag)
        return f"{variable}: {value}" if variable else f"{flag} {value}"

    @property
    def algorithm(self) -> str | None:
        """The algorithm asked for, in capitals; None without speculation."""
        text = self.line.text(f.ALGORITHM)
        return text.upper() if text else None

    def effective(self, flag: str) -> str | None:
        """The value of a text setting: as resolved where that is known, else as given."""
        value = self.resolved.get(flag[2:].replace("-", "_"), self.line.text(flag))
        return None if value is None else str(value)

    @property
    def settings_file(self) -> str | None:
        """The file that brings more settings; the engine looks for its flag by the whole name (prepare_server_args)."""
        return self.line.text(f.CONFIG) if f.CONFIG in self.line.given else None

    def missing_model(self, flag: str) -> bool:
        """Whether the model that a flag names has no config on this machine."""
        path = self.line.text(flag)
        return path is not None and model_facts(path) is None

    @property
    def base(self) -> ModelFacts | None:
        """The base model, None where its config is not on this machine."""
        return model_facts(self.line.text(f.MODEL))

    @property
    def drafter(self) -> ModelFacts | None:
        """The drafter, None where there is none or its config is not on this machine."""
        return model_facts(self.line.text(f.DRAFTER))

    @property
    def numbers(self) -> dict[str, int | None]:
        """Steps, topk and draft tokens as given, in this order."""
        return {flag: self.line.number(flag) for flag in (f.STEPS, f.TOPK, f.DRAFT_TOKENS)}


@dataclass(frozen=True)
class Question:
    """What a rule asks: the check's id, what is expected, and where the rule comes from."""

    id: str
    expected: str
    source: str

    def passed(self, actual: str) -> Check:
        return Check(self.id, PASS, self.expected, actual, source=self.source)

    def failed(self, actual: str, fix: str) -> Check:
        return Check(self.id, FAIL, self.expected, actual, fix, self.source)

    def warned(self, actual: str, fix: str) -> Check:
        return Check(self.id, WARN, self.expected, actual, fix, self.source)

    def skipped(self, why: str) -> Check:
        return Check(self.id, SKIPPED, self.expected, why, source=self.source)
