# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import flags
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.algorithms import known_algorithms, takes_any_case
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.outline import outline, read_source
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.packages import (
    EngineMissingError,
    site_packages_of,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import EngineInfo, read_engine
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version

from tests.unit.plugins.module_utils.engine import published

# They span the layouts: IntEnum, registry, Enum, Enum with plugins; add_argument, fields, fields in a folder.
SPANNING = ["0.4.6.post5", "0.5.5", "0.5.9", "0.5.12", "0.5.15", "0.5.20", "0.5.23"]

ENUM = """
class SpeculativeAlgorithm({}):
    EAGLE = auto()
    EAGLE3 = auto()
    NONE = auto()
"""
REGISTRY = """
class _Meta(type):
    pass

class SpeculativeAlgorithm(metaclass=_Meta):
    _flags: dict = {}

SpeculativeAlgorithm.register("NONE")
register_speculative_algorithm(
    "EAGLE",
    aliases=("NEXTN",),
)
register_speculative_algorithm("EAGLE3")
"""
ARGPARSE = """
CHOICES = ["a", "b"]

class ServerArgs:
    speculative_num_steps: int = 3
    old: bool = False

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--speculative-algorithm", type=str, choices=["EAGLE", "NEXTN"])
        parser.add_argument("--speculative-num-steps", "--steps", default=ServerArgs.speculative_num_steps)
        parser.add_argument("--kind", choices=CHOICES + ["c"])
        parser.add_argument("--late", choices=CHOICES + made_later())
        parser.add_argument("--old-name", dest="old", action=Deprecated)
        parser.add_argument("--on", action="store_true")
"""
FIELDS = """
class Spec(msgspec.Struct):
    speculative_algorithm: A[Optional[str], "An algorithm."] = None
    speculative_draft_model_path: A[Optional[str], Arg(aliases=["--speculative-draft-model"]), NS("spec")] = None
    speculative_mode: A[Literal["prefill", "decode"], NS("spec"), Arg(help="x")] = "prefill"
    one: A[Optional[Literal["x"]], "One."] = None
    hidden: A[bool, Arg(no_cli=True)] = False
    renamed: A[int, Arg(cli_name="--other")] = 10 * 2
    both: A[bool, Arg(help="x", action=argparse.BooleanOptionalAction)] = True
    plain: int = 1
"""


def make(folder: Path, spec_info: str, server_args: str, **files: str) -> Path:
    """A folder with as much of an engine as is read."""
    (folder / "sglang-0.5.20.dist-info").mkdir(parents=True)
    (folder / "sglang-0.5.20.dist-info" / "METADATA").write_text(
        "Name: sglang\nRequires-Python: >=3.10\nRequires-Dist: torch==2.9.1\n"
    )
    texts = {"speculative/spec_info.py": spec_info, "server_args.py": server_args, **files}
    for name, text in texts.items():
        path = folder / "sglang" / "srt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize("version", SPANNING)
def test_published_release_is_read_as_recorded(version: str, release: Callable[[str], Path]) -> None:
    engine = read_engine(release(version))
    assert str(engine.version) == version
    assert engine.problems == ()
    assert published.facts(engine) == published.recorded(version)


def test_outline_is_what_a_full_parse_finds(release: Callable[[str], Path]) -> None:
    files = sorted((release("0.5.23") / "sglang" / "srt" / "models").glob("*.py"))
    assert len(files) > 200
    for path in files:
        text = read_source(path)
        classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
        found = outline(text)
        assert {node.name: node.lineno for node in classes} == {name: item.line for name, item in found.classes.items()}
        for node in classes:
            methods = {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}
            assert methods == set(found.classes[node.name].methods), path
            assert len(node.bases) == len(found.classes[node.name].bases), path


@pytest.mark.parametrize("version", published.RELEASES)
def test_tables_say_what_the_sources_say(version: str) -> None:
    facts = published.recorded(version)
    assert set(known_algorithms(version)) == {fact.split()[1] for fact in facts if fact.startswith("algorithm ")}
    choices = any(fact.startswith("choice --speculative-algorithm ") for fact in facts)
    assert takes_any_case(parse_version(version)) is not choices
    declared = {fact.split()[1] for fact in facts if fact.startswith("flag ") and not fact.startswith("flag --no-")}
    declared -= set(flags.ALIASES)
    assert {flag.name for flag in flags.SPECULATIVE if flag.span.holds(parse_version(version))} == declared


@pytest.mark.parametrize(
    ("version", "base", "captures"),
    [
        ("0.5.3.post3", "DeepseekV3ForCausalLM", False),
        ("0.5.4.post3", "DeepseekV3ForCausalLM", True),
        ("0.5.9", "KimiK25ForConditionalGeneration", False),
        ("0.5.10.post1", "KimiK25ForConditionalGeneration", True),
        ("0.5.23", "DeepseekV4ForCausalLM", False),
    ],
)
def test_record_holds_the_known_turning_points(version: str, base: str, captures: bool) -> None:
    line = next(fact for fact in published.recorded(version) if fact.split()[:2] == ["base", base])
    assert ("eagle3" in line.split()) is captures


@pytest.mark.parametrize(
    ("spec_info", "registry", "layout", "algorithms"),
    [
        (ENUM.format("IntEnum"), None, "IntEnum", ("EAGLE", "EAGLE3")),
        (REGISTRY, None, "registry", ("EAGLE", "EAGLE3", "NEXTN")),
        (ENUM.format("Enum"), None, "Enum", ("EAGLE", "EAGLE3")),
        (
            ENUM.format("Enum"),
            '_RESERVED_ALIASES = frozenset({"NEXTN"})',
            "Enum with plugins",
            ("EAGLE", "EAGLE3", "NEXTN"),
        ),
        (
            ENUM.format("Enum"),
            '_RESERVED_NAMES = frozenset({"EAGLE", "NEXTN"})',
            "Enum with plugins",
            ("EAGLE", "EAGLE3", "NEXTN"),
        ),
    ],
)
def test_layouts_of_algorithms(
    spec_info: str, registry: str | None, layout: str, algorithms: tuple[str, ...], tmp_path: Path
) -> None:
    files = {"speculative/spec_registry.py": registry} if registry else {}
    engine = read_engine(make(tmp_path, spec_info, FIELDS, **files))
    assert (engine.layout, engine.algorithms, engine.problems) == (layout, algorithms, ())


def test_choices_of_the_command_line_are_the_algorithms(tmp_path: Path) -> None:
    assert read_engine(make(tmp_path, ENUM.format("Enum"), ARGPARSE)).algorithms == ("EAGLE", "NEXTN")


def test_an_unknown_layout_is_told(tmp_path: Path) -> None:
    engine = read_engine(make(tmp_path, "x = 1\n", FIELDS))
    assert (engine.layout, engine.algorithms) == ("unknown", ())
    assert "defines no class SpeculativeAlgorithm" in engine.problems[0]


def test_a_file_of_newer_syntax_is_told(tmp_path: Path) -> None:
    engine = read_engine(make(tmp_path, ENUM.format("Enum"), FIELDS, **{"arg_groups/new.py": "x = = 1\n"}))
    assert engine.problems[0].startswith("sglang/srt/arg_groups/new.py cannot be read by this Python")


def flag_of(engine: EngineInfo, name: str) -> tuple[object, ...]:
    flag = engine.flags[name]
    return flag.default, flag.choices, flag.choices_text, flag.alias_of


def test_flags_by_argparse(tmp_path: Path) -> None:
    engine = read_engine(make(tmp_path, ENUM.format("Enum"), ARGPARSE))
    assert flag_of(engine, "--speculative-num-steps") == (3, None, "", "")
    assert flag_of(engine, "--steps") == (3, None, "", "--speculative-num-steps")
    assert flag_of(engine, "--kind") == (None, ("a", "b", "c"), "", "")
    assert flag_of(engine, "--late") == (None, None, "CHOICES + made_later()", "")
    assert flag_of(engine, "--old-name") == (False, None, "", "")
    assert flag_of(engine, "--on") == (False, None, "", "")
    assert engine.flags["--kind"].source == "sglang/srt/server_args.py:12"


def test_flags_by_fields(tmp_path: Path) -> None:
    engine = read_engine(make(tmp_path, ENUM.format("Enum"), "", **{"arg_groups/fields/spec.py": FIELDS}))
    assert set(engine.flags) == {
        *("--speculative-algorithm", "--speculative-draft-model-path", "--speculative-draft-model"),
        *("--speculative-mode", "--one", "--other", "--both", "--no-both"),
    }
    assert flag_of(engine, "--speculative-mode") == ("prefill", ("prefill", "decode"), "", "")
    assert flag_of(engine, "--one") == (None, ("x",), "", "")
    assert flag_of(engine, "--speculative-draft-model") == (None, None, "", "--speculative-draft-model-path")
    assert flag_of(engine, "--other") == ("10 * 2", None, "", "")


def test_capture_is_found_in_bases_of_other_files(tmp_path: Path) -> None:
    models = {
        "models/base.py": "\ufeffclass Base(nn.Module):\n    def set_eagle3_layers_to_capture(self):\n        pass\n",
        "models/one.py": (
            "from sglang.srt.models.base import Base as B\n\n"
            "class One(B, Generic[T]):\n    pass\n\n"
            "EntryClass = [\n    One,  # a note\n]\n"
        ),
        "models/two.py": (
            "class Two(nn.Module):\n    async def get_embed_and_head(self):\n        pass\n\nEntryClass: list = Two\n"
        ),
        "models/again.py": "from .inner.deep import Three\nEntryClass = (Three)\n",
        "models/inner/deep.py": "from sglang.srt.models.one import One\nclass Three(One): ...\n",
        "models/ghost.py": "from torch import Ghost\nEntryClass = Ghost\n",
        "models/draft.py": "class OneForCausalLMEagle3(One): ...\nEntryClass = OneForCausalLMEagle3\n",
    }
    engine = read_engine(make(tmp_path, ENUM.format("Enum"), FIELDS, **models))
    assert set(engine.base_architectures) == {"One", "Two", "Three", "Ghost"}
    assert set(engine.draft_architectures) == {"OneForCausalLMEagle3"}
    assert engine.eagle3_capture == {"One", "Three"}
    assert engine.base_architectures["Three"].eagle3 == "sglang/srt/models/base.py:2"
    assert engine.base_architectures["Two"].embed_head == "sglang/srt/models/two.py:2"
    assert engine.dflash_capture == frozenset()
    assert "models/ghost.py registers Ghost" in engine.problems[0]


def test_no_engine_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineMissingError, match=r"there is no SGLang in .*\(role sglang_install\)"):
        read_engine(tmp_path)
    with pytest.raises(EngineMissingError, match="there is no folder"):
        read_engine(tmp_path / "none")
    with pytest.raises(EngineMissingError, match="is no virtual environment"):
        site_packages_of(tmp_path)


def test_half_removed_engine_is_not_one(tmp_path: Path) -> None:
    folder = make(tmp_path, ENUM.format("Enum"), FIELDS)
    (folder / "sglang-0.5.20.dist-info" / "METADATA").unlink()
    with pytest.raises(EngineMissingError, match="no metadata of sglang"):
        read_engine(folder)


def test_the_folder_that_holds_the_engine_is_taken(tmp_path: Path) -> None:
    make(tmp_path / "lib" / "python3.11" / "site-packages", ENUM.format("Enum"), FIELDS)
    (tmp_path / "lib" / "python3.9" / "site-packages").mkdir(parents=True)
    assert site_packages_of(tmp_path) == tmp_path / "lib" / "python3.11" / "site-packages"
