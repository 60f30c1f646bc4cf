# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""config.json as the engine sees it: the text part of a nested config, and values of the type that they must have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import CheckpointError, ConfigError

# A size above this is no model's: a bound for all that is computed from config values.
MAX_SIZE = 2**40
# More layers, or states of layers, than any model has.
MAX_LAYERS = 10_000
# Where the language model's own values are, in the order in which the engine prefers them.
# SGLang 0.5.20 srt/utils/hf_transformers/common.py get_hf_text_config.
TEXT_KEYS = ("thinker_config", "llm_config", "language_config", "text_config")
# The first of these that is set is the trained context. SGLang 0.5.20 common.py CONTEXT_LENGTH_KEYS, same since 0.4.6.
CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
DEFAULT_CONTEXT = 2048
# Kinds of rope whose original length the transformers library fills in.
FILLED_ROPES = ("llama3", "yarn", "longrope")


@dataclass(frozen=True)
class Config:
    """The values of one config.json, or of a mapping inside it. ``where`` names the place in messages."""

    values: Mapping[str, object]
    where: str

    def _error(self, key: str, expected: str) -> ConfigError:
        found = f"{self.values.get(key)!r:.80}"
        return ConfigError(key, f"{expected} as {key} in {self.where}", found, f"correct {key} in {self.where}")

    def has(self, key: str) -> bool:
        """The key is there, though its value may be null."""
        return key in self.values

    def integer(self, key: str, minimum: int = 1, maximum: int = MAX_SIZE) -> int | None:
        """A whole number within bounds, or None when absent or null. Raises ConfigError for anything else."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise self._error(key, f"a whole number from {minimum} to {maximum}")
        return value

    def need(self, key: str, maximum: int = MAX_SIZE) -> int:
        """A size that the engine cannot do without. Raises ConfigError when absent."""
        value = self.integer(key, maximum=maximum)
        if value is None:
            raise self._error(key, "a whole number")
        return value

    @property
    def layers(self) -> int:
        """Number of layers. Raises ConfigError when absent, or more than any model has."""
        return self.need("num_hidden_layers", MAX_LAYERS)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; absent or null is ``default``. Raises ConfigError for anything else."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._error(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """A string, or None when absent or null. Raises ConfigError for anything else."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._error(key, "a string")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; absent or null is empty. Raises ConfigError for anything else."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, "a list of strings")
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers (negative ones too), or None when absent or null. Raises ConfigError otherwise."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
            raise self._error(key, "a list of whole numbers")
        return tuple(value)

    def mapping(self, key: str) -> Config | None:
        """A mapping inside, or None when absent or null. Raises ConfigError for anything else."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._error(key, "a mapping")
        return Config(value, f"{key} of {self.where}")

    @property
    def architecture(self) -> str | None:
        """The class that the engine looks up. Raises ConfigError when ``architectures`` is no list of names."""
        names = self.texts("architectures")
        return names[0] if names else None

    @property
    def text_part(self) -> Config:
        """The language model's values: those of a vision base are nested."""
        for key in TEXT_KEYS:
            part = self.mapping(key)
            if part is not None:
                inner = part.mapping("text_config") if key == "thinker_config" else None
                return inner or part
        return self

    @property
    def dtype(self) -> str | None:
        """The weights' declared type without a leading ``torch.``; None when neither key is set."""
        declared = self.text("dtype") or self.text("torch_dtype")
        return declared[len("torch.") :] if declared and declared.startswith("torch.") else declared

    def context(self, filled: bool = True) -> int:
        """Tokens that the engine derives as the model's own limit. Raises ConfigError.

        ``filled``: the transformers library of the engine (5 and later, so SGLang 0.5.10 and later) gives some kinds of
        scaled rope their original length where the config has none, after which the engine scales no more.
        SGLang 0.5.20 srt/utils/hf_transformers/common.py get_context_length, same rule since 0.4.6; transformers 5.12
        modeling_rope_utils.py standardize_rope_params.
        """
        factor = 1.0
        scaling = self.mapping("rope_scaling") or self.mapping("rope_parameters")
        if scaling is not None and not scaling.has("original_max_position_embeddings"):
            kind = scaling.text("rope_type") or scaling.text("type")
            declared = scaling.values.get("factor")
            if declared is not None and kind not in (FILLED_ROPES if filled else ("llama3",)):
                if isinstance(declared, bool) or not isinstance(declared, (int, float)) or not 0 < declared < MAX_SIZE:
                    raise scaling._error("factor", "a positive number")
                factor = float(declared)
        for key in CONTEXT_KEYS:
            value = self.integer(key)
            if value is not None:
                return int(factor * value)
        return DEFAULT_CONTEXT


def parse_json_object(data: bytes, file: str) -> dict[str, object]:
    """The object in a JSON file. Raises CheckpointError for anything else, told apart where the cause is known."""
    expected = f"a JSON object in {file}"
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        head = data.lstrip()[:32]
        if head[:1] == b"<":
            fix = "download the file again, past the proxy or login page"
            raise CheckpointError(expected, "a page of HTML", fix) from error
        if head.startswith(b"version https://git-lfs"):
            fix = "fetch the file itself (git lfs pull, or download again)"
            raise CheckpointError(expected, "a Git LFS pointer", fix) from error
        raise CheckpointError(expected, f"no JSON ({error!s:.120})", f"correct {file}, or download it again") from error
    if not isinstance(parsed, dict):
        found = f"JSON of type {type(parsed).__name__}"
        raise CheckpointError(expected, found, f"correct {file}, or download it again")
    return parsed
