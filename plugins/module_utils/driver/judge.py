# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules: what must hold before a driver is touched, each judged from facts that others gathered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..checks import FAIL, PASS, SKIPPED, WARN, Check
from ..gpu import host
from . import kernel, versions
from .apt import AptError, Change
from .dpkg import Package

# CUDA 12.8 release notes, table 3: the first to know Blackwell is R570.
BLACKWELL_BRANCH = 570
HOST = "host"
CONTAINER = "container"


def wanted(asked: str, scope: str, running: host.Running, kept: str, coming: bool = False) -> Check:
    """Whether there is a version to bring the packages to. ``kept`` is the one that stays when none is asked for.

    With ``coming``, ``running`` is what the host will have brought about by then.
    """
    name = "driver.version"
    if asked and not versions.well_formed(asked):
        expected = "a version (580.95.05) or a branch (580)"
        return Check(name, FAIL, expected, asked, "set nvidia_driver_version to one of these forms, or leave it empty")
    if scope == CONTAINER:
        expected = "an NVIDIA kernel module that runs on the container's host"
        if not running.version:
            fix = "install the driver on the host first (role nvidia_driver there), reboot it if due, and run again"
            return Check(name, FAIL, expected, "none", fix)
        return Check(
            name, PASS, expected, f"{running.version}, once the host was brought to it" if coming else running.version
        )
    expected = "a version in nvidia_driver_version, or a driver that is here already"
    if not asked and not kept:
        fix = "set nvidia_driver_version to the version that host and containers shall have"
        return Check(name, FAIL, expected, "neither", fix)
    return Check(name, PASS, expected, asked or kept)


def host_match(asked: str, running: host.Running, coming: bool = False) -> Check:
    """A container's libraries must be of the version of the module that runs; with ``coming``, that will run."""
    told = "that the host is asked to have" if coming else "as the host's kernel module that runs"
    expected = f"nvidia_driver_version {running.version}, {told}"
    source = "NVIDIA driver: user space and kernel module refuse each other across versions (NVML error 18)"
    if asked and not versions.fits(running.version, asked):
        fix = f"bring the host to {asked} first and reboot it, or leave nvidia_driver_version empty here"
        if coming:
            fix = "set nvidia_driver_version once, for host and containers, or leave it empty here"
        return Check("driver.host_match", FAIL, expected, asked, fix, source)
    return Check("driver.host_match", PASS, expected, asked or "empty, so the host's", source=source)


def gpus(ids: Mapping[str, int], flavour: str, version: str) -> list[Check]:
    """Whether this flavour and version of the kernel module know the GPUs on the bus."""
    source = "NVIDIA driver README, Open Linux Kernel Modules: Turing is their first, Blackwell has no others"
    expected = f"GPUs that the {flavour} kernel modules drive"
    if not ids:
        reason = "no NVIDIA GPU is on the bus"
        return [Check("gpu.kernel_module", SKIPPED, expected, reason, source=source)]
    told = ", ".join(f"{address} (id {number:04x})" for address, number in sorted(ids.items()))
    checks = [Check("gpu.kernel_module", PASS, expected, told, source=source)]
    newest, oldest = max(ids.values()), min(ids.values())
    if flavour == host.PROPRIETARY and newest >= kernel.FIRST_BLACKWELL:
        fix = "set nvidia_driver_kernel_module to open: the proprietary modules do not drive Blackwell"
        checks = [Check("gpu.kernel_module", FAIL, expected, told, fix, source)]
    elif flavour == host.OPEN and oldest < kernel.FIRST_TURING:
        fix = "set nvidia_driver_kernel_module to proprietary: the open modules begin with Turing"
        checks = [Check("gpu.kernel_module", FAIL, expected, told, fix, source)]
    if newest >= kernel.FIRST_BLACKWELL:
        expected, source = f"a driver of branch {BLACKWELL_BRANCH} or newer for Blackwell", "CUDA 12.8 release notes"
        if int(versions.branch(version)) < BLACKWELL_BRANCH:
            fix = f"set nvidia_driver_version to a version of branch {BLACKWELL_BRANCH} or newer"
            checks.append(Check("gpu.branch", FAIL, expected, version, fix, source))
        else:
            checks.append(Check("gpu.branch", PASS, expected, version, source=source))
    return checks


def secure_boot(on: bool, enrolled: bool, running: host.Running) -> Check:
    """Whether the kernel will load what DKMS builds."""
    name, expected = "kernel.secure_boot", "Secure Boot off, or DKMS's signing key enrolled"
    source = "dkms(8), SIGNING; UEFI 2.10, section 32"
    if not on:
        return Check(name, PASS, expected, "off", source=source)
    if enrolled:
        return Check(name, PASS, expected, "on, and /var/lib/dkms/mok.pub is enrolled", source=source)
    found = "on, and /var/lib/dkms/mok.pub is not among the enrolled keys"
    fix = (
        "install dkms and mokutil, run `dkms generate_mok` and `mokutil --import /var/lib/dkms/mok.pub`, reboot and"
        " enroll the key at the console (or switch Secure Boot off there): the kernel refuses the module otherwise"
    )
    if running.version:
        # Whatever signed the module that runs, it is trusted: said, but no reason to stop.
        return Check(name, WARN, expected, f"{found}, yet {running.version} runs", fix, source)
    return Check(name, FAIL, expected, found, fix, source)


def headers(release: str, present: bool, package: str, looked_for: Sequence[str]) -> Check:
    """Whether DKMS can build for the kernel that runs. ``package`` is the one that brings its headers."""
    name, expected = "kernel.headers", f"headers of the running kernel {release}"
    if present:
        return Check(name, PASS, expected, f"/lib/modules/{release}/build")
    if package:
        return Check(name, PASS, expected, f"package {package}, to be installed")
    fix = "reboot into a kernel whose headers the repositories still have, or add the repository that has these"
    return Check(name, FAIL, expected, f"none of {', '.join(looked_for)} is offered", fix, "dkms(8)")


def repository(url: str, error: AptError | None) -> Check:
    """Whether the driver's repository answers, and is signed by the key that was given."""
    name, expected = "repository.answers", f"{url} answers, signed by nvidia_driver_repository_key"
    if error is None:
        return Check(name, PASS, expected, "it does")
    if error.about_other_sources:
        fix = "leave nvidia_driver_repository_url empty to use the one that is configured already, or remove that file"
    elif error.about_key:
        fix = "give nvidia_driver_repository_key the key that this repository is signed with"
        if error.missing_key:
            return Check(name, FAIL, expected, f"it is signed by the key {error.missing_key}", fix, "apt-get update")
    else:
        fix = "set nvidia_driver_repository_url to a repository that this host reaches"
    return Check(name, FAIL, expected, str(error), fix, "apt-get update")


def other_repositories(error: AptError | None) -> list[Check]:
    """The machine's other sources: not ours to repair, but packages may be missing because of them."""
    if error is None:
        return []
    fix = "repair or disable that source (Proxmox's enterprise repository needs a subscription)"
    return [Check("repository.others", WARN, "every other source answers", str(error), fix, "apt-get update")]


def offered(wanted_version: str, names: Sequence[str], available: Mapping[str, Collection[str]], scope: str) -> Check:
    """Whether every asked-for package is to be had in the wanted version, or branch.

    ``available`` has the offered driver versions by package.
    """
    name, expected = "driver.offered", f"{', '.join(names)} in version {wanted_version}"
    missing = [
        package
        for package in names
        if not any(versions.fits(version, wanted_version) for version in available.get(package, ()))
    ]
    if not missing:
        return Check(name, PASS, expected, "offered")
    everywhere = set.intersection(*(set(available.get(package, ())) for package in names))
    told = ", ".join(sorted(everywhere, key=versions.order)) or "no version of all of them"
    unknown = [package for package in missing if package not in available]
    found = f"apt offers {told}" + (f"; it knows no {', '.join(unknown)}" if unknown else "")
    if scope == CONTAINER:
        near = nearest(wanted_version, everywhere)
        fix = f"give the container NVIDIA's .run file of {wanted_version} (nvidia_driver_runfile with its checksum)"
        fix += f", or bring the host to {near} (nvidia_driver_version there) and reboot it" if near else ""
    else:
        fix = f"set nvidia_driver_version to a version that apt offers ({told}), or name a mirror that has this one"
    return Check(name, FAIL, expected, found, fix)


def nearest(version: str, candidates: Collection[str]) -> str:
    """The next newer version, of the same branch if there is one; else the newest; empty without candidates."""
    ordered = sorted(candidates, key=versions.order)
    newer = [one for one in ordered if versions.order(one) > versions.order(version)]
    return (newer or ordered[-1:] or [""])[0]


def foreign_holds(packages: Mapping[str, Package], ours: Collection[str], version: str) -> Check:
    """Holds that the operator placed are respected: the packages stay, so they must be right already."""
    name, expected = "holds.foreign", f"no package that somebody else holds at another version than {version}"
    wrong = [
        f"{package.name} {package.version}"
        for package in packages.values()
        if package.held and package.name not in ours and package.driver != version
    ]
    if not wrong:
        return Check(name, PASS, expected, "none")
    names = " ".join(entry.split(" ")[0] for entry in wrong)
    return Check(name, FAIL, expected, ", ".join(wrong), f"release them if they may change: apt-mark unhold {names}")


def runfile_beside(uninstaller: str) -> Check:
    """On a host the packages cannot share the machine with an installation from a .run file."""
    name, expected = "driver.one_origin", "a driver that no .run file installed"
    if not uninstaller:
        return Check(name, PASS, expected, "none")
    fix = f"run `{uninstaller} --silent`, or leave that driver alone with nvidia_driver_state: unmanaged and its reason"
    return Check(name, FAIL, expected, f"{uninstaller}, which came with no package", fix)


def resolves(error: AptError | None) -> Check:
    """Whether apt finds a way at all."""
    name, expected = "plan.resolves", "apt finds a way to these packages"
    if error is None:
        return Check(name, PASS, expected, "it does")
    fix = "resolve with apt what it names, or take out of the role's package list what asks for it"
    return Check(name, FAIL, expected, str(error), fix, "apt-get --simulate install")


def plan(
    changes: Sequence[Change],
    *,
    version: str,
    scope: str,
    asked: Sequence[str],
    members: Mapping[str, Package],
    foreign: Collection[str],
) -> list[Check]:
    """What apt would do, judged. ``foreign`` are held packages that we do not hold."""
    floating = [
        f"{change.name} {change.after}"
        for change in changes
        if change.after and versions.is_member(change.name, change.after) and versions.upstream(change.after) != version
    ]
    gone = [change.name for change in changes if change.after is None and change.name not in members]
    held = [change.name for change in changes if change.name in foreign]
    checks = [
        _verdict(
            "plan.one_version",
            f"every package of the driver in version {version}",
            floating,
            f"take what depends on them out of the role's package list ({', '.join(asked)})",
        ),
        _verdict(
            "plan.removes",
            "no package goes that is not the driver's",
            gone,
            "remove them yourself if they may go, or take out of the role's package list what conflicts with them",
        ),
        _verdict(
            "plan.holds",
            "no package changes that somebody else holds",
            held,
            f"release them if they may change: apt-mark unhold {' '.join(held)}",
        ),
    ]
    if scope == CONTAINER:
        kernels = [
            f"{change.name} {change.after}"
            for change in changes
            if change.after and versions.named_like(change.name, versions.KERNEL_PATTERNS)
        ]
        checks.append(
            _verdict(
                "plan.user_space_only",
                "no kernel module and nothing to build one: the kernel is the host's",
                kernels,
                f"take out of nvidia_driver_container_packages ({', '.join(asked)}) what depends on them",
            )
        )
    return checks


def _verdict(name: str, expected: str, wrong: Sequence[str], fix: str) -> Check:
    source = "apt-get --simulate install"
    if wrong:
        return Check(name, FAIL, expected, ", ".join(wrong), fix, source)
    return Check(name, PASS, expected, "so it is", source=source)


def downloads(error: AptError) -> Check:
    """Whether apt could fetch what it would install."""
    fix = "see whether the repository still has these files (its lists may be older than its pool), and run again"
    return Check("plan.downloads", FAIL, "apt can fetch these packages", str(error), fix, "apt-get --download-only")


def key(url: str, error: str) -> Check:
    """The repository's key could not be had."""
    fix = "give nvidia_driver_repository_key an https address that answers, a path on this host, or the key's text"
    return Check("repository.key", FAIL, f"the repository's key at {url}", error, fix)


def removable(held: Sequence[str]) -> list[Check]:
    """Whether the whole set may go: what somebody else holds stays."""
    if not held:
        return []
    names = " ".join(entry.partition(" ")[0] for entry in held)
    fix = f"release them if they may go: apt-mark unhold {names}"
    return [Check("holds.foreign", FAIL, "no package that somebody else holds", ", ".join(held), fix)]


def libraries(version: str, found: Mapping[str, str]) -> Check:
    """After a .run file: whether its libraries are there."""
    name, expected = "runfile.libraries", f"libcuda and libnvidia-ml of {version}"
    told = ", ".join(f"{path}" for path in sorted(found)) or "none"
    if found and set(found.values()) == {version}:
        return Check(name, PASS, expected, told)
    return Check(name, FAIL, expected, told, "read /var/log/nvidia-installer.log")


def options(differing: Mapping[str, str], unseen: Sequence[str], asked: Mapping[str, Mapping[str, str]]) -> list[Check]:
    """The options of the loaded modules against those asked for; ``asked`` is empty when none is loaded."""
    checks = []
    for module, wanted_options in sorted(asked.items()):
        for option, value in sorted(wanted_options.items()):
            name, expected = f"{module}.{option}", f"{module} {option}={value} in effect"
            if name in unseen:
                reason = "the kernel does not show it (the module is not loaded, or keeps the option to itself)"
                checks.append(Check("module.option", SKIPPED, expected, reason))
            elif name in differing:
                fix = "reboot the host: a loaded module keeps its options"
                checks.append(Check("module.option", WARN, expected, differing[name], fix))
            else:
                checks.append(Check("module.option", PASS, expected, "so it is"))
    return checks


def built(release: str, version: str, present: bool, others_without: Sequence[str]) -> list[Check]:
    """After an installation: whether DKMS left a module for the kernel that runs, and for those that may boot next."""
    source = "dkms(8): it skips a kernel without headers in silence"
    name, expected = "kernel.module_built", f"a module of {version} for kernel {release}"
    if present:
        checks = [Check(name, PASS, expected, "built", source=source)]
    else:
        fix = f"see why in /var/lib/dkms/nvidia/{version}/build/make.log, and run `dkms autoinstall`"
        checks = [Check(name, FAIL, expected, "none under /lib/modules", fix, source)]
    if others_without:
        names = ", ".join(others_without)
        fix = f"install their headers, or remove them: the driver is gone after a boot into {names}"
        checks.append(
            Check("kernel.next_boot", WARN, "a module for every installed kernel", f"none for {names}", fix, source)
        )
    return checks


def in_use(users: Mapping[int, str]) -> Check:
    """Nothing is taken away under a workload."""
    name, expected = "gpu.idle", "no process that holds a GPU"
    if not users:
        return Check(name, PASS, expected, "none")
    told = ", ".join(f"{process} ({name})" for process, name in sorted(users.items()))
    return Check(name, FAIL, expected, told, "stop these processes, or the containers that they run in")


def reboot_reasons(
    running: host.Running, version: str, flavour: str, nouveau: bool, differing: Mapping[str, str]
) -> list[str]:
    """Why the machine has to be rebooted before what is installed takes effect; empty when it has not."""
    reasons = []
    if running.version and running.version != version:
        reasons.append(f"kernel module {running.version} runs, {version or 'no driver'} is installed")
    elif running.version and running.flavour != flavour:
        reasons.append(f"the {running.flavour} kernel module runs, the {flavour} one is installed")
    if nouveau:
        reasons.append("nouveau holds the GPUs")
    reasons += [f"module option {name} is {effective} now" for name, effective in sorted(differing.items())]
    return reasons
