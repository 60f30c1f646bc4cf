# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of an engine's venv, as an operator meets it. Each test leaves the venv `first` whole."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
import testinfra

HERE = Path(__file__).parent
ROOT = "/opt/sglang"
FIRST = f"{ROOT}/engine-first"
SITE = f"{FIRST}/lib/python3.11/site-packages"


def load(path):
    """A file of this scenario: its folder is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


plays = load(HERE / "plays.py")
play = plays.play


@pytest.fixture(scope="session")
def ct():
    return testinfra.get_host(f"ansible://ct200?ansible_inventory={plays.INVENTORY}")


def works(ct, venv=FIRST):
    """Whether every package of the small engine is whole, and pip too."""
    code = "import bulk_a.m1499, bulk_b.m1499, compressed_tensors, sglang, pip._internal.cli.main"
    return ct.run("%s/bin/python -I -c %s", venv, code).rc == 0


def record(ct, venv=FIRST):
    return json.loads(ct.file(f"{venv}/gpuserve.json").content_string)


# Ends the pip that installs into a venv as soon as it has written half of the packages.
KILLER = """
import os, pathlib, signal, sys, time
site = pathlib.Path(sys.argv[1])
while True:
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"--require-hashes" in command and str(site.parents[2]).encode() in command and (site / "bulk_a").exists():
            os.kill(int(process.name), signal.SIGKILL)
            sys.exit(0)
    time.sleep(0.01)
"""


def test_what_was_asked_for_is_there_for_every_user_to_read(ct):
    assert works(ct)
    assert record(ct)["packages"]["sglang"] == "0.5.12"
    closed = ct.check_output("find %s ! -type l ! -perm -o=r | head -3", FIRST)
    assert closed == ""


REPAIRS = {
    "no pip": ("rm -r {site}/pip {site}/pip-*", "it has no pip"),
    "a pip of which only the name is left": ("rm -r {site}/pip", "it has no pip"),
    "a dead interpreter link": ("ln -sfn /usr/bin/python3.99 {venv}/bin/python3", "which is not there"),
    "made for another Python": ("sed -i 's/^version = .*/version = 3.9.2/' {venv}/pyvenv.cfg", "made for 3.9"),
    "a package half installed": ("rm -r {site}/bulk_b/m1* {site}/bulk_b-1.0.dist-info/RECORD", "half-installed"),
    "what pip leaves when it is killed": (
        "mv {site}/bulk_b-1.0.dist-info {site}/~ulk_b-1.0.dist-info",
        "half-installed",
    ),
    "a package gone": ("rm -r {site}/bulk_b-1.0.dist-info {site}/bulk_b", "bulk-b 1.0 is missing"),
    "an empty folder": ("rm -r {venv}/*", "it has no Python"),
}


@pytest.mark.parametrize("case", REPAIRS)
def test_repaired_on_rerun(ct, case):
    break_it, problem = REPAIRS[case]
    ct.check_output(break_it.format(site=SITE, venv=FIRST))
    looked = play("--check")
    assert problem in looked.look["problems"][0]
    assert looked.changed == 1
    assert play().changed == 1
    assert works(ct)
    again = play()
    assert again.changed == 0
    assert again.held["skipped"]


def test_a_run_that_was_killed_is_finished_by_the_next(ct):
    ct.check_output("rm -r %s", FIRST)
    started = plays.start()
    ct.check_output("timeout 120 python3 -c %s %s", KILLER, SITE)
    assert "was killed by signal 9; run again, which finishes it" in plays.end(started).failure
    assert not works(ct)
    run = play()
    assert run.look["problems"] == ["an earlier installation was not finished"]
    assert run.changed == 1
    assert works(ct)


@contextlib.contextmanager
def small_disk(ct, size):
    ct.check_output("mkdir -p /opt/small && mount -t tmpfs -o size=%s tmpfs /opt/small", size)
    try:
        yield "/opt/small"
    finally:
        ct.check_output("umount /opt/small")


def test_a_disk_that_is_too_small_is_seen_before_anything_is_changed(ct):
    with small_disk(ct, "2m") as root:
        failure = play(sglang_install_root=root).failure
        assert "the packages unpack to" in failure
        assert "free some space" in failure
        assert ct.file(root).listdir() == []


def test_a_disk_that_runs_full_in_pip_is_told_and_finished_later(ct):
    with small_disk(ct, "30m") as root:
        failure = play(sglang_install_root=root).failure
        assert "No space left on device" in failure
        assert "the disk is full; free some space and run again" in failure
        ct.check_output("mount -o remount,size=300m /opt/small")
        assert play(sglang_install_root=root).changed == 1
        assert works(ct, f"{root}/engine-first")


def test_without_a_network_a_wheelhouse_will_do_and_an_index_is_told(ct):
    route = ct.check_output("ip route show default")
    ct.check_output("ip route flush default")
    try:
        ct.check_output("rm -r %s", FIRST)
        assert play().changed == 1
        asked = {"sglang_install_wheelhouse": "", "sglang_install_requirements": ["sglang==0.5.20"]}
        failure = play(sglang_install_version="online", **asked).failure
        assert "fix: the package index is not reached" in failure
    finally:
        if route:
            ct.check_output(f"ip route add {route}")
        ct.run("rm -r %s/engine-online", ROOT)


def test_a_wheel_that_the_lock_does_not_name_is_refused(ct):
    failure = play(sglang_install_version="changed").failure
    assert "bulk-b==1.0" in failure
    assert "fix: a wheel is not the one whose hash the lock names" in failure
    ct.check_output("rm -r %s/engine-changed", ROOT)


def test_a_lock_in_the_inventory_counts_more_than_the_wheelhouses(ct):
    house = Path(os.environ["ENGINE_PACKAGES"])
    lock = {"sglang_install_wheelhouse": "/srv/engine/second", "sglang_install_lock": str(house / "first" / "lock.txt")}
    assert play(**lock).changed == 0


def test_compressed_tensors_that_cannot_work_is_refused_before_anything_is_changed(ct):
    for arguments in ((), ("--check",)):
        run = play(*arguments, sglang_install_version="forced")
        assert "compressed-tensors==0.8.1 in the lock of sglang_install_wheelhouse (/srv/engine/forced)" in run.failure
        assert (
            "CompressionFormat.nvfp4_pack_quantized (sglang/srt/layers/quantization/compressed_tensors/utils.py)"
            in run.failure
        )
        assert "fix: ask for compressed-tensors>=0.10.0" in run.failure
        assert run.stats["changed"] == 0
    assert not ct.file(f"{ROOT}/engine-forced").exists


def test_what_only_the_published_engines_files_tell_is_refused_until_it_is_mended(ct):
    # Nothing that the published one depends on is installed, which its metadata tells and this scenario means.
    hidden = {"sglang_install_version": "hidden"}
    for dummy in range(2):
        failure = play(**hidden).failure
        assert (
            "0.8.1 lacks CompressionFormat.nvfp4_pack_quantized "
            "(sglang/srt/layers/quantization/compressed_tensors/utils.py:" in failure
        )
        assert "fix: install compressed-tensors==0.18.0" in failure
        assert not ct.file(f"{ROOT}/engine-hidden/gpuserve.json").exists
    mended = {**hidden, "sglang_install_wheelhouse": "/srv/engine/mended"}
    run = play(**mended)
    assert run.changed == 1
    assert {check["id"]: check["status"] for check in run.held["checks"]}["engine.compressed_tensors"] == "pass"
    assert play(**mended).changed == 0
    ct.check_output("rm -r %s/engine-hidden", ROOT)


def test_versions_stand_side_by_side_and_going_back_installs_nothing(ct):
    unit = "/etc/systemd/system/engine-test.service"
    ct.check_output("printf '[Service]\\nExecStart=%s/bin/python -m sglang\\n' > %s", FIRST, unit)
    try:
        assert play(sglang_install_version="second").changed == 1
        assert play(sglang_install_version="first").changed == 0
        run = play(sglang_install_version="third")
        assert run.held["removed"] == []
        assert run.held["kept"] == [{"path": FIRST, "used_by": f"the unit {unit}"}]
        assert sorted(ct.file(ROOT).listdir()) == ["engine-first", "engine-second", "engine-third"]
    finally:
        ct.check_output("rm %s", unit)
    looked = play("--check", sglang_install_version="third")
    assert looked.look["removed"] == [FIRST]
    run = play(sglang_install_version="third")
    assert run.changed == 1
    assert sorted(ct.file(ROOT).listdir()) == ["engine-second", "engine-third"]
    assert play(sglang_install_version="third").changed == 0
    assert play(sglang_install_version="first", sglang_install_keep=0).changed == 1
    assert ct.file(ROOT).listdir() == ["engine-first"]


def test_foreign_packages_stay_unless_the_engine_is_to_be_alone(ct):
    ct.check_output("mkdir %s/foreign-1.0.dist-info && touch %s/foreign-1.0.dist-info/RECORD", SITE, SITE)
    ct.check_output(
        "printf 'Metadata-Version: 2.1\\nName: foreign\\nVersion: 1.0\\n' > %s",
        f"{SITE}/foreign-1.0.dist-info/METADATA",
    )
    ct.check_output("echo 'foreign-1.0.dist-info/RECORD,,' > %s", f"{SITE}/foreign-1.0.dist-info/RECORD")
    assert play().changed == 0
    run = play("--diff", sglang_install_exclusive=True)
    assert run.held["repairs"] == ["foreign was removed"]
    assert "foreign==1.0" in run.held["diff"]["before"]
    assert "foreign" not in run.held["diff"]["after"]
    assert play(sglang_install_exclusive=True).changed == 0


def test_a_folder_that_is_no_venv_is_never_touched(ct):
    ct.check_output("mkdir -p /srv/precious && touch /srv/precious/weights")
    failure = play(sglang_install_venv="/srv/precious").failure
    assert "/srv/precious holds weights and is no virtual environment" in failure
    assert ct.file("/srv/precious").listdir() == ["weights"]


def test_a_missing_package_of_the_distribution_is_seen_by_the_same_look(ct):
    wanted = ["ca-certificates", "python3-venv", "no-such-package"]
    run = play(sglang_install_system_packages=wanted)
    assert run.look["system_packages_missing"] == ["no-such-package"]
    assert "no-such-package" in run.failure
