# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installed SGLang can do, read from its files without importing them.

The layouts of the releases that were read:

* algorithms (sglang/srt/speculative/spec_info.py): an IntEnum up to 0.5.3, a class whose members are registered by
  calls at the module's end from 0.5.4 to 0.5.7, an Enum from 0.5.8 on, and from 0.5.12 on a registry for plugins beside
  it (spec_registry.py).
* flags: ``parser.add_argument(...)`` in sglang/srt/server_args.py; from 0.5.14 on fields ``name: A[type, "help" or
  Arg(...)] = default``, from 0.5.20 on in sglang/srt/arg_groups/fields/.
* architectures: ``EntryClass`` in each file directly in sglang/srt/models/, as the model registry imports them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .outline import ClassOutline, FileOutline, outline, read_source
from .packages import EngineMissingError, Packages, plugins_in, read_packages
from .versions import Version

# A drafter's class by its name; no release marks them otherwise.
_DRAFT = re.compile(r"NextN|MTP|Eagle|DFlash|DSpark|Assistant")
_CAPTURE = {
    "eagle3": "set_eagle3_layers_to_capture",
    "dflash": "set_dflash_layers_to_capture",
    "embed_head": "get_embed_and_head",
}


@dataclass(frozen=True)
class DeclaredFlag:
    """A flag of the command line as the source declares it.

    ``default`` is its value, or the expression's text where it is none that can be read; ``choices`` is None where any
    value is taken, ``choices_text`` the expression where the choices are made at run time.
    """

    name: str
    alias_of: str
    default: object
    choices: tuple[object, ...] | None
    choices_text: str
    source: str


@dataclass(frozen=True)
class Architecture:
    """A registered model class: its file and line, and where the methods that speculation calls are ("": nowhere)."""

    name: str
    source: str
    eagle3: str = ""
    dflash: str = ""
    embed_head: str = ""


@dataclass(frozen=True)
class EngineInfo:
    """An installed SGLang.

    ``algorithms`` is what the command line takes, ``members`` what the class defines, ``plugins`` the packages that may
    add to both, ``problems`` what could not be understood.
    """

    packages: Packages
    version: Version
    requires_python: str
    requires: tuple[str, ...]
    layout: str
    members: tuple[str, ...]
    algorithms: tuple[str, ...]
    flags: Mapping[str, DeclaredFlag]
    base_architectures: Mapping[str, Architecture]
    draft_architectures: Mapping[str, Architecture]
    plugins: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def eagle3_capture(self) -> frozenset[str]:
        """The bases that hand out the hidden states an EAGLE-3 drafter reads."""
        return frozenset(name for name, base in self.base_architectures.items() if base.eagle3)

    @property
    def dflash_capture(self) -> frozenset[str]:
        """The bases that hand out the hidden states a DFLASH drafter reads."""
        return frozenset(name for name, base in self.base_architectures.items() if base.dflash)


def read_engine(site_packages: str | Path) -> EngineInfo:
    """Reads the SGLang in a site-packages folder, or in a folder with unpacked wheels.

    Raises EngineMissingError when there is no SGLang.
    """
    packages = read_packages(Path(site_packages))
    srt = packages.folder / "sglang" / "srt"
    version = packages.versions.get("sglang")
    if version is None or not (srt / "server_args.py").is_file():
        raise EngineMissingError(f"there is no SGLang in {packages.folder}; install it first (role sglang_install)")
    metadata = packages.metadata("sglang")
    reader = _Reader(packages.folder)
    flags = reader.flags()
    layout, members, aliases = reader.algorithms()
    declared = flags.get("--speculative-algorithm")
    if declared is not None and declared.choices is not None:
        algorithms = tuple(str(choice) for choice in declared.choices)
    else:
        algorithms = (*(name for name in members if name != "NONE"), *aliases)
    registered = reader.architectures()
    return EngineInfo(
        packages=packages,
        version=version,
        requires_python=metadata.get("Requires-Python", [""])[0],
        requires=tuple(metadata.get("Requires-Dist", [])),
        layout=layout,
        members=members,
        algorithms=algorithms,
        flags=flags,
        base_architectures={name: model for name, model in registered.items() if not _DRAFT.search(name)},
        draft_architectures={name: model for name, model in registered.items() if _DRAFT.search(name)},
        plugins=plugins_in(packages.folder),
        problems=tuple(reader.problems),
    )


class _Reader:
    """Reads one site-packages folder; each file once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.srt = folder / "sglang" / "srt"
        self.problems: list[str] = []
        self._outlines: dict[Path, FileOutline] = {}

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _parse(self, path: Path) -> ast.Module | None:
        try:
            return ast.parse(read_source(path))
        except (OSError, SyntaxError, ValueError) as error:
            self.problems.append(f"{self._name(path)} cannot be read by this Python: {error}")
            return None

    # --- algorithms

    def algorithms(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The layout's name, the members of SpeculativeAlgorithm, and other names that are taken for a member."""
        path = self.srt / "speculative" / "spec_info.py"
        module = self._parse(path)
        if module is None:
            return "unknown", (), ()
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == "SpeculativeAlgorithm":
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                if any(keyword.arg == "metaclass" for keyword in node.keywords):
                    return "registry", *self._registered(module)
                members = tuple(_members(node))
                aliases = self._reserved(members)
                kind = "IntEnum" if "IntEnum" in bases else "Enum"
                return kind if aliases is None else f"{kind} with plugins", members, aliases or ()
        self.problems.append(f"{self._name(path)} defines no class SpeculativeAlgorithm")
        return "unknown", (), ()

    @staticmethod
    def _registered(module: ast.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
        members: list[str] = []
        aliases: list[str] = []
        for node in module.body:
            call = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(call, ast.Call) or not call.args:
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in ("register", "register_speculative_algorithm") and isinstance(call.args[0], ast.Constant):
                members.append(str(call.args[0].value))
                for keyword in call.keywords:
                    if keyword.arg == "aliases":
                        aliases += ast.literal_eval(keyword.value)
        return tuple(members), tuple(aliases)

    def _reserved(self, members: tuple[str, ...]) -> tuple[str, ...] | None:
        """The aliases in the plugin registry, None where there is no such registry."""
        path = self.srt / "speculative" / "spec_registry.py"
        if not path.is_file():
            return None
        module = self._parse(path)
        for node in module.body if module else []:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").startswith("_RESERVED"):
                names = sorted(str(leaf.value) for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant))
                return tuple(name for name in names if name not in members)
        return ()

    # --- flags

    def flags(self) -> dict[str, DeclaredFlag]:
        """Every flag of the command line."""
        paths = [self.srt / "server_args.py", *sorted((self.srt / "arg_groups").rglob("*.py"))]
        modules = {path: module for path in paths if (module := self._parse(path)) is not None}
        constants: dict[str, ast.expr] = {}
        for module in modules.values():
            for node in module.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    constants[node.targets[0].id] = node.value
        found: dict[str, DeclaredFlag] = {}
        for path, module in modules.items():
            for node in module.body:
                if isinstance(node, ast.ClassDef):
                    fields = _fields(node)
                    for flag in self._class_flags(node, fields, constants, self._name(path)):
                        found.setdefault(flag.name, flag)
        return found

    @staticmethod
    def _class_flags(
        node: ast.ClassDef, fields: Mapping[str, ast.AnnAssign], constants: Mapping[str, ast.expr], file: str
    ) -> Iterator[DeclaredFlag]:
        for name, field in fields.items():
            declared = _annotated(field.annotation)
            if declared is None:
                continue
            kind, keywords = declared
            if getattr(keywords.get("no_cli"), "value", False):
                continue
            choices, text = _choices(keywords.get("choices") or _literal_type(kind), constants)
            cli_name = keywords.get("cli_name")
            main = str(cli_name.value) if isinstance(cli_name, ast.Constant) else "--" + name.replace("_", "-")
            default = _value(field.value, constants)
            aliases = _value(keywords.get("aliases"), constants)
            for flag in _with_opposite([main, *(aliases if isinstance(aliases, list) else [])], keywords):
                alias_of = main if flag != main else ""
                yield DeclaredFlag(flag, alias_of, default, choices, text, f"{file}:{field.lineno}")
        for call in ast.walk(node):
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "add_argument":
                continue
            names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
            keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            default = _default(keywords, fields, constants)
            choices, text = _choices(keywords.get("choices"), constants)
            long = [name for name in names if isinstance(name, str) and name.startswith("--")]
            for flag in _with_opposite(long, keywords):
                alias_of = long[0] if flag != long[0] else ""
                yield DeclaredFlag(flag, alias_of, default, choices, text, f"{file}:{call.lineno}")

    # --- architectures

    def _outline(self, path: Path) -> FileOutline:
        if path not in self._outlines:
            self._outlines[path] = outline(read_source(path))
        return self._outlines[path]

    def _module_path(self, module: str, importer: Path) -> Path | None:
        """The file of a module within this SGLang, None for modules elsewhere."""
        if module.startswith("."):
            level = len(module) - len(module.lstrip("."))
            base = importer.parents[level - 1].joinpath(*module[level:].split(".")) if module[level:] else None
        else:
            base = self.folder.joinpath(*module.split(".")) if module.startswith("sglang.") else None
        if base is None:
            return None
        for path in (base.with_name(base.name + ".py"), base / "__init__.py"):
            if path.is_file():
                return path
        return None

    def _find(self, name: str, path: Path, depth: int = 0) -> tuple[Path, ClassOutline] | None:
        """Where a class that ``path`` knows by ``name`` is defined."""
        file = self._outline(path)
        if name in file.classes:
            return path, file.classes[name]
        if name in file.imports and depth < 8:
            module, original = file.imports[name]
            source = self._module_path(module, path)
            if source is not None:
                return self._find(original, source, depth + 1)
        return None

    def _method(self, name: str, path: Path, owner: ClassOutline, seen: frozenset[str] = frozenset()) -> str:
        """File and line of a method of a class or of the nearest base that has it, "" where none has."""
        if name in owner.methods:
            return f"{self._name(path)}:{owner.methods[name]}"
        for base in owner.bases:
            found = self._find(base, path)
            # A class may extend one of its own name from another file.
            key = f"{found[0]}:{base}" if found else ""
            if found is not None and key not in seen:
                place = self._method(name, *found, seen | {key})
                if place:
                    return place
        return ""

    def architectures(self) -> dict[str, Architecture]:
        """Every registered model class with what speculation needs of it."""
        registered: dict[str, Architecture] = {}
        for path in sorted((self.srt / "models").glob("*.py")):
            for name in self._outline(path).entry:
                found = self._find(name, path)
                if found is None:
                    self.problems.append(f"{self._name(path)} registers {name}, whose class was not found")
                    registered[name] = Architecture(name, self._name(path))
                    continue
                where, owner = found
                places = {key: self._method(method, where, owner) for key, method in _CAPTURE.items()}
                registered[owner.name] = Architecture(owner.name, f"{self._name(where)}:{owner.line}", **places)
        return dict(sorted(registered.items()))


def _members(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        targets = (
            item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                yield target.id


def _fields(node: ast.ClassDef) -> dict[str, ast.AnnAssign]:
    return {
        item.target.id: item
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


def _head(node: ast.expr) -> str:
    return getattr(node.value, "id", "") if isinstance(node, ast.Subscript) else ""


def _annotated(annotation: ast.expr) -> tuple[ast.expr, dict[str, ast.expr]] | None:
    """Type and keywords of ``A[type, "help" or Arg(...), ...]``; None for a plain annotation or one without either."""
    if _head(annotation) not in ("A", "Annotated") or not isinstance(annotation, ast.Subscript):
        return None
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    for part in parts[1:]:
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") == "Arg":
            return parts[0], {keyword.arg: keyword.value for keyword in part.keywords if keyword.arg}
        if not isinstance(part, ast.Call):
            return parts[0], {}
    return None


def _literal(node: ast.expr, constants: Mapping[str, ast.expr], depth: int = 0) -> object:
    """The value of an expression of literals, constants of the same source, lists and ``+``.

    Raises ValueError where the expression is more than that.
    """
    if isinstance(node, ast.Name) and node.id in constants and depth < 8:
        return _literal(constants[node.id], constants, depth + 1)
    copies = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("list", "tuple", "sorted")
    if isinstance(node, ast.Call) and copies and len(node.args) == 1:
        return _literal(node.args[0], constants, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, constants, depth), _literal(node.right, constants, depth)
        if isinstance(left, list) and isinstance(right, list):
            return left + right
    if isinstance(node, (ast.List, ast.Tuple)):
        items: list[object] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                inner = _literal(item.value, constants, depth)
                items += inner if isinstance(inner, list) else [inner]
            else:
                items.append(_literal(item, constants, depth))
        return items
    return ast.literal_eval(node)


def _value(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> object:
    """An expression's value, its text where it cannot be read."""
    if node is None:
        return None
    try:
        return _literal(node, constants)
    except ValueError:
        return ast.unparse(node)


def _choices(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> tuple[tuple[object, ...] | None, str]:
    """The choices in a list, and the expression's text where they are made at run time."""
    value = _value(node, constants)
    if node is None or value is None:
        return None, ""
    return (tuple(value), "") if isinstance(value, list) else (None, ast.unparse(node))


def _literal_type(kind: ast.expr) -> ast.expr | None:
    """The list of choices in ``Literal[...]`` or ``Optional[Literal[...]]``, None for other types."""
    if _head(kind) == "Optional" and isinstance(kind, ast.Subscript):
        return _literal_type(kind.slice)
    if _head(kind) != "Literal" or not isinstance(kind, ast.Subscript):
        return None
    return kind.slice if isinstance(kind.slice, ast.Tuple) else ast.Tuple(elts=[kind.slice], ctx=ast.Load())


def _with_opposite(names: Sequence[str], keywords: Mapping[str, ast.expr]) -> list[str]:
    """The names of a flag; argparse.BooleanOptionalAction adds ``--no-`` to each."""
    opposite = getattr(keywords.get("action"), "attr", "") == "BooleanOptionalAction"
    return [*names, *("--no-" + name[2:] for name in names if opposite)]


def _default(
    keywords: Mapping[str, ast.expr], fields: Mapping[str, ast.AnnAssign], constants: Mapping[str, ast.expr]
) -> object:
    """The default of an ``add_argument`` call: its own, or the field of ServerArgs that it names."""
    node = keywords.get("default")
    if isinstance(node, ast.Attribute) and node.attr in fields:
        return _value(fields[node.attr].value, constants)
    if node is not None:
        return _value(node, constants)
    stored_in = str(getattr(keywords.get("dest"), "value", ""))
    if stored_in in fields:
        return _value(fields[stored_in].value, constants)
    return False if getattr(keywords.get("action"), "value", None) == "store_true" else None
