# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.compressed_tensors import Reference, usable_range
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.installation import Survey, survey
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.source import read_engine
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version

# Published wheels of compressed-tensors by their SHA-256.
COMPRESSED_TENSORS = {
    "0.8.1": "5aa3b99642e5067a2c2e526be074948d2ae10bc5555d65b84bf60efcd612f445",
    "0.18.0": "91168237c2d815614c44dfc354c61c613085c811dabbb2ccdb929e9aaa313b8f",
}
QUANTIZATION = "sglang/srt/layers/quantization/compressed_tensors/utils.py"


def engine_in(folder: Path, requires: str, version: str = "0.5.20", python: str = ">=3.10") -> Survey:
    site = folder / "lib" / "python3.12" / "site-packages"
    metadata = f"Requires-Python: {python}\n" + "".join(
        f"Requires-Dist: {line}\n" for line in requires.splitlines() if line
    )
    files = {
        f"sglang-{version}.dist-info/METADATA": f"Name: sglang\n{metadata}",
        "sglang/srt/server_args.py": "",
        "sglang/srt/speculative/spec_info.py": "class SpeculativeAlgorithm(Enum):\n    EAGLE = auto()\n",
        QUANTIZATION: (
            "from compressed_tensors import CompressionFormat as Format\n"
            "x = [Format.dense.value, Format.nvfp4_pack_quantized]\n"
        ),
    }
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return survey(read_engine(site))


def install(folder: Path, name: str, version: str, **files: str) -> None:
    site = folder / "lib" / "python3.12" / "site-packages"
    (site / f"{name}-{version}.dist-info").mkdir(parents=True)
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)


def install_compressed_tensors(folder: Path, version: str, *members: str) -> None:
    body = "".join(f'    {member} = "{member}"\n' for member in members)
    text = f"class CompressionFormat(str, Enum):\n{body}\n    @classmethod\n    def all(cls):\n        pass\n"
    install(folder, "compressed_tensors", version, **{"compressed_tensors/config/base.py": text})


def check_of(found: Survey, name: str) -> Check:
    return next(check for check in found.checks() if check.id == f"engine.{name}")


def test_all_fits(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.9.1+cu130")
    install_compressed_tensors(tmp_path, "0.18.0", "dense", "nvfp4_pack_quantized")
    found = engine_in(tmp_path, "torch==2.9.1\ncompressed-tensors==0.18.0\n")
    assert [check.status for check in found.checks()] == ["pass"] * 5


def test_wrong_and_missing_packages(tmp_path: Path) -> None:
    install(tmp_path, "torch", "2.8.0")
    found = engine_in(tmp_path, 'torch==2.9.1\nsgl_kernel==0.3.21\ntomli; python_version < "3.11"\nx; extra == "dev"\n')
    wrong, absent = check_of(found, "packages_versions"), check_of(found, "packages_missing")
    assert (wrong.status, wrong.actual, wrong.fix) == ("fail", "torch==2.9.1 is 2.8.0", "install 'torch==2.9.1'")
    assert (absent.status, absent.actual) == ("warn", "1 are not installed: sgl_kernel==0.3.21")
    assert [need.requirement.name for need in found.needs] == ["torch", "sgl-kernel"]


def test_old_releases_hide_their_needs_behind_an_extra(tmp_path: Path) -> None:
    requires = (
        'requests\ntorch==2.6.0; extra == "srt"\nxgrammar==0.1.19; extra == "runtime-common"\n'
        'sglang[runtime_common]; extra == "srt"\nsglang[srt]; extra == "all"\nvllm; extra == "srt-hip"\n'
    )
    found = engine_in(tmp_path, requires, "0.4.9")
    assert {need.requirement.name for need in found.needs} == {"requests", "torch", "xgrammar"}


def test_nothing_installed_is_not_a_pass(tmp_path: Path) -> None:
    found = engine_in(tmp_path, "torch==2.9.1\n")
    assert check_of(found, "packages_versions").status == "skipped"
    assert check_of(found, "compressed_tensors").status == "skipped"


@pytest.mark.parametrize(("python", "status"), [(">=3.10", "pass"), (">=3.13", "fail")])
def test_python(tmp_path: Path, python: str, status: str) -> None:
    assert check_of(engine_in(tmp_path, "torch\n", python=python), "python").status == status


def test_unpacked_wheels_have_no_python(release: Callable[[str], Path]) -> None:
    assert check_of(survey(read_engine(release("0.5.20"))), "python").status == "skipped"


def test_unreadable_requirement_is_told(tmp_path: Path) -> None:
    check = check_of(engine_in(tmp_path, "torch==2.9.1\nx; what == 'y'\n"), "source")
    assert check.status == "warn"
    assert "'what' is not known here" in check.actual


def test_missing_member_names_member_place_and_range(tmp_path: Path) -> None:
    install_compressed_tensors(tmp_path, "0.8.1", "dense")
    check = check_of(engine_in(tmp_path, "torch==2.9.1\ncompressed-tensors\n"), "compressed_tensors")
    assert check.status == "fail"
    assert check.actual == f"0.8.1 lacks CompressionFormat.nvfp4_pack_quantized ({QUANTIZATION}:2)"
    assert check.fix == "install compressed-tensors>=0.10.0"


@pytest.mark.parametrize(
    ("engine", "installed", "status", "range_"),
    [
        ("0.5.5", "0.8.1", "fail", ">=0.9.0"),
        ("0.5.12", "0.8.1", "fail", ">=0.10.0"),
        ("0.5.20", "0.8.1", "fail", "==0.18.0"),
        ("0.5.20", "0.18.0", "pass", "==0.18.0"),
    ],
)
def test_published_pairs(
    engine: str,
    installed: str,
    status: str,
    range_: str,
    tmp_path: Path,
    release: Callable[[str], Path],
    wheel: Callable[[str, str], Path],
) -> None:
    for folder in (release(engine), wheel(f"compressed-tensors=={installed}", COMPRESSED_TENSORS[installed])):
        for entry in folder.iterdir():
            if entry.is_dir():
                (tmp_path / entry.name).symlink_to(entry)
    check = check_of(survey(read_engine(tmp_path)), "compressed_tensors")
    assert (check.status, check.expected) == (status, f"compressed-tensors{range_}")
    if status == "fail" and engine != "0.5.5":
        assert (
            "CompressionFormat.nvfp4_pack_quantized (sglang/srt/layers/quantization/compressed_tensors/utils.py:"
            in check.actual
        )


NVFP4 = [Reference("CompressionFormat.nvfp4_pack_quantized", "x:1"), Reference("CompressionFormat.dense", "x:2")]


@pytest.mark.parametrize(
    ("named", "required", "installed", "range_"),
    [
        (NVFP4, "", {}, ">=0.10.0"),
        (NVFP4[1:], "", {}, ""),
        (NVFP4, "==0.18.0", {"torch": "2.9.1"}, "==0.18.0"),
        (NVFP4, "", {"torch": "2.9.1"}, ">=0.10.0,<0.16"),
        (NVFP4, "", {"torch": "2.11.0", "transformers": "5.6.0"}, ">=0.10.0,!=0.14.*,!=0.15.0"),
        (NVFP4, ">=0.9", {"python": "3.10"}, ">=0.9,>=0.10.0,<0.20"),
    ],
)
def test_usable_range(named: list[Reference], required: str, installed: dict[str, str], range_: str) -> None:
    versions = {name: parse_version(text) for name, text in installed.items()}
    assert usable_range(named, required, versions) == range_
