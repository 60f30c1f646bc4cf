# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for torchvision, which does not load beside a CPU build of torch.

Every submodule and name can be imported, nothing in it works: models of plain text never call it.
"""

from __future__ import annotations

import enum
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

__version__ = "0.28.0"


class _Placeholder(type):
    """A class whose attributes exist and are their own names."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


def _placeholder(module: str, name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Placeholder(name, (), {"__module__": module})


class InterpolationMode(enum.Enum):
    """transformers reads its members while it is imported."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds each submodule of this package, and fills it with placeholders."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("torchvision."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.InterpolationMode = InterpolationMode
        module.__getattr__ = lambda name: _placeholder(spec.name, name)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to execute."""


sys.meta_path.insert(0, _Finder())
