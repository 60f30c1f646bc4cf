# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the installed compressed_tensors has what the installed SGLang asks of it.

SGLang evaluates all formats it knows whenever it loads a compressed-tensors model, so that one missing member ends
every such load with an AttributeError (is_activation_quantization_format in
sglang/srt/layers/quantization/compressed_tensors/utils.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .outline import outline, read_source
from .requirements import satisfies
from .versions import Version, parse_version

NAME = "compressed-tensors"
# The first release with a member, where it is not the oldest one read. Source: the enums in
# compressed_tensors/config/base.py and quantization/quant_args.py of 0.8.1 to 0.20.1.
_FIRST = {
    "CompressionFormat.sparse_24_bitmask": "0.9.0",
    "CompressionFormat.nvfp4_pack_quantized": "0.10.0",
    "QuantizationStrategy.TENSOR_GROUP": "0.10.0",
    "CompressionFormat.mixed_precision": "0.11.0",
    "CompressionFormat.mxfp4_pack_quantized": "0.13.0",
    "QuantizationStrategy.ATTN_HEAD": "0.13.0",
    "CompressionFormat.mxfp8_quantized": "0.15.0",
    "CompressionFormat.mxfp6_pack_quantized": "0.20.0",
}
# What ranges of releases require of other packages. Source: Requires-Dist and Requires-Python of 0.8.1 to 0.20.1.
_NEEDS = (
    ("!=0.14.*", "transformers", "<5.0.0"),
    ("!=0.15.0", "torch", "<2.11"),
    ("<0.16", "torch", ">=2.10.0"),
    ("<0.20", "python", ">=3.11"),
)


@dataclass(frozen=True)
class Reference:
    """A member of one of compressed_tensors' enums, and the first place where SGLang names it."""

    member: str
    place: str


def references(site_packages: Path) -> tuple[list[Reference], list[str]]:
    """Every ``Enum.member`` of compressed_tensors that SGLang names, and the files that could not be read."""
    found: dict[str, str] = {}
    unread: list[str] = []
    srt = site_packages / "sglang" / "srt"
    paths = [*sorted((srt / "layers" / "quantization").rglob("*.py")), *sorted((srt / "models").glob("*.py"))]
    for path in paths:
        text = read_source(path)
        if "from compressed_tensors" not in text:
            continue
        name = path.relative_to(site_packages).as_posix()
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            unread.append(f"{name} cannot be read by this Python: {error}")
            continue
        for member, line in _members_named(module):
            found.setdefault(member, f"{name}:{line}")
    return [Reference(member, place) for member, place in sorted(found.items())], unread


def _members_named(module: ast.Module) -> Iterator[tuple[str, int]]:
    imported: dict[str, str] = {}
    nodes = list(ast.walk(module))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "compressed_tensors":
            imported.update({alias.asname or alias.name: alias.name for alias in node.names})
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield f"{imported[node.value.id]}.{node.attr}", node.lineno


def defined_members(site_packages: Path, classes: Sequence[str]) -> dict[str, frozenset[str]]:
    """Members and methods of those of ``classes`` that the installed compressed_tensors defines as enums."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted((site_packages / "compressed_tensors").rglob("*.py")):
        text = read_source(path)
        if not any(f"class {name}" in text for name in classes):
            continue
        for name, owner in outline(text).classes.items():
            if name in classes and any(base.endswith("Enum") for base in owner.bases):
                found[name] = owner.attributes | frozenset(owner.methods)
    return found


def missing(site_packages: Path, named: Sequence[Reference]) -> list[Reference]:
    """The references that the installed compressed_tensors cannot answer."""
    enums = defined_members(site_packages, sorted({reference.member.partition(".")[0] for reference in named}))
    lacking = []
    for reference in named:
        owner, member = reference.member.split(".")
        if owner in enums and member not in enums[owner]:
            lacking.append(reference)
    return lacking


def usable_range(named: Sequence[Reference], required: str, installed: Mapping[str, Version]) -> str:
    """The version specifier of compressed-tensors that this engine works with.

    ``required`` is the specifier in the engine's own metadata; where it names one release that release is the answer.
    ``installed`` has the versions of torch, transformers and python that the environment is bound to, as far as known.
    """
    if "==" in required:
        return required
    first = max((parse_version(_FIRST[item.member]) for item in named if item.member in _FIRST), default=None)
    parts = [required] if required else []
    if first is not None:
        parts.append(f">={first}")
    for limit, package, need in _NEEDS:
        if package in installed and not satisfies(need, installed[package]):
            parts.append(limit)
    return ",".join(parts)
