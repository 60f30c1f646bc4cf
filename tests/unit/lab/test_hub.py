# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Hub as the lab runs it, started by a service manager. What it answers, the tests of its clients see."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from lab import hub


def test_it_is_ready_when_it_knows_its_models(tmp_path: Path) -> None:
    model = tmp_path / "models/lab/tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        started = subprocess.Popen(
            # As on the lab's host, where there is no package of this name.
            [sys.executable, "-I", hub.__file__, str(tmp_path / "models")],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.PIPE,
            text=True,
        )
        with started:
            try:
                assert manager.recv(100) == b"READY=1"
                assert started.stdout is not None
                served, endpoint = (started.stdout.readline().strip() for _ in range(2))
                with urllib.request.urlopen(f"{endpoint}/api/models/lab/tiny", timeout=30) as answer:
                    assert served == f"lab/tiny@{json.load(answer)['sha']}"
            finally:
                started.kill()
