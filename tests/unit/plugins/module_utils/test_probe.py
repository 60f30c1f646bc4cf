# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils import probe, unit
from ansible_collections.gpuserve.sglang.plugins.module_utils.checks import failing
from ansible_collections.gpuserve.sglang.plugins.module_utils.engine import api

from tests.fixtures import engine_http
from tests.fixtures.systemd import Systemd

NAME = "sglang@main.service"
NUMBERS = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
EXPECTED = probe.Expected("EAGLE3", NUMBERS, 1.3)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd(tmp_path / "systemd")
    monkeypatch.setenv("PATH", f"{made.binaries}:/usr/bin:/bin")
    return made


def no_pause(_seconds: float) -> None:
    """In the place of time.sleep."""


def wait(answers: list[tuple[int, object]], unit_name: str | None = NAME, timeout: float = 60) -> float:
    with engine_http.running(engine_http.Engine({"/health": list(answers)})) as engine:
        return probe.wait_until_ready(api.Server(engine.url), unit_name, timeout, no_pause)


def test_a_start_is_waited_for(systemd: Systemd) -> None:
    assert wait([(503, ""), (503, ""), (200, "")]) >= 0
    assert len(systemd.asked()) == 3


def test_without_a_unit_nobody_asks_systemd(systemd: Systemd) -> None:
    wait([(503, ""), (200, "")], unit_name=None)
    with pytest.raises(FileNotFoundError):
        systemd.asked()


def test_a_unit_that_fails_ends_the_wait_with_its_journal(systemd: Systemd) -> None:
    systemd.states(systemd.active(), systemd.failed())
    systemd.journal(b"AttributeError: nvfp4_pack_quantized\n")
    with pytest.raises(probe.NotReady, match=r"ended after .* \(systemd says failed, exit-code\).*\nAttributeError"):
        wait([(503, "")])


@pytest.mark.parametrize("then", [Systemd.active(restarts=1), Systemd.active(sub="auto-restart")])
def test_a_unit_that_systemd_starts_again_ends_the_wait(systemd: Systemd, then: str) -> None:
    systemd.states(systemd.active(), then)
    with pytest.raises(probe.NotReady, match="instead of serving"):
        wait([(503, "")])


def test_restarts_of_former_days_do_not_count(systemd: Systemd) -> None:
    systemd.states(systemd.active(restarts=7))
    wait([(503, ""), (200, "")])


def test_another_server_on_the_address_is_not_taken_for_ours(systemd: Systemd) -> None:
    systemd.states(systemd.failed())
    with pytest.raises(probe.NotReady, match="Something else answers at http"):
        wait([(200, "")])


def test_a_unit_that_is_not_there_is_told_at_once(systemd: Systemd) -> None:
    systemd.states("LoadState=not-found\nActiveState=inactive\n")
    with pytest.raises(unit.UnitError, match="there is no unit"):
        wait([(503, "")])


def test_the_time_limit_tells_the_journal(systemd: Systemd) -> None:
    with pytest.raises(probe.NotReady, match=r"did not answer within 0 s\. Its last lines:\nloading weights"):
        wait([(503, "")], timeout=0)
    with pytest.raises(probe.NotReady, match=r"did not answer within 0 s\.$"):
        wait([(503, "")], unit_name=None, timeout=0)


def statuses(
    expected: probe.Expected = EXPECTED, accept_length: float | None = 2.0, text: str = "sea", **in_effect: object
) -> dict[str, str]:
    told = {**api.effective(engine_http.INFO), **in_effect}
    judged = probe.judge(expected, told, api.Generation(text, 8, accept_length))
    return {check.id: check.status for check in judged}


def test_what_was_asked_for_passes() -> None:
    assert set(statuses().values()) == {"pass"}
    assert list(statuses()) == [
        "generate.text",
        "speculation.algorithm",
        "speculation.speculative_num_steps",
        "speculation.speculative_eagle_topk",
        "speculation.speculative_num_draft_tokens",
        "speculation.accept_length",
    ]


@pytest.mark.parametrize(
    ("broken", "failed"),
    [
        (lambda: statuses(text=" \n"), "generate.text"),
        (lambda: statuses(speculative_algorithm=None), "speculation.algorithm"),
        (lambda: statuses(speculative_algorithm="EAGLE"), "speculation.algorithm"),
        (lambda: statuses(speculative_num_draft_tokens=2), "speculation.speculative_num_draft_tokens"),
        (lambda: statuses(accept_length=1.0), "speculation.accept_length"),
        (lambda: statuses(accept_length=1.2), "speculation.accept_length"),
        (lambda: statuses(accept_length=None), "speculation.accept_length"),
    ],
)
def test_each_that_is_off_fails_alone(broken: Callable[[], dict[str, str]], failed: str) -> None:
    assert [name for name, status in broken().items() if status != "pass"] == [failed]


@pytest.mark.parametrize(
    ("accept_length", "fix"),
    [
        (1.0, "nothing was accepted"),
        (1.2, "the drafter that was trained for this base model"),
        (None, "speculation flags"),
    ],
)
def test_the_fix_tells_nothing_accepted_from_too_little(accept_length: float | None, fix: str) -> None:
    judged = probe.judge(EXPECTED, engine_http.INFO, api.Generation("sea", 8, accept_length))
    assert [fix in check.fix for check in failing(judged)] == [True]


@pytest.mark.parametrize(("asked", "found"), [("NEXTN", "EAGLE"), ("EAGLE", "FROZEN_KV_MTP"), ("eagle3", "EAGLE3")])
def test_a_name_that_the_engine_spells_otherwise(asked: str, found: str) -> None:
    expected = probe.Expected(asked, NUMBERS, 1.3)
    assert statuses(expected, speculative_algorithm=found)["speculation.algorithm"] == "pass"


def test_without_speculation_its_proof_is_not_counted_as_passed() -> None:
    assert statuses(probe.Expected(None, {}, 1.3), None) == {
        "generate.text": "pass",
        "speculation.accept_length": "skipped",
    }
