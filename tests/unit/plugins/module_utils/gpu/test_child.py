# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu import child


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A function that runs a piece of source as a probe."""

    def run(source: str, *arguments: str, timeout: float = 20.0, interpreter: str = sys.executable) -> child.Report:
        module = types.ModuleType("probe")
        monkeypatch.setattr(child.inspect, "getsource", lambda _: source)
        return child.run_probe(module, arguments, interpreter=interpreter, timeout=timeout)

    return run


def test_records_are_read_and_noise_is_not(probe) -> None:
    report = probe('import sys\nprint(\'a library speaks\')\nprint(\'{"kind": "a", "v": %s}\' % sys.argv[1])\n', "3")
    assert (report.end, report.records, report.trouble()) == ("done", ({"kind": "a", "v": 3},), "")


def test_what_was_said_before_a_hang_is_kept_and_the_child_is_gone(probe) -> None:
    source = 'import os, time\nprint(\'{"kind": "pid", "v": %d}\' % os.getpid(), flush=True)\ntime.sleep(600)\n'
    report = probe(source, timeout=1.0)
    assert report.end == "timeout"
    assert report.trouble() == "no answer within 1 s"
    with pytest.raises(ProcessLookupError):
        os.kill(report.records[0]["v"], 0)


def test_a_grandchild_dies_with_its_parent(probe) -> None:
    source = (
        "import subprocess, time\n"
        "p = subprocess.Popen(['sleep', '600'])\n"
        'print(\'{"kind": "pid", "v": %d}\' % p.pid, flush=True)\n'
        "time.sleep(600)\n"
    )
    report = probe(source, timeout=1.0)
    pid = report.records[0]["v"]
    stat = Path(f"/proc/{pid}/stat")

    def alive() -> bool:
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"

    # A signal is delivered when the kernel gets round to it, which a busy machine makes later than now.
    limit = time.monotonic() + 30
    while alive() and time.monotonic() < limit:
        time.sleep(0.1)
    assert not alive()


def test_a_crash_names_its_signal(probe) -> None:
    report = probe("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert (report.end, report.trouble()) == ("crashed", "the process died of SIGSEGV")


def test_an_error_keeps_its_last_line_only(probe) -> None:
    report = probe("raise RuntimeError('out of luck')\n")
    assert report.end == "failed"
    assert report.trouble() == "exit status 1: RuntimeError: out of luck"


def test_a_missing_interpreter_is_told(probe) -> None:
    report = probe("", interpreter="/nonexistent/bin/python")
    assert report.trouble() == "/nonexistent/bin/python does not start: No such file or directory"


def test_a_selection_of_devices_does_not_reach_the_probe(probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    report = probe("import json, os\nprint(json.dumps({'v': os.environ.get('CUDA_VISIBLE_DEVICES')}))\n")
    assert report.records == ({"v": None},)
