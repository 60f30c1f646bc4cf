# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import Check
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import judge
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.apt import AptError, Change
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.dpkg import Package
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.host import Running

RUNS = Running("580.95.05", "open")
NOTHING = Running()


def package(name: str, version: str = "580.95.05", held: bool = False) -> Package:
    return Package(name, f"{version}-1", held, True)


@pytest.mark.parametrize(
    ("asked", "scope", "running", "kept", "status"),
    [
        ("580.95.05", "host", NOTHING, "", "pass"),
        ("", "host", RUNS, "580.95.05", "pass"),
        ("", "host", NOTHING, "", "fail"),
        ("newest", "host", RUNS, "580.95.05", "fail"),
        ("", "container", RUNS, "", "pass"),
        ("580", "container", NOTHING, "", "fail"),
    ],
)
def test_a_version_to_go_to(asked: str, scope: str, running: Running, kept: str, status: str) -> None:
    assert judge.wanted(asked, scope, running, kept).status == status


@pytest.mark.parametrize(
    ("asked", "status"), [("", "pass"), ("580", "pass"), ("580.95.05", "pass"), ("590", "fail"), ("580.126.09", "fail")]
)
def test_container_follows_its_host(asked: str, status: str) -> None:
    check = judge.host_match(asked, RUNS)
    assert check.status == status
    assert "580.95.05" in check.expected


@pytest.mark.parametrize(("asked", "status"), [("", "pass"), ("580", "pass"), ("590", "fail")])
def test_container_follows_what_its_host_will_have(asked: str, status: str) -> None:
    check = judge.host_match(asked, RUNS, coming=True)
    assert check.status == status
    assert check.expected == "nvidia_driver_version 580.95.05, that the host is asked to have"
    assert (
        judge.wanted(asked, "container", RUNS, "", coming=True).actual == "580.95.05, once the host was brought to it"
    )


RTX_PRO_6000, L40S, V100 = 0x2BB1, 0x26B9, 0x1DB1


@pytest.mark.parametrize(
    ("ids", "flavour", "version", "told"),
    [
        ([RTX_PRO_6000], "open", "580.95.05", ["pass", "pass"]),
        ([RTX_PRO_6000], "proprietary", "580.95.05", ["fail", "pass"]),
        ([RTX_PRO_6000, L40S], "proprietary", "580.95.05", ["fail", "pass"]),
        ([RTX_PRO_6000], "open", "565.57.01", ["pass", "fail"]),
        ([L40S], "proprietary", "535.183.01", ["pass"]),
        ([L40S], "open", "535.183.01", ["pass"]),
        ([V100], "open", "580.95.05", ["fail"]),
        ([V100], "proprietary", "580.95.05", ["pass"]),
        ([], "open", "580.95.05", ["skipped"]),
    ],
)
def test_kernel_module_fits_the_gpus(ids: list[int], flavour: str, version: str, told: list[str]) -> None:
    addresses = {f"0000:0{number}:00.0": one for number, one in enumerate(ids)}
    assert [check.status for check in judge.gpus(addresses, flavour, version)] == told


@pytest.mark.parametrize(
    ("on", "enrolled", "running", "status"),
    [
        (False, False, NOTHING, "pass"),
        (True, True, NOTHING, "pass"),
        (True, False, NOTHING, "fail"),
        (True, False, RUNS, "warn"),
    ],
)
def test_secure_boot(on: bool, enrolled: bool, running: Running, status: str) -> None:
    assert judge.secure_boot(on, enrolled, running).status == status


@pytest.mark.parametrize(
    ("present", "name", "status"),
    [(True, "", "pass"), (False, "proxmox-headers-6.8", "pass"), (False, "", "fail")],
)
def test_headers(present: bool, name: str, status: str) -> None:
    assert judge.headers("6.8", present, name, ["proxmox-headers-6.8", "linux-headers-6.8"]).status == status


def test_each_trouble_with_the_repository_has_its_own_fix() -> None:
    url = "https://m/"
    assert judge.repository(url, None).status == "pass"
    fixes = {
        judge.repository(url, AptError(text)).fix
        for text in ("E: NO_PUBKEY 1", "E: Conflicting values set for option Signed-By", "E: does not have a Release")
    }
    assert len(fixes) == 3
    assert judge.repository(url, AptError("W: NO_PUBKEY AAAABBBB E: more")).actual == "it is signed by the key AAAABBBB"
    assert judge.other_repositories(None) == []
    assert judge.other_repositories(AptError("401"))[0].status == "warn"


def test_offered() -> None:
    available = {"libcuda1": {"580.95.05", "590.44.01"}, "libnvidia-ml1": {"580.95.05"}}
    names = ["libcuda1", "libnvidia-ml1"]
    assert judge.offered("580", names, available, "container").status == "pass"
    check = judge.offered("570.172.08", names, available, "container")
    assert check.status == "fail"
    assert check.actual == "apt offers 580.95.05"
    assert "NVIDIA's .run file of 570.172.08" in check.fix
    assert "bring the host to 580.95.05" in check.fix
    check = judge.offered("590.44.01", [*names, "libunheard1"], available, "host")
    assert check.actual == "apt offers no version of all of them; it knows no libunheard1"
    assert "nvidia_driver_version" in check.fix


def test_nearest() -> None:
    offered = {"570.172.08", "580.126.09", "590.44.01"}
    assert judge.nearest("580.95.05", offered) == "580.126.09"
    assert judge.nearest("595.10", offered) == "590.44.01"
    assert judge.nearest("580.95.05", set()) == ""


def test_holds_of_somebody_else() -> None:
    found = {one.name: one for one in (package("a", held=True), package("b", "570.172.08", held=True))}
    assert judge.foreign_holds(found, {"b"}, "580.95.05").status == "pass"
    assert judge.foreign_holds(found, set(), "570.172.08").status == "fail"
    check = judge.foreign_holds(found, {"a"}, "580.95.05")
    assert (check.status, check.actual) == ("fail", "b 570.172.08-1")
    assert judge.removable([]) == []
    assert judge.removable(["b 570.172.08-1"])[0].status == "fail"


def plan(*changes: Change, scope: str = "host", foreign: tuple[str, ...] = ()) -> dict[str, Check]:
    members = {"libcuda1": package("libcuda1", "570.172.08")}
    checks = judge.plan(
        changes, version="580.95.05", scope=scope, asked=("libcuda1",), members=members, foreign=foreign
    )
    return {check.id: check for check in checks}


def failing(found: dict[str, Check]) -> list[str]:
    return [name for name, check in found.items() if check.status == "fail"]


def test_a_plan_that_is_right() -> None:
    right = (Change("libcuda1", "570.172.08-1", "580.95.05-1"), Change("dkms", None, "3.0"))
    assert failing(plan(*right)) == []
    assert failing(plan(right[0], scope="container")) == []
    assert failing(plan(Change("libcuda1", "570.172.08-1", None))) == []


@pytest.mark.parametrize(
    ("change", "scope", "name"),
    [
        (Change("nvidia-persistenced", None, "590.44.01-1"), "host", "plan.one_version"),
        (Change("ffmpeg", "7.0", None), "host", "plan.removes"),
        (Change("dkms", "2.0", "3.0"), "host", "plan.holds"),
        (Change("nvidia-kernel-open-dkms", None, "580.95.05-1"), "container", "plan.user_space_only"),
        (Change("linux-headers-amd64", None, "6.1"), "container", "plan.user_space_only"),
    ],
)
def test_a_plan_that_is_wrong(change: Change, scope: str, name: str) -> None:
    assert failing(plan(change, scope=scope, foreign=("dkms",))) == [name]


def test_what_dkms_left() -> None:
    assert [check.status for check in judge.built("6.8", "580.95.05", True, [])] == ["pass"]
    assert [check.status for check in judge.built("6.8", "580.95.05", False, ["6.14"])] == ["fail", "warn"]


def test_nothing_goes_under_a_workload() -> None:
    assert judge.in_use({}).status == "pass"
    assert judge.in_use({10: "python3"}).actual == "10 (python3)"


def test_one_origin() -> None:
    assert judge.runfile_beside("").status == "pass"
    assert judge.runfile_beside("/usr/bin/nvidia-uninstall").status == "fail"
    assert judge.libraries("580.95.05", {"/libcuda.so.580.95.05": "580.95.05"}).status == "pass"
    assert judge.libraries("580.95.05", {}).status == "fail"


def test_options() -> None:
    asked = {"nvidia": {"NVreg_A": "1", "NVreg_B": "1", "NVreg_C": "1"}}
    checks = judge.options({"nvidia.NVreg_A": "0"}, ["nvidia.NVreg_B"], asked)
    assert [check.status for check in checks] == ["warn", "skipped", "pass"]


@pytest.mark.parametrize(
    ("running", "version", "flavour", "nouveau", "differing", "count"),
    [
        (RUNS, "580.95.05", "open", False, {}, 0),
        (RUNS, "590.44.01", "open", False, {}, 1),
        (RUNS, "", "open", False, {}, 1),
        (RUNS, "580.95.05", "proprietary", False, {}, 1),
        (RUNS, "580.95.05", "open", False, {"nvidia.NVreg_A": "0"}, 1),
        (NOTHING, "580.95.05", "open", True, {}, 1),
        (NOTHING, "580.95.05", "open", False, {}, 0),
    ],
)
def test_reboot_reasons(
    running: Running, version: str, flavour: str, nouveau: bool, differing: dict[str, str], count: int
) -> None:
    assert len(judge.reboot_reasons(running, version, flavour, nouveau, differing)) == count
