# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpuserve.sglang.plugins.module_utils import unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import manifest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import state
from ansible_collections.gpuserve.sglang.plugins.module_utils.service import deploy, nodes
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.nodes import Node
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.store import Proof, Store

from tests.fixtures.systemd import Systemd

UNIT = """[Service]
Environment=GPUSERVE_RELEASE=@release@
Environment=@caches@
SupplementaryGroups=@groups@
ExecStart=/opt/engine
LimitNOFILE=1024
"""
NAME = "sglang@main.service"


class Host:
    """A host with a systemd that tells what ``runs`` and ``dies`` said last."""

    def __init__(self, root: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places = deploy.Places(root / "etc", root / "units", root / "cache", str(root / "dev" / "nvidia"))
        self.nodes: list[Node] = []
        self.groups: set[int] = set()
        monkeypatch.setattr(nodes, "look", lambda prefix: self.nodes if prefix == self.places.nodes else [])
        monkeypatch.setattr(unit, "groups", lambda pid: self.groups if pid == 77 else set())
        self.engine = root / "engine"
        self.engine.mkdir()
        state.write_record(self.engine, state.Record("k", "3.11", {"sglang": "0.5.20"}))
        self.systemd = systemd
        self.environment: dict[str, str] = {}
        monkeypatch.setattr(unit, "environment", lambda pid: self.environment if pid == 77 else {})
        self.dies()

    @property
    def store(self) -> Store:
        return Store(self.places.releases / "main")

    @property
    def unit(self) -> Path:
        return self.places.units / NAME

    def runs(self, release: str, began: float | None = None, enabled: str = "enabled") -> None:
        """The engine runs, started from a release ``began`` seconds ago."""
        self.environment = {deploy.VARIABLE: release} if release else {}
        started = int((time.monotonic() - (began or 0.0)) * 1e6)
        self.systemd.states(
            f"LoadState=loaded\nActiveState=active\nMainPID=77\nUnitFileState={enabled}\n"
            f"ExecMainStartTimestampMonotonic={started}\n"
        )

    def dies(self) -> None:
        self.systemd.states("LoadState=not-found\nActiveState=inactive\nMainPID=0\n")

    def wanted(self, *args: str, environment: str = "A=1\n", text: str = UNIT) -> deploy.Wanted:
        return deploy.Wanted(["--port", "1", *args], environment, "", self.engine, [], text)

    def hold(self, wanted: deploy.Wanted, retry: bool = False, only_look: bool = False) -> deploy.Outcome:
        return deploy.hold(self.places, "main", wanted, retry, only_look)

    def serve(self, *args: str, keep: int = 5) -> str:
        """Deploy, start and prove."""
        release = self.hold(self.wanted(*args)).release
        self.runs(release)
        deploy.remember(self.store, release, Proof(True, time.time(), "6 passed"), keep, release)
        return release


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    systemd = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{systemd.binaries}:/usr/bin:/bin")
    return Host(tmp_path, systemd, monkeypatch)


def test_first_deploy(host: Host) -> None:
    told = host.hold(host.wanted())
    assert told.changed
    assert (told.running, told.restart, told.waits, told.proof) == (None, [], [], None)
    assert host.store.current == told.release
    text = host.unit.read_text()
    assert f"GPUSERVE_RELEASE={told.release}\n" in text
    assert f'"TVM_FFI_CACHE_DIR={host.places.caches}/0.5.20-no-gpu/tvm-ffi"' in text
    assert "systemctl daemon-reload" in host.systemd.asked()


def test_the_second_time_nothing_changes(host: Host) -> None:
    release = host.serve()
    asked = len(host.systemd.asked())
    told = host.hold(host.wanted())
    assert not told.changed
    assert (told.release, told.restart, told.waits) == (release, [], [])
    assert told.proof is not None
    assert "systemctl daemon-reload" not in host.systemd.asked()[asked:]


def test_what_serves_and_was_proven_is_settled(host: Host) -> None:
    assert not host.hold(host.wanted()).settled
    release = host.serve()
    assert host.hold(host.wanted()).settled
    assert not host.hold(host.wanted("--context-length", "1024")).settled
    host.hold(host.wanted())
    host.runs(release, enabled="disabled")
    assert not host.hold(host.wanted()).settled
    host.dies()
    assert not host.hold(host.wanted()).settled


def test_a_change_that_can_wait_leaves_nothing_to_do_once_its_gates_passed(host: Host) -> None:
    release = host.serve()
    waits = host.hold(host.wanted("--log-level", "warning"))
    assert not waits.settled
    deploy.remember(host.store, waits.release, Proof(True, time.time(), "6 passed"), 5, release)
    assert host.hold(host.wanted("--log-level", "warning")).settled


def test_the_caches_are_told_where_a_start_is_ahead(host: Host) -> None:
    first = host.hold(host.wanted())
    assert first.warmth is not None
    assert not first.warmth.warm
    (first.warmth.folder / "triton").mkdir(parents=True)
    (first.warmth.folder / "triton" / "kernel.so").touch()
    host.serve()
    assert host.hold(host.wanted()).warmth is None
    again = host.hold(host.wanted("--context-length", "1024")).warmth
    assert again is not None
    assert again.warm


def test_what_was_never_proven_is_not_settled(host: Host) -> None:
    host.runs(host.hold(host.wanted()).release)
    assert not host.hold(host.wanted()).settled


@pytest.mark.parametrize(("user", "settled"), [("root", True), ("nobody-has-this-name", False)])
def test_a_user_that_is_gone_is_to_be_made(host: Host, user: str, settled: bool) -> None:
    text = f"{UNIT}User={user}\n"
    release = host.hold(host.wanted(text=text)).release
    host.runs(release)
    deploy.remember(host.store, release, Proof(True, time.time(), "6 passed"), 5, release)
    assert host.hold(host.wanted(text=text)).settled is settled


def test_a_look_writes_nothing(host: Host) -> None:
    assert host.hold(host.wanted(), only_look=True).changed
    assert not host.places.releases.exists()
    assert not host.unit.exists()


def test_another_argument_takes_a_restart(host: Host) -> None:
    host.serve()
    told = host.hold(host.wanted("--context-length", "1024"))
    assert told.changed
    assert told.restart == ["--context-length: not given -> 1024"]
    assert host.store.current == told.release


def test_a_run_that_died_before_the_restart_is_made_good(host: Host) -> None:
    host.serve()
    host.hold(host.wanted("--context-length", "1024"))
    again = host.hold(host.wanted("--context-length", "1024"))
    assert not again.changed
    assert again.restart == ["--context-length: not given -> 1024"]


def test_a_log_level_waits(host: Host) -> None:
    host.serve()
    told = host.hold(host.wanted("--log-level", "warning"))
    assert told.changed
    assert (told.restart, told.waits) == ([], ["--log-level: not given -> warning"])


def test_back_from_a_log_level_that_waited(host: Host) -> None:
    host.serve()
    host.hold(host.wanted("--log-level", "warning"))
    told = host.hold(host.wanted())
    assert told.changed
    assert (told.restart, told.waits) == ([], [])


def test_limits_of_the_unit_wait(host: Host) -> None:
    host.serve()
    told = host.hold(host.wanted(text=UNIT.replace("1024", "2048")))
    assert told.changed
    assert (told.restart, told.waits) == ([], ["what the unit says of limits and order"])
    assert "2048" in host.unit.read_text()


def test_an_engine_from_elsewhere_is_restarted(host: Host) -> None:
    host.runs("")
    assert host.hold(host.wanted()).restart == ["what runs was started from no release that is known here"]


@pytest.mark.parametrize(("hours", "restarts"), [(1, True), (-1, False)], ids=["started after", "started before"])
def test_a_unit_edited_by_hand(host: Host, hours: int, restarts: bool) -> None:
    release = host.serve()
    host.unit.write_text(host.unit.read_text().replace("/opt/engine", "/opt/another"))
    os.utime(host.unit, (time.time() - 3600 * hours,) * 2)
    host.runs(release)
    told = host.hold(host.wanted())
    assert "/opt/another" in told.before
    assert "/opt/another" not in told.after
    assert "/opt/another" not in host.unit.read_text()
    assert (told.restart if restarts else told.waits) == ["the unit was edited by hand"]


@pytest.mark.parametrize(
    ("since", "until", "restarts"),
    [(-7200, -60, True), (-1800, -60, False), (-7200, -5400, False), (-7200, 7200, False)],
    ids=["loaded", "wrong since the start", "mended before", "mended in the future"],
)
def test_a_wrong_file_that_the_engine_may_have_loaded(
    host: Host, tmp_path: Path, since: float, until: float, restarts: bool
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    manifest.Manifest("lab/tiny", "0" * 40, {}).write(model)
    wanted = replace(host.wanted(), models=[model])
    host.runs(host.hold(wanted).release, began=3600.0)
    assert host.hold(wanted).restart == []
    manifest.remember_wrong(model, time.time() + since, time.time() + until)
    told = host.hold(wanted).restart
    assert told == ([f"the engine may have loaded a file of {model} that was wrong"] if restarts else [])


def test_an_environment_edited_by_hand_before_the_start(host: Host) -> None:
    release = host.serve()
    file = host.store.path(release) / "environment"
    file.write_text("A=2\n")
    os.utime(file, (time.time() - 3600,) * 2)
    told = host.hold(host.wanted())
    assert told.restart == ["the environment's file was edited by hand"]
    assert file.read_text() == "A=1\n"


GPU = Node("/dev/nvidia0", 0o660, 104, "render")


def test_the_unit_gets_the_groups_of_the_device_nodes(host: Host) -> None:
    host.nodes = [GPU, Node("/dev/nvidiactl", 0o660, 44, "video"), Node("/dev/nvidia-uvm", 0o666, 45, "other")]
    host.groups = {104, 44}
    host.serve()
    assert "SupplementaryGroups=render video\n" in host.unit.read_text()
    told = host.hold(host.wanted())
    assert (told.changed, told.restart, told.waits) == (False, [], [])


def test_without_nodes_it_gets_none(host: Host) -> None:
    host.hold(host.wanted())
    assert "SupplementaryGroups=\n" in host.unit.read_text()


def test_another_group_of_a_node_takes_a_restart(host: Host) -> None:
    release = host.serve()
    host.nodes = [GPU]
    why = ["the engine is not in the group render, which owns /dev/nvidia0"]
    told = host.hold(host.wanted())
    assert (told.changed, told.release, told.restart, told.waits) == (True, release, why, [])
    # Until it has one, as where nothing may be restarted.
    again = host.hold(host.wanted())
    assert (again.changed, again.restart) == (False, why)
    host.groups = {104}
    assert host.hold(host.wanted()).restart == []


def test_a_group_that_is_no_longer_needed_waits(host: Host) -> None:
    host.nodes, host.groups = [GPU], {104}
    host.serve()
    host.nodes = []
    told = host.hold(host.wanted())
    assert (told.changed, told.restart) == (True, [])
    assert told.waits == ["the groups of the device nodes: render -> none"]
    assert "SupplementaryGroups=\n" in host.unit.read_text()


def test_an_earlier_release_gets_the_groups_of_today(host: Host) -> None:
    first = host.serve()
    host.serve("--context-length", "1024")
    host.nodes = [GPU]
    deploy.go_back(host.places, "main", first, only_look=False)
    assert "SupplementaryGroups=render\n" in host.unit.read_text()


def test_a_group_without_a_name_is_refused_before_anything_is_written(host: Host) -> None:
    host.nodes = [replace(GPU, gid=4242, group="")]
    with pytest.raises(deploy.ReleaseError, match=r"/dev/nvidia0 \(group 4242, .* run groupadd --gid 4242 nvidia"):
        host.hold(host.wanted())
    assert not host.unit.exists()
    assert not host.places.releases.exists()


def test_what_failed_its_gates_is_not_started_again(host: Host) -> None:
    release = host.hold(host.wanted()).release
    host.store.prove(release, Proof(False, 0.0, "accept length 1.00"))
    with pytest.raises(
        deploy.ReleaseError, match=r"failed its gates on .*: accept length 1\.00; .*sglang_server_retry"
    ):
        host.hold(host.wanted())
    assert host.hold(host.wanted(), retry=True).release == release


def test_a_stale_unit_is_read_again(host: Host) -> None:
    release = host.serve()
    asked = len(host.systemd.asked())
    host.environment = {deploy.VARIABLE: release}
    states = "LoadState=loaded\nActiveState=active\nMainPID=77\nUnitFileState=enabled\n"
    host.store.prove(release, Proof(True, 0.0, "6 passed"))
    for stale in (False, True):
        host.systemd.states(f"{states}NeedDaemonReload={'yes' if stale else 'no'}\n")
        assert host.hold(host.wanted(), only_look=True).settled is not stale
    assert "systemctl daemon-reload" not in host.systemd.asked()[asked:]
    assert host.hold(host.wanted()).settled
    assert "systemctl daemon-reload" in host.systemd.asked()[asked:]


def test_a_deploy_does_not_use_up_the_starts_that_systemd_allows(host: Host) -> None:
    host.serve()
    asked = len(host.systemd.asked())
    host.hold(host.wanted())
    assert f"systemctl reset-failed {NAME}" not in host.systemd.asked()[asked:]
    host.hold(host.wanted("--context-length", "1024"))
    assert f"systemctl reset-failed {NAME}" in host.systemd.asked()[asked:]


def test_a_start_that_systemd_would_make_later_is_the_run_s_own(host: Host) -> None:
    host.serve()
    for sub, stopped in (("auto-restart", True), ("dead", False)):
        asked = len(host.systemd.asked())
        host.systemd.states(f"LoadState=loaded\nActiveState=activating\nSubState={sub}\nMainPID=0\n")
        host.hold(host.wanted(), only_look=True)
        assert f"systemctl stop {NAME}" not in host.systemd.asked()[asked:]
        host.hold(host.wanted())
        assert (f"systemctl stop {NAME}" in host.systemd.asked()[asked:]) is stopped


def test_a_port_that_another_process_has_is_refused_before_anything_is_written(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = str(squatter.getsockname()[1])
        with pytest.raises(deploy.ReleaseError, match=rf"port {port} is taken by the process {os.getpid()} "):
            host.hold(replace(host.wanted(), args=["--port", port]))
    assert not host.unit.exists()
    assert host.hold(replace(host.wanted(), args=["--port", port])).changed


def lengths(host: Host) -> set[str]:
    """The context lengths of the releases that are kept."""
    return {one.args[-1] for one in host.store.records()}


def test_old_releases_go_when_the_next_one_is_proven(host: Host) -> None:
    for length in ("1", "2", "3"):
        host.serve("--context-length", length, keep=5)
    host.hold(host.wanted("--context-length", "4"))
    assert lengths(host) == {"1", "2", "3", "4"}
    host.serve("--context-length", "4", keep=1)
    # The one that runs, and the one to go back to.
    assert lengths(host) == {"3", "4"}
    assert not host.hold(host.wanted("--context-length", "4")).changed


def test_the_one_to_go_back_to_stays_behind_many_that_failed(host: Host) -> None:
    host.serve("--context-length", "1")
    for length in ("2", "3"):
        failed = host.hold(host.wanted("--context-length", length)).release
        deploy.remember(host.store, failed, Proof(False, time.time(), "accept length 1.00"), 1, None)
    assert lengths(host) == {"1", "2", "3"}
    host.serve("--context-length", "4", keep=2)
    assert lengths(host) == {"1", "3", "4"}


def test_gates_of_a_release_that_is_gone_leave_nothing(host: Host) -> None:
    host.serve()
    deploy.remember(host.store, "0123456789abcdef", Proof(True, time.time(), "6 passed"), 1, None)
    assert not host.store.path("0123456789abcdef").exists()


def test_back_to_the_last_good_one(host: Host) -> None:
    good = host.serve()
    text = host.unit.read_text()
    bad = host.hold(host.wanted("--context-length", "1024")).release
    host.runs(bad)
    told = deploy.go_back(host.places, "main", None, only_look=False)
    assert (told.release, told.changed) == (good, True)
    assert told.restart == [f"release {bad} -> {good}"]
    assert host.store.current == good
    assert host.unit.read_text() == text


def test_back_to_a_named_one(host: Host) -> None:
    first = host.serve()
    host.serve("--context-length", "1024")
    host.serve("--context-length", "512")
    assert deploy.go_back(host.places, "main", first, only_look=True).changed
    assert host.store.current != first
    assert deploy.go_back(host.places, "main", first, only_look=False).release == first
    assert host.store.current == first


def test_there_is_none_to_go_back_to(host: Host) -> None:
    only = host.serve()
    with pytest.raises(deploy.ReleaseError, match=rf"no release whose gates passed, beside .*there is: {only}"):
        deploy.go_back(host.places, "main", None, only_look=False)
    with pytest.raises(deploy.ReleaseError, match="no release nowhere"):
        deploy.go_back(host.places, "main", "nowhere", only_look=False)


def test_a_release_whose_engine_is_gone_is_not_taken(host: Host) -> None:
    host.serve()
    host.serve("--context-length", "1024")
    state.write_record(host.engine, state.Record("k", "3.11", {"sglang": "0.5.21"}))
    with pytest.raises(deploy.ReleaseError, match=r"the engine in .*/engine is no longer what it was made from"):
        deploy.go_back(host.places, "main", None, only_look=False)


def test_what_arguments_ask_for() -> None:
    asked = deploy.Asked.of(
        [*("--model-path", "/m", "--host", "0.0.0.0", "--port", "31000"), *("--speculative-num-steps", "3")]
    )
    assert asked == deploy.Asked("http://127.0.0.1:31000", "/m", None, None, {"speculative_num_steps": 3})
    assert deploy.Asked.of(["--host", "10.0.0.1"]).url == "http://10.0.0.1:30000"


def test_two_releases_differ_by_their_environment(host: Host) -> None:
    names = {host.hold(replace(host.wanted(), environment=text), only_look=True).release for text in ("A=1\n", "A=2\n")}
    assert len(names) == 2


@pytest.mark.parametrize(
    "key", ["k" * 100, "it's", "0123", "a: b", "#1", "true", "two words", 'say "x"', "\t", "ключ", "-"]
)
def test_the_key_is_read_as_it_was_written(key: str) -> None:
    written = yaml.safe_dump({"admin-api-key": "other", "api-key": key}, default_flow_style=False)
    assert deploy.api_key(written) == key


@pytest.mark.parametrize("text", ["", "admin-api-key: other\n", 'api-key: "\\x"\n', "api-key: \n"])
def test_there_may_be_no_key(text: str) -> None:
    assert deploy.api_key(text) is None
