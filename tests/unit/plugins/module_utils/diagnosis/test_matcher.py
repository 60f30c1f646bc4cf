# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.catalogue import SIGNATURES
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.log import read
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.matcher import Diagnosis, as_dict, diagnose
from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.signature import HINT, STOP

from tests.fixtures.engine_logs import HEALTHY, LOGS, UNKNOWN, VARIANTS


def of(text: str | bytes) -> Diagnosis:
    return diagnose(read(text if isinstance(text, bytes) else text.encode()))


def test_each_signature_has_its_log() -> None:
    assert [signature.id for signature in SIGNATURES] == list(dict.fromkeys(signature.id for signature in SIGNATURES))
    assert {signature.id for signature in SIGNATURES} == set(LOGS)


@pytest.mark.parametrize(
    ("wanted", "text"), [*LOGS.items(), *VARIANTS], ids=[*LOGS, *(f"{name}, otherwise" for name, dummy in VARIANTS)]
)
def test_a_log_is_known_by_its_own_signature_before_any_other(wanted: str, text: str) -> None:
    finding = of(text).finding
    assert finding is not None
    assert (finding.id, "{" in finding.cause + finding.fix) == (wanted, False)
    assert finding.seen in text


def test_a_server_that_is_well_has_no_finding() -> None:
    diagnosis = of(HEALTHY)
    assert (diagnosis.finding, diagnosis.others, diagnosis.exception) == (None, (), None)
    assert diagnosis.story().startswith("The log tells of no failure.\nIts last lines:\n")


def test_the_words_of_a_cause_come_from_the_log() -> None:
    finding = of(LOGS["drafter.hidden_size"]).finding
    assert finding is not None
    assert "wants 3072 hidden values and gets 1024" in finding.cause


def test_the_engine_s_advice_about_memory_is_overruled() -> None:
    story = of(LOGS["drafter.hidden_size"]).story()
    assert story.startswith("Cause [drafter.hidden_size]: the drafter was made for another base model")
    assert "smaller value" not in story
    assert [other.id for other in of(LOGS["drafter.hidden_size"]).others] == ["gpu.capture"]


def test_an_unknown_failure_gives_its_first_exception_and_the_last_lines() -> None:
    diagnosis = of(UNKNOWN)
    assert diagnosis.finding is None
    assert diagnosis.story().splitlines() == [
        "Cause: none of the known ones. The exception below came first; what follows it is its consequence.",
        "First exception: ValueError: the moon is in the wrong house (sglang/srt/layers/moe/topk.py:88 in forward)",
        "Its last lines:",
        "  /opt/sglang/engine/bin/python -m sglang.launch_server --model-path /srv/models/base --port 30000",
        "  [2026-11-29 14:28:46] Init torch distributed begin.",
        "  [2026-11-29 14:28:47] Init torch distributed ends. elapsed=0.20 s, mem usage=0.09 GB",
        "  [2026-11-29 14:28:48] Load weight begin. avail mem=93.13 GB",
        "  [2026-11-29 14:29:09] Load weight end. elapsed=21.39 s, type=KimiK25ForConditionalGeneration, avail "
        "mem=23.95 GB, mem usage=69.17 GB.",
        "  ValueError: the moon is in the wrong house",
        "  [2026-11-29 14:29:20] Received sigquit from a child process. It usually means the child failed.",
    ]


def test_of_two_causes_the_earlier_one_counts() -> None:
    both = of(LOGS["memory.shm"] + LOGS["gpu.lost"])
    assert both.finding is not None
    assert (both.finding.id, "gpu.lost" in [other.id for other in both.others]) == ("memory.shm", True)


def test_what_happened_gives_way_to_why() -> None:
    assert [other.id for other in of(LOGS["memory.host"]).others] == ["service.killed", "service.main_killed"]


def test_a_clean_stop_is_no_failure_though_it_ends_by_a_kill() -> None:
    diagnosis = of(LOGS["service.stopped"])
    assert diagnosis.finding is not None
    assert diagnosis.finding.kind == STOP
    assert diagnosis.story().startswith("No failure [service.stopped]: ")


def test_a_failure_before_the_stop_is_the_cause() -> None:
    finding = of(LOGS["gpu.ecc"] + LOGS["service.stopped"]).finding
    assert finding is not None
    assert finding.id == "gpu.ecc"


def test_a_hint_is_not_what_it_died_of() -> None:
    diagnosis = of(LOGS["drafter.tensors_left_out"] + UNKNOWN)
    assert diagnosis.finding is None
    assert [(other.id, other.kind) for other in diagnosis.others] == [("drafter.tensors_left_out", HINT)]
    assert "Besides [drafter.tensors_left_out]: " in diagnosis.story()


def test_binary_in_the_journal_is_survived_and_counted() -> None:
    junk = bytes(range(256)) * 30
    diagnosis = of(junk + b"\n" + LOGS["memory.unbalanced"].encode() + junk + b"\n\xff\xfe\x00\n")
    assert diagnosis.finding is not None
    assert diagnosis.finding.id == "memory.unbalanced"
    assert diagnosis.unreadable >= 2
    assert "lines of the log were no text" in diagnosis.story()


def test_nothing_at_all() -> None:
    assert of(b"").story() == "The log tells of no failure."


def test_secrets_are_not_repeated() -> None:
    told = json.dumps(as_dict(of(LOGS["drafter.none"] + "launch --api-key sk-abc\nAuthorization: Bearer sk-abc\n")))
    assert "sk-" not in told
    assert "--api-key ***" in told
    assert "hf_" not in json.dumps(as_dict(of("token hf_abcdefghijklmnopqrstuvwxyz123456\n")))


def test_the_result_is_plain_data() -> None:
    told = as_dict(of(LOGS["flags.unknown"]))
    assert json.loads(json.dumps(told)) == told
    assert list(told) == ["finding", "others", "exception", "last_lines", "unreadable"]
