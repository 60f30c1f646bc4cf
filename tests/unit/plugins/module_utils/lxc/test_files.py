# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc import files
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.devices import LxcError
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.files import (
    back_up,
    config_lock,
    printable,
    read_config,
    write_config,
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "200.conf"
    path.write_bytes(b"arch: amd64\r\n#caf\xe9\n")
    path.chmod(0o640)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_bytes_that_are_not_utf8_survive(config: Path) -> None:
    before = config.read_bytes()
    write_config(str(config), read_config(str(config)))
    assert config.read_bytes() == before


def test_bytes_that_are_not_utf8_can_be_shown(config: Path) -> None:
    assert printable(read_config(str(config))) == "arch: amd64\r\n#caf\ufffd\n"


def test_write_keeps_mode_and_leaves_nothing_else(config: Path) -> None:
    write_config(str(config), "arch: arm64\n")
    assert config.read_text() == "arch: arm64\n"
    assert config.stat().st_mode & 0o7777 == 0o640
    assert names(config.parent) == ["200.conf"]


def test_write_through_a_link_keeps_the_link(config: Path) -> None:
    # /etc/pve/lxc is a link to the node's folder.
    link = config.parent / "lxc"
    link.symlink_to(config.parent, target_is_directory=True)
    write_config(str(link / "200.conf"), "new\n")
    assert (config.read_text(), link.is_symlink()) == ("new\n", True)


def test_pmxcfs_refuses_owner_mode_and_fsync(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def unknown(_: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(os, "fchmod", refuse)
    monkeypatch.setattr(os, "fsync", unknown)
    write_config(str(config), "new\n")
    assert config.read_text() == "new\n"


def test_a_full_disk_leaves_the_old_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = config.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        LxcError, match="No space left on device; check free space and permissions; the file is unchanged"
    ):
        write_config(str(config), "new\n")
    assert config.read_bytes() == before
    assert names(config.parent) == ["200.conf"]


def test_no_quorum_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(LxcError, match="Permission denied; the cluster has no quorum"):
        write_config("/etc/pve/lxc/200.conf", "new\n")


CHILD = """
import os, signal, sys
from ansible_collections.gpuserve.sglang.plugins.module_utils.lxc.files import write_config
calls = 0
def die_at_the_third(real):
    def call(*arguments, **keywords):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **keywords)
    return call
import pathlib
os.open, os.fsync = die_at_the_third(os.open), die_at_the_third(os.fsync)
pathlib.Path.replace = die_at_the_third(pathlib.Path.replace)
write_config(sys.argv[1], "new\\n" * 50000)
"""


@pytest.mark.parametrize("at", range(1, 7))
def test_death_in_the_middle_leaves_the_old_or_the_new_file(config: Path, at: int) -> None:
    before = config.read_bytes()
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", CHILD, str(config), str(at)], env=paths, check=False)
    # open, fsync, rename, open of the folder, its fsync; the sixth call does not come.
    assert done.returncode == (-signal.SIGKILL if at < 6 else 0)
    assert config.read_bytes() == (before if at <= 3 else b"new\n" * 50000)
    write_config(str(config), "after\n")
    assert config.read_text() == "after\n"


def test_reading_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LxcError, match="No such file or directory; check that the container exists on this node"):
        read_config(str(tmp_path / "999.conf"))


def test_backup_is_kept_for_root_alone(config: Path) -> None:
    kept = Path(back_up(str(config), read_config(str(config)), str(config.parent / "kept")))
    assert kept.read_bytes() == config.read_bytes()
    assert kept.stat().st_mode & 0o7777 == 0o600
    assert kept.name.startswith(f"{config.parent.name}-200.conf.")


def test_lock_is_the_one_that_proxmox_takes(tmp_path: Path) -> None:
    with (
        config_lock("200", str(tmp_path)),
        (tmp_path / "pve-config-200.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert files.LOCK_FOLDER == "/run/lock/lxc"


def test_a_lock_that_is_held_is_told(tmp_path: Path) -> None:
    with (
        config_lock("200", str(tmp_path)),
        pytest.raises(LxcError, match="container 200: another task changes its configuration"),
        config_lock("200", str(tmp_path), seconds=0.2),
    ):
        pass
