# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import multiprocessing
import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from lab.instance import POOL, Lab, Mount, Record, locked
from lab.process import LabError

IDS = ["demo", "main", "ci-1", "a", "molecule-1x", "0123456789a"]


@pytest.mark.parametrize("id", IDS)
def test_names_fit_their_limits(id: str) -> None:
    lab = Lab(id)
    assert len(lab.bridge) <= 15
    assert lab.network.prefixlen == 24
    assert lab.network.subnet_of(POOL)
    assert {lab.gateway, *lab.hosts.values()} < set(lab.network.hosts())
    # sun_path has 108 bytes; ssh puts %C (40) and, while it connects, a suffix of 17 there.
    assert len(f"{lab.control}/") + 40 + 17 < 108


def test_two_labs_share_nothing() -> None:
    labs = [Lab(id) for id in IDS]
    for name in ("bridge", "container", "table", "network", "state", "lock_file", "pve_address", "ct_address"):
        assert len({str(getattr(lab, name)) for lab in labs}) == len(labs), name
    addresses = [lab.hwaddr(address) for lab in labs for address in lab.hosts.values()]
    assert len(set(addresses)) == len(addresses)


def test_ids_that_differ_in_a_dash_have_different_tables() -> None:
    assert Lab("a-b").table != Lab("ab").table
    assert "-" not in Lab("a-b").table


def test_names_are_the_same_tomorrow() -> None:
    # Otherwise a lab that is up would be lost.
    lab = Lab("demo")
    assert (lab.bridge, lab.container, str(lab.network)) == ("lab-demo", "gpuserve-lab-demo", "10.106.151.0/24")


@pytest.mark.parametrize("id", ["", "Demo", "a b", "../x", "-x", "twelve-chars", "a.lock"])
def test_bad_id(id: str) -> None:
    with pytest.raises(LabError, match="expected 1 to 11 characters"):
        Lab(id)


def test_default_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUSERVE_LAB", raising=False)
    assert Lab.default() == "demo"
    monkeypatch.setenv("GPUSERVE_LAB", "ci-7")
    assert Lab.default() == "ci-7"


def test_hwaddr_is_locally_administered_unicast() -> None:
    first = int(Lab("demo").hwaddr(IPv4Address("10.64.0.10")).split(":")[0], 16)
    assert first & 0b11 == 0b10


def test_mount(tmp_path: Path) -> None:
    mount = Mount.parse(f"{tmp_path}/:/srv/models/")
    assert mount == Mount(str(tmp_path), "/srv/models")
    assert mount.on_pve == "/srv/lab/srv/models"


def test_mount_on_pve_alone(tmp_path: Path) -> None:
    mount = Mount.parse(f"{tmp_path}:pve:/srv/hub/lab")
    assert mount == Mount(str(tmp_path), "/srv/hub/lab", pve_alone=True)
    assert mount.on_pve == "/srv/hub/lab"


@pytest.mark.parametrize(
    "text", ["/tmp", "tmp:/x", "/tmp:x", "/tmp:/a b", "/tmp:/a,ro=0", "/tmp:/../etc", "/tmp:ct200:/x"]
)
def test_bad_mount(text: str) -> None:
    with pytest.raises(LabError, match="--mount"):
        Mount.parse(text)


def test_mount_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not a folder"):
        Mount.parse(f"{tmp_path}/none:/x")


def test_record_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.instance.STATE_ROOT", tmp_path)
    lab = Lab("demo")
    assert Record.load(lab) is None
    lab.state.mkdir()
    record = Record((Mount("/a", "/b"), Mount("/c", "/d", pve_alone=True)), {"base": "/x", "pvebase": "/y"}, ready=True)
    record.save(lab)
    assert Record.load(lab) == record


def test_broken_record_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.instance.STATE_ROOT", tmp_path)
    lab = Lab("demo")
    lab.state.mkdir()
    lab.record_file.write_text("{")
    with pytest.raises(LabError, match="lab down"):
        Record.load(lab)


def _hold(path: Path, inside: Path, times: int) -> None:
    for _ in range(times):
        with locked(path):
            inside.touch(exist_ok=False)
            time.sleep(0.001)
            inside.unlink()


def test_lock_admits_one_and_leaves_nothing(tmp_path: Path) -> None:
    path, inside = tmp_path / "sub" / "x.lock", tmp_path / "inside"
    context = multiprocessing.get_context("fork")
    holders = [context.Process(target=_hold, args=(path, inside, 25)) for _ in range(4)]
    for holder in holders:
        holder.start()
    for holder in holders:
        holder.join(60)
    assert [holder.exitcode for holder in holders] == [0, 0, 0, 0]
    assert not path.exists()
