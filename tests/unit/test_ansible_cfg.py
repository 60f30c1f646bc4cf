# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection's settings, as ssh itself understands them."""

from __future__ import annotations

import configparser
import shlex
import subprocess
from pathlib import Path

CONFIG = Path(__file__).parents[2] / "ansible.cfg"


def understood(arguments: str) -> dict[str, str]:
    """What ssh makes of arguments, without a connection and without the user's own settings."""
    command = ["ssh", "-F", "none", *shlex.split(arguments), "-G", "host"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_a_dead_connection_is_noticed_and_a_live_one_is_kept() -> None:
    config = configparser.ConfigParser()
    config.read(CONFIG)
    assert config.getboolean("ssh_connection", "pipelining")
    told = understood(config["ssh_connection"]["ssh_args"])
    assert 0 < int(told["serveraliveinterval"]) * int(told["serveralivecountmax"]) <= 60
    assert (told["controlmaster"], told["controlpersist"]) == ("auto", "60")


def test_by_itself_ssh_waits_for_good() -> None:
    assert understood("")["serveraliveinterval"] == "0"
