# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's life on both sides of the container wall, in the order in which an operator lives it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
import testinfra

HERE = Path(__file__).parent


def load(path):
    """A file of this scenario: its folder is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


play = load(HERE / "plays.py").play

OLD, FIRST, SECOND, NEW = "570.172.08", "580.95.05", "580.126.09", "590.44.01"
REPOSITORY = Path(os.environ["DRIVER_REPOSITORY"])
SOURCES = "/etc/apt/sources.list.d/gpuserve-nvidia-driver.sources"
PROBE = """
dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\\n' '*nvidia*' 'libcuda*' \
| grep -v ' not-installed$'
"""


@pytest.fixture(scope="session")
def pve(request):
    return connection("pve")


@pytest.fixture(scope="session")
def ct(request):
    return connection("ct200")


def connection(name):
    inventory = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "inventory"
    return testinfra.get_host(f"ansible://{name}?ansible_inventory={inventory}")


def packages(host):
    """Installed packages of the driver by name: upstream version and whether it is held."""
    rows = [line.split() for line in host.run(PROBE).stdout.splitlines()]
    return {name: (version.rpartition("-")[0], want == "hold") for name, version, want, _ in rows}


def versions(host):
    return {version for version, _ in packages(host).values()}


def unchanged(host, before):
    assert packages(host) == before


# --- the first version -----------------------------------------------------------------------------------------------


def test_host_has_one_version_and_holds_all_of_it(pve):
    found = packages(pve)
    assert {"nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced", "libcuda1"} <= set(found)
    assert set(found.values()) == {(FIRST, True)}
    assert f"open {FIRST}" in pve.check_output("cat /lib/modules/*/updates/dkms/nvidia.ko")
    assert pve.service("nvidia-persistenced").is_running
    assert pve.service("nvidia-persistenced").is_enabled


def test_pinning_package_is_taken_where_it_exists(pve):
    assert f"nvidia-driver-pinning-{FIRST}" in packages(pve)
    assert not pve.file("/etc/apt/preferences.d/gpuserve-nvidia-driver.pref").exists
    assert f"Candidate: {FIRST}-1" in pve.check_output("apt-cache policy nvidia-settings")


def test_upgrade_by_the_operator_leaves_the_driver_alone(pve):
    assert "nvidia" not in pve.check_output("apt-get --simulate dist-upgrade | grep ^Inst || true")


def test_host_has_nouveau_off_and_the_module_options(pve):
    text = pve.file("/etc/modprobe.d/gpuserve-nvidia.conf").content_string
    assert "blacklist nouveau\n" in text
    assert "options nvidia_uvm uvm_disable_hmm=1\n" in text


def test_container_has_libraries_alone(ct):
    found = packages(ct)
    assert {"libcuda1", "libnvidia-ml1", "libnvidia-ptxjitcompiler1"} <= set(found)
    assert set(found.values()) == {(FIRST, True)}
    assert [name for name in found if "kernel" in name or "dkms" in name] == []
    assert not ct.file("/etc/modprobe.d/gpuserve-nvidia.conf").exists


# --- what is refused before anything is changed ----------------------------------------------------------------------


def test_container_that_would_differ_from_its_host_is_refused(ct):
    before = packages(ct)
    message = play("sglang", nvidia_driver_version=NEW).failure("ct200")
    assert f"expected nvidia_driver_version {FIRST}" in message
    assert f"bring the host to {NEW} first" in message
    unchanged(ct, before)


def apart(folder, **by_host):
    """Another inventory, whose hosts ask for versions of their own."""
    path = folder / "apart.json"
    hosts = {name: {"nvidia_driver_version": version} for name, version in by_host.items()}
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    return ["-i", str(path)]


def test_mismatch_is_told_before_anything_is_changed(pve, ct, tmp_path):
    before = packages(pve), packages(ct)
    run = play("all", *apart(tmp_path, ct200=NEW), playbook="preflight.yml")
    assert f"expected nvidia_driver_version {FIRST}, as the host's kernel module that runs" in run.failure("ct200")
    run = play("all", *apart(tmp_path, pve=NEW), playbook="preflight.yml")
    assert f"expected nvidia_driver_version {NEW}, that the host is asked to have" in run.failure("ct200")
    assert "set nvidia_driver_version once" in run.failure("ct200")
    # Without its host's judgement, what runs counts.
    run = play("sglang", playbook="preflight.yml", nvidia_driver_version=NEW)
    assert f"bring the host to {NEW} first" in run.failure("ct200")
    assert (packages(pve), packages(ct)) == before


def test_upgrade_of_both_is_judged_by_what_the_host_will_have(pve, ct):
    before = packages(pve), packages(ct)
    run = play("all", playbook="preflight.yml", nvidia_driver_version=NEW)
    assert (run.changed("pve"), run.changed("ct200")) == (0, 0)
    assert run.driver("ct200")["packages"]["libcuda1"] == f"{NEW}-1"
    assert run.check("ct200", "driver.version")["actual"] == f"{NEW}, once the host was brought to it"
    assert (packages(pve), packages(ct)) == before


def test_preflight_passes_and_says_what_it_found(pve):
    run = play("all", playbook="preflight.yml")
    for name, scope in (("pve", "host"), ("ct200", "container")):
        assert run.changed(name) == 0
        assert f"nvidia_driver: {FIRST} ({scope}): " in run.said(name)


def test_version_that_is_not_offered_is_refused(pve):
    before = packages(pve)
    message = play("proxmox", nvidia_driver_version="999.1").failure("pve")
    assert "in version 999.1" in message
    assert f"set nvidia_driver_version to a version that apt offers ({OLD}, {FIRST}, {SECOND}, {NEW})" in message
    unchanged(pve, before)


def test_version_that_is_none_is_refused(pve):
    assert "set nvidia_driver_version to one of these forms" in play("proxmox", nvidia_driver_version="latest").failure(
        "pve"
    )


def test_repository_that_is_gone_is_refused(pve):
    before, text = packages(pve), pve.file(SOURCES).content_string
    gone = "file:///srv/lab/srv/driver/gone"
    message = play("proxmox", nvidia_driver_version=NEW, nvidia_driver_repository_url=gone).failure("pve")
    assert "[repository.answers]" in message
    assert "set nvidia_driver_repository_url to a repository that this host reaches" in message
    unchanged(pve, before)
    assert pve.file(SOURCES).content_string == text


def test_repository_that_another_key_signs_is_refused(pve):
    before, text = packages(pve), pve.file(SOURCES).content_string
    key = (REPOSITORY / "wrong.asc").read_text()
    message = play("proxmox", nvidia_driver_version=NEW, nvidia_driver_repository_key=key).failure("pve")
    assert "give nvidia_driver_repository_key the key that this repository is signed with" in message
    unchanged(pve, before)
    assert pve.file(SOURCES).content_string == text


def test_hold_of_the_operator_is_respected(pve):
    pve.check_output(
        f"apt-get -qq -y --allow-downgrades install nvidia-settings={OLD}-1 && apt-mark hold nvidia-settings"
    )
    before = packages(pve)
    message = play("proxmox").failure("pve")
    assert f"nvidia-settings {OLD}-1" in message
    assert "apt-mark unhold nvidia-settings" in message
    unchanged(pve, before)
    # Released, it comes along with the rest of the set.
    pve.check_output("apt-mark unhold nvidia-settings")
    assert play("proxmox").changed("pve") == 1
    assert packages(pve)["nvidia-settings"] == (FIRST, True)


def test_package_that_brings_dkms_is_refused_in_a_container(ct):
    before = packages(ct)
    message = play("sglang", nvidia_driver_container_packages=["libcuda1", "nvidia-driver-cuda"]).failure("ct200")
    assert "[plan.user_space_only]" in message
    assert f"nvidia-kernel-open-dkms {FIRST}-1" in message
    unchanged(ct, before)


# --- CUDA toolkits of apt --------------------------------------------------------------------------------------------


def test_cuda_toolkits_lie_side_by_side_behind_one_home(ct):
    home = "/opt/cuda-toolkit/home"
    for version in ("13.0", "12.8"):
        # Left to itself it is the newest that the driver runs, up to the fallback.
        asked = {} if version == "13.0" else {"cuda_toolkit_version": version}
        run = play("sglang", playbook="cuda.yml", **asked)
        assert run.changed("ct200") == 2
        assert ct.check_output(f"readlink -f {home}/bin/nvcc") == f"/usr/local/cuda-{version}/bin/nvcc"
        assert play("sglang", playbook="cuda.yml", **asked).changed("ct200") == 0
    # Back to what is there already is a matter of links.
    assert play("sglang", playbook="cuda.yml").changed("ct200") == 1
    assert ct.check_output(f"readlink -f {home}/bin/nvcc") == "/usr/local/cuda-13.0/bin/nvcc"


def test_cuda_that_the_driver_does_not_run_is_refused(ct):
    message = play("sglang", playbook="cuda.yml", cuda_toolkit_version="14.0").failure("ct200")
    assert f"found driver {FIRST} runs CUDA 13.0" in message


# --- repairs ---------------------------------------------------------------------------------------------------------


def test_package_that_floated_away_is_brought_back(pve):
    pve.check_output(
        f"apt-get -qq -y --allow-change-held-packages install nvidia-persistenced={NEW}-1"
        " && apt-mark unhold nvidia-persistenced"
    )
    assert versions(pve) == {FIRST, NEW}
    assert play("proxmox").changed("pve") == 1
    assert set(packages(pve).values()) == {(FIRST, True)}


def test_interrupted_installation_is_finished(pve):
    deb = f"/srv/lab/srv/driver/repository/nvidia-persistenced_{FIRST}-1_amd64.deb"
    pve.check_output(f"dpkg --unpack {deb}")
    run = play("proxmox")
    assert run.driver("pve")["repairs"] == ["an interrupted installation was finished"]
    assert set(packages(pve).values()) == {(FIRST, True)}
    assert play("proxmox").changed("pve") == 0


def test_kernel_that_was_booted_since_gets_its_module(pve):
    pve.check_output("rm -r /lib/modules/*/updates && dpkg --purge linux-headers-$(uname -r)")
    run = play("proxmox")
    assert run.check("pve", "kernel.module_built")["status"] == "pass"
    assert f"open {FIRST}" in pve.check_output("cat /lib/modules/*/updates/dkms/nvidia.ko")


def test_source_of_somebody_else_that_is_broken_is_no_reason_to_stop(pve):
    pve.check_output("echo 'deb [trusted=yes] file:/nowhere ./' > /etc/apt/sources.list.d/broken.list")
    pve.check_output("apt-mark unhold libcuda1")
    assert play("proxmox").changed("pve") == 1
    assert packages(pve)["libcuda1"] == (FIRST, True)
    pve.check_output("rm /etc/apt/sources.list.d/broken.list")


# --- versions come and go --------------------------------------------------------------------------------------------


def test_empty_version_and_own_branch_keep_what_is_there(pve, ct):
    for wanted in ("", "580"):
        for group, name in (("proxmox", "pve"), ("sglang", "ct200")):
            assert play(group, nvidia_driver_version=wanted).changed(name) == 0
    assert versions(pve) == versions(ct) == {FIRST}


def test_upgrade_of_the_host_is_installed_and_waits_for_its_reboot(pve, ct):
    run = play("proxmox", "--check", "--diff", nvidia_driver_version=NEW)
    assert run.driver("pve")["packages"]["libcuda1"] == f"{NEW}-1"
    assert versions(pve) == {FIRST}
    run = play("proxmox", nvidia_driver_version=NEW)
    assert run.driver("pve")["reboot_reasons"] == [f"kernel module {FIRST} runs, {NEW} is installed"]
    assert "a reboot of pve is due" in run.said("pve")
    assert set(packages(pve).values()) == {(NEW, True)}
    again = play("proxmox", nvidia_driver_version=NEW)
    assert again.changed("pve") == 0
    assert "a reboot of pve is due" in again.said("pve")
    # The container's turn comes when the host's new module runs.
    before = packages(ct)
    assert f"bring the host to {NEW} first" in play("sglang", nvidia_driver_version=NEW).failure("ct200")
    unchanged(ct, before)


def test_reboot_that_is_allowed_brings_the_new_module_and_the_container_follows(pve, ct):
    play("proxmox", nvidia_driver_version=NEW, nvidia_driver_reboot="allow")
    assert NEW in pve.check_output("cat /var/lib/gpuserve-test/nvidia-version")
    assert play("sglang", nvidia_driver_version=NEW).changed("ct200") == 1
    assert set(packages(ct).values()) == {(NEW, True)}
    for group, name in (("proxmox", "pve"), ("sglang", "ct200")):
        assert play(group, nvidia_driver_version=NEW).changed(name) == 0


def test_downgrade_over_two_branches(pve, ct):
    run = play("all", nvidia_driver_version=OLD, nvidia_driver_reboot="allow")
    assert run.driver("ct200")["version"] == OLD
    for host in (pve, ct):
        assert set(packages(host).values()) == {(OLD, True)}


def test_branch_takes_its_newest_version(pve, ct):
    run = play("all", nvidia_driver_version="580", nvidia_driver_reboot="allow")
    assert run.driver("pve")["version"] == SECOND
    for host in (pve, ct):
        assert versions(host) == {SECOND}


def test_other_kernel_module_replaces_the_open_one(pve):
    run = play("proxmox", nvidia_driver_version="580", nvidia_driver_kernel_module="proprietary")
    assert run.driver("pve")["reboot_reasons"] == ["the open kernel module runs, the proprietary one is installed"]
    found = packages(pve)
    assert "nvidia-kernel-dkms" in found
    assert "nvidia-kernel-open-dkms" not in found
    play("proxmox", nvidia_driver_version="580")
    assert "nvidia-kernel-open-dkms" in packages(pve)
    assert versions(pve) == {SECOND}


# --- the ways out of a repository that dropped the host's version ----------------------------------------------------


def test_absent_leaves_nothing_in_the_container(ct):
    assert play("sglang", nvidia_driver_state="absent", nvidia_driver_version="").changed("ct200") == 1
    assert packages(ct) == {}
    left = ct.check_output("find /etc/apt /var/lib/gpuserve -name '*nvidia*'")
    assert left == ""
    assert play("sglang", nvidia_driver_state="absent", nvidia_driver_version="").changed("ct200") == 0


def test_version_that_the_repository_dropped_is_refused_with_the_ways_out(ct):
    newest = "file:///srv/driver/newest"
    message = play("sglang", nvidia_driver_version="", nvidia_driver_repository_url=newest).failure("ct200")
    assert f"NVIDIA's .run file of {SECOND}" in message
    assert f"bring the host to {NEW}" in message
    assert packages(ct) == {}
    assert not ct.file(SOURCES).exists


def test_runfile_of_another_checksum_or_version_is_refused(ct):
    runfile = {"nvidia_driver_version": "", "nvidia_driver_runfile": "/srv/driver/driver.run"}
    message = play("sglang", **runfile, nvidia_driver_runfile_checksum=f"sha256:{'0' * 64}").failure("ct200")
    assert "[runfile.checksum]" in message
    runfile["nvidia_driver_runfile"] = "/srv/driver/other.run"
    message = play("sglang", **runfile, nvidia_driver_runfile_checksum=checksum("other.run")).failure("ct200")
    assert "[runfile.version]" in message
    assert not ct.file("/usr/bin/nvidia-uninstall").exists


def checksum(name):
    return f"sha256:{hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest()}"


def test_runfile_takes_the_packages_place_and_gives_it_back(ct):
    runfile = {
        "nvidia_driver_version": "",
        "nvidia_driver_runfile": "/srv/driver/driver.run",
        "nvidia_driver_runfile_checksum": checksum("driver.run"),
    }
    library = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{SECOND}"
    assert play("sglang", "--check", **runfile).changed("ct200") == 1
    assert not ct.file(library).exists
    assert play("sglang", **runfile).changed("ct200") == 1
    assert ct.file(library).exists
    assert play("sglang", **runfile).changed("ct200") == 0
    assert play("sglang", nvidia_driver_version="").changed("ct200") == 1
    assert packages(ct)["libcuda1"] == (SECOND, True)
    assert not ct.file("/usr/bin/nvidia-uninstall").exists
    assert play("sglang", **runfile).changed("ct200") == 1
    assert packages(ct) == {}
    assert ct.file(library).exists
    assert play("sglang", nvidia_driver_state="absent", nvidia_driver_version="").changed("ct200") == 1
    assert not ct.file(library).exists


# --- Debian 13 -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trixie(tmp_path_factory):
    """A function that runs the role in a Debian 13, as in a container or as on a host."""
    root = f"{REPOSITORY}-trixie"
    host = {
        "ansible_host": root,
        "ansible_connection": "community.general.chroot",
        "ansible_python_interpreter": "/usr/bin/python3",
        "nvidia_driver_repository_url": "file:///srv/driver/repository",
        "nvidia_driver_version": FIRST,
        "nvidia_driver_running_file": "/var/lib/gpuserve-test/nvidia-version",
        "nvidia_driver_repository_suites": "./",
        "nvidia_driver_repository_key": (REPOSITORY / "key.asc").read_text(),
        # There is no systemd that could run it.
        "nvidia_driver_persistence": False,
    }
    inventory = tmp_path_factory.mktemp("trixie") / "inventory.json"
    inventory.write_text(json.dumps({"sglang": {"hosts": {"trixie": host}}}))
    return lambda **variables: play("sglang", inventory=inventory, **variables)


def test_debian_13_container(trixie):
    key = (REPOSITORY / "wrong.asc").read_text()
    run = trixie(nvidia_driver_scope="container", nvidia_driver_repository_key=key)
    assert "it is signed by the key" in run.failure("trixie")
    assert trixie(nvidia_driver_scope="container").changed("trixie") == 1
    run = trixie(nvidia_driver_scope="container")
    assert run.changed("trixie") == 0
    assert set(run.driver("trixie")["packages"]) == {
        "libcuda1",
        "libnvidia-ml1",
        "libnvidia-ptxjitcompiler1",
        f"nvidia-driver-pinning-{FIRST}",
    }


def test_debian_13_host(trixie):
    for version in (FIRST, NEW, OLD):
        run = trixie(nvidia_driver_scope="host", nvidia_driver_version=version)
        assert set(run.driver("trixie")["packages"].values()) == {f"{version}-1"}
        assert run.check("trixie", "kernel.module_built")["status"] == "pass"
        assert trixie(nvidia_driver_scope="host", nvidia_driver_version=version).changed("trixie") == 0
    run = trixie(nvidia_driver_scope="host", nvidia_driver_state="absent")
    assert run.driver("trixie")["packages"] == {}


# --- the end ---------------------------------------------------------------------------------------------------------


def test_gpu_in_use_is_not_taken_away(pve):
    pve.check_output(
        "mknod -m 666 /dev/nvidia7 c 1 3 && systemd-run --quiet --unit=holder sh -c 'exec sleep 300 < /dev/nvidia7'"
    )
    before = packages(pve)
    message = play("proxmox", nvidia_driver_state="absent").failure("pve")
    assert "[gpu.idle]" in message
    assert "(sleep)" in message
    unchanged(pve, before)
    pve.check_output("systemctl stop holder && rm /dev/nvidia7")


def test_absent_leaves_nothing_on_the_host(pve):
    assert play("proxmox", nvidia_driver_state="absent").changed("pve") == 1
    assert packages(pve) == {}
    assert pve.check_output("find /etc/apt /etc/modprobe.d /var/lib/gpuserve -name '*nvidia*'") == ""
