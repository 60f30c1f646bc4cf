# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import pins
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.releases import READ
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine.versions import parse_version
from ansible_collections.gpuserve.sglang.plugins.module_utils.python.names import locked


def asked(*lines: str) -> pins.Pins:
    return pins.of_requirements({"sglang_install_requirements": lines})


def of(found: pins.Pins) -> Check:
    (check,) = found.checks()
    return check


@pytest.mark.parametrize(
    ("engine", "usable"),
    [
        ("0.4.6.post5", ">=0.9.0,<0.16"),
        ("0.5.6.post2", ">=0.9.0,<0.16"),
        ("0.5.7", ">=0.10.0,<0.16"),
        ("0.5.10.post1", ">=0.10.0,!=0.14.*,<0.16"),
        ("0.5.12", ">=0.10.0,!=0.14.*,!=0.15.0"),
        ("0.5.19", "==0.18.0"),
        ("0.5.20", "==0.18.0"),
        ("0.5.23", "==0.18.0"),
    ],
)
def test_the_range_of_a_release(engine: str, usable: str) -> None:
    found = asked(f"sglang=={engine}")
    assert found.usable == usable
    assert found.constraints() == (f"compressed-tensors{usable}",)
    assert of(found).status == "pass"


@pytest.mark.parametrize(
    ("engine", "pin", "status"),
    [
        ("0.5.6.post2", "==0.9.0", "pass"),
        ("0.5.7", "==0.9.4", "fail"),
        ("0.5.7", "==0.10.0", "pass"),
        ("0.5.7", "<0.10", "fail"),
        ("0.5.7", "<0.11", "pass"),
        ("0.5.7", ">=0.9", "pass"),
        ("0.5.9", "==0.16.0", "fail"),
        ("0.5.12", ">=0.21", "pass"),  # Newer than what was read: not known to be wrong.
        ("0.5.12", "==0.14.0.1", "fail"),
        ("0.5.20", "==0.17.1", "fail"),
        ("0.5.20", "==0.18.0", "pass"),
        ("0.5.20", "~=0.18.0", "pass"),
    ],
)
def test_a_pin_beside_it(engine: str, pin: str, status: str) -> None:
    assert of(asked(f"sglang=={engine}", f"compressed-tensors{pin}")).status == status


def test_the_pin_that_began_it_names_the_member_the_file_and_the_range() -> None:
    lock = locked("sglang==0.5.12 --hash=sha256:aa\ncompressed_tensors==0.8.1 --hash=sha256:bb\n")
    check = of(pins.of_lock(lock, "sglang_install_lock (k26.lock)"))
    assert check.status == "fail"
    assert "compressed-tensors==0.8.1 in sglang_install_lock (k26.lock), which lacks" in check.actual
    assert (
        "CompressionFormat.nvfp4_pack_quantized (sglang/srt/layers/quantization/compressed_tensors/utils.py)"
        in check.actual
    )
    assert check.expected == "compressed-tensors>=0.10.0,!=0.14.*,!=0.15.0 for SGLang 0.5.12"
    assert check.fix == "ask for compressed-tensors>=0.10.0,!=0.14.*,!=0.15.0 there"


def test_a_pin_is_found_wherever_it_stands() -> None:
    found = pins.of_requirements(
        {
            "sglang_install_requirements": ["torch", "Sglang[all]==0.5.12"],
            "sglang_install_requirements_no_deps": ["nonsense ===", "sglang-kernel"],
            "sglang_install_constraints": ["compressed-tensors==0.8.1"],
        }
    )
    assert "in sglang_install_constraints" in of(found).actual


def test_the_torch_of_the_request_counts_more_than_the_engines_own() -> None:
    assert asked("sglang==0.5.10.post1", "torch==2.11.0").usable == ">=0.10.0,!=0.14.*,!=0.15.0"
    lock = locked("sglang==0.5.12\ntorch==2.9.1+cu130\ntransformers==4.57.1\ncompressed-tensors==0.16.0\n")
    assert pins.of_lock(lock, "lock").usable == ">=0.10.0,<0.16"


@pytest.mark.parametrize(
    "engine",
    ["sglang", "sglang>=0.5", "sglang==0.5.*", "sglang @ git+https://example.test/sglang.git@abc", "sglang==9.0"],
)
def test_what_the_request_does_not_tell_is_not_counted_as_passed(engine: str) -> None:
    found = asked(engine, "compressed-tensors==0.8.1")
    assert of(found).status == "skipped"
    assert found.constraints() == ()
    assert (
        of(pins.of_lock(locked("sglang @ https://example.test/a.whl --hash=sha256:aa\n"), "lock")).status == "skipped"
    )


def test_without_an_engine_there_is_nothing_to_judge() -> None:
    assert asked("nvidia-cuda-nvcc==13.0.*").checks() == []
    assert pins.of_lock(locked("ninja==1.13.2\n"), "lock").checks() == []


def test_every_span_of_the_tables_follows_the_one_before_it() -> None:
    for table in (pins._TORCH, pins._TRANSFORMERS):
        versions = [parse_version(pin) for pin, dummy in table]
        assert versions == sorted(versions)
        for release in READ:
            assert [pin for pin, span in table if span.holds(release)] != [], release
