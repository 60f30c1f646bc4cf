# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is decided without apt. That apt then does it is seen in the scenario, against a real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver import boot, converge, runfile, sources
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.converge import Record, Request
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.dpkg import Package
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.host import Running

NAMES = ("nvidia-kernel-open-dkms", "nvidia-driver-cuda")
KERNEL = {"open": NAMES[0], "proprietary": "nvidia-kernel-dkms"}


class AptWasAsked(Exception):
    pass


def package(name: str, version: str = "580.95.05", held: bool = True, whole: bool = True) -> Package:
    return Package(name, f"{version}-1", held, whole)


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> dict[str, Package]:
    found = {name: package(name) for name in NAMES}

    def ask_apt(*_: object) -> None:
        raise AptWasAsked

    monkeypatch.setattr(converge.dpkg, "members", lambda: dict(found))
    monkeypatch.setattr(converge.dpkg, "pinning_files", list)
    monkeypatch.setattr(converge.dpkg, "pinning_leftovers", list)
    monkeypatch.setattr(converge.apt, "workspace", ask_apt)
    return found


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    running = tmp_path / "version"
    running.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n")
    (tmp_path / "lib/modules/6.8/updates/dkms").mkdir(parents=True)
    (tmp_path / "lib/modules/6.8/updates/dkms/nvidia.ko").touch()
    (tmp_path / sources.PREFERENCES).parent.mkdir(parents=True)
    (tmp_path / sources.PREFERENCES).write_text(sources.preferences("580.95.05"))
    (tmp_path / boot.MODPROBE).parent.mkdir(parents=True)
    (tmp_path / boot.MODPROBE).write_text(boot.modprobe({}))
    Record(ramdisks=boot.modprobe({})).save(tmp_path)
    return Request(
        scope="host",
        kernel_packages=KERNEL,
        host_packages=NAMES[1:],
        container_packages=("libcuda1",),
        running_file=running,
        root=tmp_path,
        release="6.8",
    )


def test_everything_in_place_asks_apt_nothing(members: dict[str, Package], request_: Request) -> None:
    for version in ("", "580", "580.95.05"):
        outcome = converge.converge(replace(request_, version=version))
        assert (outcome.changed, outcome.refused, outcome.version) == (False, False, "580.95.05")
        assert outcome.after == dict.fromkeys(NAMES, "580.95.05-1")
        assert outcome.settled


@pytest.mark.parametrize(
    "fault",
    [
        {NAMES[1]: package(NAMES[1], held=False)},
        {NAMES[1]: package(NAMES[1], whole=False)},
        {"nvidia-settings": package("nvidia-settings", "590.44.01")},
        {"nvidia-kernel-dkms": package("nvidia-kernel-dkms")},
    ],
    ids=["not held", "not whole", "floated", "other flavour"],
)
def test_a_fault_in_the_packages_is_taken_to_apt(
    members: dict[str, Package], request_: Request, fault: dict[str, Package]
) -> None:
    members.update(fault)
    with pytest.raises(AptWasAsked):
        converge.converge(replace(request_, version="580.95.05"), check_mode=True)


@pytest.mark.parametrize("gone", [sources.PREFERENCES, Path("lib/modules/6.8/updates/dkms/nvidia.ko")])
def test_a_missing_pin_or_module_is_taken_to_apt(members: dict[str, Package], request_: Request, gone: Path) -> None:
    (request_.root / gone).unlink()
    with pytest.raises(AptWasAsked):
        converge.converge(request_, check_mode=True)


def container(request: Request, **changes: str) -> Request:
    return replace(request, scope="container", options={}, **changes)


def verdict(outcome: converge.Outcome) -> dict[str, str]:
    return {check.id: check.status for check in outcome.checks}


def test_a_look_ahead_judges_a_container_by_what_comes(members: dict[str, Package], request_: Request) -> None:
    # By what runs (580.95.05) the one is refused and the other is not; by what comes it is the other way round.
    upgrade, stays = container(request_, version="590.44.01"), container(request_, version="580.95.05")
    assert verdict(converge.converge(upgrade, check_mode=True))["driver.host_match"] == "fail"
    with pytest.raises(AptWasAsked):
        converge.converge(replace(upgrade, coming="590.44.01"), check_mode=True)
    told = converge.converge(replace(stays, coming="590.44.01"), check_mode=True)
    assert verdict(told)["driver.host_match"] == "fail"
    assert "set nvidia_driver_version once" in told.checks[-1].fix


def test_a_first_run_is_judged_by_what_comes(members: dict[str, Package], request_: Request) -> None:
    request_.running_file.unlink()
    assert verdict(converge.converge(container(request_), check_mode=True))["driver.version"] == "fail"
    with pytest.raises(AptWasAsked):
        converge.converge(container(request_, coming="580.95.05"), check_mode=True)


def test_what_is_done_is_judged_by_what_runs(members: dict[str, Package], request_: Request) -> None:
    told = converge.converge(container(request_, version="590.44.01", coming="590.44.01"))
    assert verdict(told)["driver.host_match"] == "fail"


def test_another_version_or_repository_is_taken_to_apt(members: dict[str, Package], request_: Request) -> None:
    asked = (replace(request_, version="590"), replace(request_, repository=sources.Repository("https://m/")))
    for one in asked:
        with pytest.raises(AptWasAsked):
            converge.converge(one, check_mode=True)


def test_refused_before_apt_is_asked(members: dict[str, Package], request_: Request) -> None:
    members.clear()
    request_.running_file.unlink()
    outcome = converge.converge(request_)
    assert [check.id for check in outcome.checks if check.status == "fail"] == ["driver.version"]


def test_container_is_told_by_systemd_s_record(members: dict[str, Package], request_: Request) -> None:
    record = request_.root / "run/systemd/container"
    record.parent.mkdir(parents=True)
    record.write_text("lxc\n")
    outcome = converge.converge(replace(request_, scope="", version="590.44.01"))
    assert outcome.scope == "container"
    assert [check.id for check in outcome.checks if check.status == "fail"] == ["driver.host_match"]


def test_kernel_packages_in_a_container_are_taken_to_apt(members: dict[str, Package], request_: Request) -> None:
    members["libcuda1"] = package("libcuda1")
    with pytest.raises(AptWasAsked):
        converge.converge(replace(request_, scope="container"), check_mode=True)


def test_runfile_on_a_host_is_left_aside(members: dict[str, Package], request_: Request) -> None:
    asked = replace(request_, runfile=runfile.Runfile(Path("/nowhere.run"), "", ()))
    assert not converge.converge(asked).changed


@pytest.mark.parametrize(
    ("found", "running", "kept"),
    [
        ({}, Running("580.95.05", "open"), "580.95.05"),
        ({}, Running(), ""),
        ({"a": "590.44.01"}, Running("580.95.05", "open"), "590.44.01"),
        ({"a": "580.95.05", "b": "590.44.01"}, Running("580.95.05", "open"), "580.95.05"),
        ({"a": "580.95.05", "b": "590.44.01"}, Running(), "580.95.05"),
        ({"b": "580.95.05", "c": "590.44.01"}, Running(), "590.44.01"),
    ],
)
def test_kept_version(found: dict[str, str], running: Running, kept: str) -> None:
    packages = {name: package(name, version) for name, version in found.items()}
    assert converge.kept_version(packages, running, "a") == kept


def test_record_survives_and_a_broken_one_is_none(tmp_path: Path) -> None:
    assert Record.load(tmp_path) == Record()
    record = Record(frozenset({"a", "b"}), "https://m/k", "text")
    record.save(tmp_path)
    assert Record.load(tmp_path) == record
    (tmp_path / converge.RECORD).write_text("{")
    assert Record.load(tmp_path) == Record()


def test_absent_in_check_mode_names_the_files_and_keeps_them(members: dict[str, Package], request_: Request) -> None:
    members.clear()
    outcome = converge.converge(replace(request_, absent=True), check_mode=True)
    pin = request_.root / sources.PREFERENCES
    names = [str(file.path.relative_to(request_.root)) for file in outcome.files]
    assert names == [str(path) for path in (sources.PREFERENCES, boot.MODPROBE, converge.RECORD)]
    assert (outcome.changed, pin.exists()) == (True, True)
    converge.converge(replace(request_, absent=True))
    assert not pin.exists()


def test_reboot_reasons_of_a_host(members: dict[str, Package], request_: Request) -> None:
    (request_.running_file.parent / "params").write_text("EnableMSI: 0\n")
    (request_.root / "sys/module/nouveau").mkdir(parents=True)
    options = {"nvidia": {"NVreg_EnableMSI": "1"}}
    (request_.root / boot.MODPROBE).write_text(boot.modprobe(options))
    Record(ramdisks=boot.modprobe(options)).save(request_.root)
    outcome = converge.converge(replace(request_, options=options))
    assert outcome.reboot_reasons == ["nouveau holds the GPUs", "module option nvidia.NVreg_EnableMSI is 0 now"]
    assert (outcome.changed, outcome.settled) == (False, False)
    assert [check.status for check in outcome.checks if check.id == "module.option"] == ["warn"]


def test_module_options_need_no_apt_and_are_finished_when_they_broke_off(
    members: dict[str, Package], request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(request_, options={"nvidia_uvm": {"uvm_disable_hmm": "1"}})
    file = request_.root / boot.MODPROBE
    before = file.read_text()
    assert converge.converge(asked, check_mode=True).changed
    assert file.read_text() == before
    monkeypatch.setattr(boot, "ramdisks_command", lambda: ["false"])
    with pytest.raises(converge.DriverError, match="false ended with 1"):
        converge.converge(asked)
    monkeypatch.setattr(boot, "ramdisks_command", lambda: ["true"])
    outcome = converge.converge(asked)
    assert (outcome.changed, outcome.done) == (True, ["the initial ramdisks were made anew"])
    assert "uvm_disable_hmm=1" in file.read_text()
    assert not converge.converge(asked).changed
