# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's packages brought to one version and kept there, or a sentence that says why not and what to do.

Nothing is changed before everything that can be known is known: apt has tried sources, key, pin and packages in a
workspace, and has downloaded them. A rerun that finds everything in place asks dpkg one question and apt none.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..checks import FAIL, Check, failing
from ..files import write_whole
from ..gpu import host
from . import apt, boot, dpkg, judge, kernel, runfile, sources, versions
from .judge import CONTAINER, HOST

# Which holds are ours: a hold that we did not place is the operator's word.
RECORD = Path("var/lib/gpuserve/nvidia-driver.json")


class DriverError(Exception):
    """Something failed that no check foresaw; the text says what."""


@dataclass(frozen=True)
class Request:
    """What is asked for. ``kernel_packages`` names the package of each flavour, ``options`` those of kernel modules."""

    absent: bool = False
    version: str = ""
    # host, container, or empty: as systemd says.
    scope: str = ""
    flavour: str = host.OPEN
    kernel_packages: Mapping[str, str] = field(default_factory=dict)
    host_packages: tuple[str, ...] = ()
    container_packages: tuple[str, ...] = ()
    repository: sources.Repository | None = None
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The persistence daemon's unit, empty if it is not wanted.
    persistence: str = ""
    runfile: runfile.Runfile | None = None
    running_file: Path = Path("/proc/driver/nvidia/version")
    # The version that a container's host will have brought about by then; for a look ahead, in check mode alone.
    coming: str = ""
    root: Path = Path("/")
    release: str = field(default_factory=lambda: os.uname().release)

    def resolved(self) -> Request:
        """With its scope decided."""
        return self if self.scope else replace(self, scope=CONTAINER if host.container(self.root) else HOST)

    @property
    def names(self) -> tuple[str, ...]:
        """The packages that are asked for by name; the first decides which version is kept."""
        if self.scope == CONTAINER:
            return self.container_packages
        return (self.kernel_packages[self.flavour], *self.host_packages)


@dataclass(frozen=True)
class File:
    """A file of ours: its text now and then, None for "not there"."""

    path: Path
    before: str | None
    after: str | None


@dataclass
class Outcome:
    """What was found and done. ``after`` maps names to Debian versions, as they are or, in check mode, would be."""

    scope: str
    running: host.Running
    version: str = ""
    checks: list[Check] = field(default_factory=list)
    changed: bool = False
    before: Mapping[str, dpkg.Package] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    files: list[File] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    reboot_reasons: list[str] = field(default_factory=list)
    # Whether the persistence daemon has to be enabled, or started.
    persistence_due: bool = False

    @property
    def refused(self) -> bool:
        return bool(failing(self.checks))

    @property
    def settled(self) -> bool:
        """Whether nothing was to do, and nothing is left to do."""
        return not (self.changed or self.refused or self.reboot_reasons or self.persistence_due)


@dataclass(frozen=True)
class Record:
    """What we did: the packages that we hold, where the key was fetched, and the modprobe file that ramdisks hold."""

    held: frozenset[str] = frozenset()
    key_url: str = ""
    ramdisks: str = ""

    @classmethod
    def load(cls, root: Path) -> Record:
        try:
            data = json.loads((root / RECORD).read_text(encoding="utf-8"))
            return cls(frozenset(map(str, data["held"])), str(data["key_url"]), str(data["ramdisks"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def save(self, root: Path) -> None:
        told = {"held": sorted(self.held), "key_url": self.key_url, "ramdisks": self.ramdisks}
        write_whole(root / RECORD, json.dumps(told, indent=1) + "\n")


def converge(asked: Request, check_mode: bool = False) -> Outcome:
    """Bring the machine to what ``asked`` says; in check mode only find out what that would be.

    Raises:
        DriverError: an installation broke off. What a check foresees is in the outcome's checks instead.
    """
    request = asked.resolved()
    running = host.running(request.running_file)
    if not check_mode or request.scope != CONTAINER or request.coming == running.version:
        request = replace(request, coming="")
    if request.coming:
        running = replace(running, version=request.coming)
    outcome = Outcome(request.scope, running, before=dpkg.members())
    try:
        if request.absent:
            _Absent(request, outcome).converge(check_mode)
        elif request.runfile is not None and request.scope == CONTAINER:
            _FromRunfile(request, outcome, request.runfile).converge(check_mode)
        else:
            _Present(request, outcome).converge(check_mode)
    except apt.AptError as error:
        raise DriverError(f"apt broke off: {error}") from error
    except runfile.RunfileError as error:
        raise DriverError(str(error)) from error
    if request.scope == HOST and not outcome.refused:
        _say_what_waits(request, outcome)
    return outcome


def _say_what_waits(request: Request, outcome: Outcome) -> None:
    options = {} if request.absent else request.options
    differing, unseen = kernel.differing_options(request.root, request.running_file, options)
    if not outcome.running.version:
        # Nothing is loaded yet, so that what will be loaded takes its options from the file.
        differing, unseen = {}, []
    outcome.reboot_reasons = judge.reboot_reasons(
        outcome.running, outcome.version, request.flavour, kernel.nouveau(request.root), differing
    )
    outcome.checks += judge.options(differing, unseen, options if outcome.running.version else {})
    if request.persistence and not request.absent:
        # It fails against a module of another version, so until a reboot that is due it need only be enabled.
        now = not outcome.reboot_reasons
        outcome.persistence_due = not boot.runs_at_boot_and_now(request.persistence, now)


def kept_version(packages: Mapping[str, dpkg.Package], running: host.Running, anchor: str) -> str:
    """The version that stays when none is asked for: the installed one, else the one that runs.

    Packages of several versions are a fault to repair: then the version that runs counts, if it is among them.
    """
    found = {package.driver for package in packages.values()}
    if len(found) == 1:
        return found.pop()
    if running.version in found or not found:
        return running.version
    return packages[anchor].driver if anchor in packages else max(found, key=versions.order)


class _Step:
    """What the three ways have in common."""

    def __init__(self, request: Request, outcome: Outcome) -> None:
        self.request, self.outcome = request, outcome
        self.record = Record.load(request.root)
        self.members = outcome.before

    @property
    def foreign(self) -> set[str]:
        """Members that somebody else holds."""
        return {
            package.name for package in self.members.values() if package.held and package.name not in self.record.held
        }

    def refuse_or(self, *checks: Check) -> bool:
        """Note the checks; whether one stops us."""
        self.outcome.checks += checks
        return any(check.status == FAIL for check in checks)

    def file(self, path: Path, after: str | None) -> None:
        """Note what a file of ours shall be."""
        target = self.request.root / path
        before = target.read_text(encoding="utf-8", errors="replace") if target.exists() else None
        if before != after:
            self.outcome.files.append(File(target, before, after))
            self.outcome.changed = True

    def write_files(self, first: int = 0) -> None:
        for file in self.outcome.files[first:]:
            if file.after is None:
                file.path.unlink(missing_ok=True)
                continue
            write_whole(file.path, file.after, mode=0o644)

    def make_ramdisks(self) -> None:
        command = boot.ramdisks_command()
        if command:
            _run(command)
            self.outcome.done.append("the initial ramdisks were made anew")

    def predict(self, changes: Sequence[apt.Change]) -> None:
        """What the driver's packages are after these changes."""
        after = {package.name: package.version for package in self.members.values()}
        for change in changes:
            after.pop(change.name, None)
            if change.after is not None and versions.is_member(change.name, change.after):
                after[change.name] = change.after
        self.outcome.after = after
        self.outcome.held = frozenset(after)
        if changes:
            self.outcome.changed = True

    def remove_members(self, space: apt.Workspace, check_mode: bool) -> bool:
        """Purge the whole set; false, with the reason among the checks, where that may not be."""
        held = [f"{name} {self.members[name].version}" for name in sorted(self.foreign)]
        words = [f"{name}-" for name in self.members]
        changes = space.simulate(words) if words else []
        checks = judge.plan(changes, version="", scope=HOST, asked=(), members=self.members, foreign=self.foreign)
        if self.refuse_or(*judge.removable(held), *checks):
            return False
        self.predict(changes)
        if words and not check_mode:
            space.install(words, [])
        leftovers = dpkg.pinning_leftovers()
        if leftovers and not check_mode:
            _run(["dpkg", "--purge", *leftovers])
        self.outcome.changed = self.outcome.changed or bool(leftovers)
        return True


class _Present(_Step):
    """The set at one version, from packages."""

    # Whether the lists of all sources were fetched, and not of the driver's alone.
    refreshed = False

    def converge(self, check_mode: bool) -> None:
        request, outcome = self.request, self.outcome
        kept = self._kept()
        coming = bool(request.coming)
        checks = [judge.wanted(request.version, request.scope, outcome.running, kept, coming)]
        if request.scope == CONTAINER and checks[0].status != FAIL:
            checks.append(judge.host_match(request.version, outcome.running, coming))
        if self.refuse_or(*checks):
            return
        # A branch without an installed version of it is resolved once it is known what apt offers.
        outcome.version = kept
        if kept and self._settled():
            outcome.after = {package.name: package.version for package in self.members.values()}
            outcome.held = frozenset(self.members)
            self._finish_host(check_mode)
            return
        uninstaller = runfile.uninstaller(request.root)
        if request.scope == HOST and self.refuse_or(*self._host_checks(uninstaller)):
            return
        self._repair(check_mode)
        names = [str(request.root / sources.SOURCES)]
        pins = [str(request.root / sources.PREFERENCES), *dpkg.pinning_files()]
        with apt.workspace(names, pins) as space:
            words = self._plan(space, check_mode)
            if words is None:
                return
            if uninstaller:
                outcome.changed = True
                outcome.done.append("the installation from a .run file was removed")
            pending = outcome.changed and check_mode
            if outcome.changed and not check_mode:
                if uninstaller:
                    runfile.uninstall()
                self._act(space, words)
        self._finish_host(check_mode, pending)

    def _kept(self) -> str:
        """The version to bring everything to, as far as it is known without apt."""
        request, running = self.request, self.outcome.running
        if request.scope == CONTAINER:
            return running.version
        if versions.exact(request.version):
            return request.version
        kept = kept_version(self.members, running, request.names[0])
        return kept if not request.version or versions.fits(kept, request.version) else ""

    def _settled(self) -> bool:
        """Whether everything is in place. The cheap question that a rerun ends with."""
        request, version, members = self.request, self.outcome.version, self.members
        if set(request.names) - set(members) or runfile.uninstaller(request.root):
            return False
        if any(package.driver != version or not package.held or not package.whole for package in members.values()):
            return False
        if any(self._unwanted(name) for name in members):
            return False
        # A kernel that was booted since has no module yet: its headers may have to be installed.
        built = request.scope == CONTAINER or kernel.has_module(request.root, request.release)
        return built and not self._own_files_differ()

    def _own_files_differ(self) -> bool:
        root, repository = self.request.root, self.request.repository
        texts: list[tuple[Path, str | None]] = [(sources.SOURCES, None)]
        if repository is not None:
            keyring = next((path for path in sources.keyrings() if (root / path).exists()), None)
            if repository.key_url and (keyring is None or self.record.key_url != repository.key_url):
                return True
            texts = [(sources.SOURCES, repository.sources(f"/{keyring}"))]
        if f"{versions.PINNING}{self.outcome.version}" not in self.members:
            texts.append((sources.PREFERENCES, sources.preferences(self.outcome.version)))
        return any(kernel.read_or_none(root / path) != text for path, text in texts)

    def _unwanted(self, name: str) -> bool:
        """A member that must go: the other flavour on a host, everything about kernels in a container."""
        request = self.request
        if request.scope == CONTAINER:
            return versions.named_like(name, versions.KERNEL_PATTERNS)
        return name in request.kernel_packages.values() and name != request.kernel_packages[request.flavour]

    def _host_checks(self, uninstaller: str) -> list[Check]:
        """What the machine itself must be fit for."""
        request, root = self.request, self.request.root
        version = self.outcome.version or f"{request.version}.0"
        enrolled = kernel.key_enrolled(root)
        return [
            *judge.gpus(kernel.gpu_ids(root), request.flavour, version),
            judge.secure_boot(kernel.secure_boot(root), enrolled, self.outcome.running),
            judge.runfile_beside(uninstaller),
        ]

    def _repair(self, check_mode: bool) -> None:
        """Finish what an interrupted dpkg left: apt refuses everything before that."""
        interrupted = any(not package.whole for package in self.members.values())
        if interrupted or any((self.request.root / "var/lib/dpkg/updates").glob("*")):
            self.outcome.done.append("an interrupted installation was finished")
            self.outcome.changed = True
            if not check_mode:
                _run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"])
                self.members = dpkg.members()

    def _plan(self, space: apt.Workspace, check_mode: bool) -> list[str] | None:
        """The words for apt, proven by simulation and, outside of check mode, downloaded. None when it is refused."""
        if not self._lay_sources(space):
            return None
        noted = len(self.outcome.checks)
        others: apt.AptError | None = None
        for refreshed in (False, True):
            del self.outcome.checks[noted:]
            if refreshed:
                try:
                    space.update(own_alone=False)
                except apt.AptError as error:
                    others = error
                self.outcome.checks += judge.other_repositories(others)
            words, curable = self._try(space, check_mode)
            # Lists that are old, or were never fetched, are refreshed before they count as an answer.
            if curable is None or refreshed:
                break
        self.refreshed = refreshed
        return words

    def _lay_sources(self, space: apt.Workspace) -> bool:
        """Put the repository into the workspace and ask it; false when it does not answer."""
        repository, root = self.request.repository, self.request.root
        if repository is None:
            self.file(sources.SOURCES, None)
            return True
        trial = keyring = ""
        if repository.key_url:
            present = next((path for path in sources.keyrings() if (root / path).exists()), None)
            if present is not None and self.record.key_url == repository.key_url:
                trial = keyring = f"/{present}"
            else:
                try:
                    key = sources.fetch_key(repository.key_url)
                except sources.KeyFetchError as error:
                    return not self.refuse_or(judge.key(repository.key_url, str(error)))
                path = sources.keyring(key)
                (space.keys / path.name).write_bytes(key)
                trial, keyring = str(space.keys / path.name), f"/{path}"
        for folder in (space.own, space.sources):
            (folder / sources.SOURCES.name).write_text(repository.sources(trial), encoding="utf-8")
        failed: apt.AptError | None = None
        try:
            space.update(own_alone=True)
        except apt.AptError as error:
            failed = error
        self.file(sources.SOURCES, repository.sources(keyring))
        return not self.refuse_or(judge.repository(repository.url, failed))

    def _try(self, space: apt.Workspace, check_mode: bool) -> tuple[list[str] | None, str | None]:
        """One attempt at a plan: the words, and what keeps it from being one that fresh lists might cure."""
        request, outcome = self.request, self.outcome
        wanted = outcome.version or request.version
        others = [name for name in self.members if name not in request.names]
        every = space.offered([*request.names, *others])
        available = {name: {versions.upstream(one) for one in found} for name, found in every.items()}
        check = judge.offered(wanted, request.names, available, request.scope)
        if self.refuse_or(check):
            return None, check.actual if request.repository is None else None
        if not outcome.version:
            everywhere = set.intersection(*(available[name] for name in request.names))
            fitting = [version for version in everywhere if versions.fits(version, wanted)]
            outcome.version = max(fitting, key=versions.order)
        (space.preferences / sources.PREFERENCES.name).write_text(
            sources.preferences(outcome.version), encoding="utf-8"
        )
        if self.refuse_or(judge.foreign_holds(self.members, self.record.held, outcome.version)):
            return None, None
        words = self._words(every, space)
        if request.scope == HOST:
            package, check = self._headers(space)
            words += [package] if package else []
            if self.refuse_or(check):
                return None, check.actual
        try:
            changes = space.simulate(words)
        except apt.AptError as error:
            self.refuse_or(judge.resolves(error))
            return None, str(error)
        checks = judge.plan(
            changes,
            version=outcome.version,
            scope=request.scope,
            asked=request.names,
            members=self.members,
            foreign=self.foreign | self._other_holds(changes),
        )
        if self.refuse_or(judge.resolves(None), *checks):
            return None, None
        if changes and not check_mode:
            try:
                space.install(words, ["--download-only"])
            except apt.AptError as error:
                self.refuse_or(judge.downloads(error))
                return None, str(error)
        self.predict(changes)
        pinned = f"{versions.PINNING}{outcome.version}" in outcome.after
        self.file(sources.PREFERENCES, None if pinned else sources.preferences(outcome.version))
        outcome.changed = outcome.changed or any(not package.held for package in self.members.values())
        return words, None

    def _words(self, offered: Mapping[str, Sequence[str]], space: apt.Workspace) -> list[str]:
        """What apt is told: the asked-for packages, those of the set that are there already, and what must go."""
        version = self.outcome.version
        pin = f"{versions.PINNING}{version}"
        pins = space.offered([pin])

        def at(name: str, found: Mapping[str, Sequence[str]]) -> str | None:
            return next((f"{name}={one}" for one in found.get(name, ()) if versions.upstream(one) == version), None)

        words = [word for name in self.request.names if (word := at(name, offered))]
        pin_word = at(pin, pins)
        words += [pin_word] if pin_word else []
        for name, package in self.members.items():
            if name in self.request.names or name == pin:
                continue
            superseded = pin_word is not None and name.startswith(versions.PINNING)
            word = None if superseded or self._unwanted(name) else at(name, offered)
            if word is None:
                words.append(f"{name}-")
            elif package.driver != version:
                words.append(word)
        return words

    def _headers(self, space: apt.Workspace) -> tuple[str, Check]:
        """The package with the running kernel's headers, empty when they are there, and whether that is enough."""
        release = self.request.release
        present = kernel.has_headers(self.request.root, release)
        names = [f"{prefix}-headers-{release}" for prefix in ("proxmox", "pve", "linux")]
        offered = {} if present else space.offered(names)
        package = next((name for name in names if name in offered), "")
        return package, judge.headers(release, present, package, names)

    def _other_holds(self, changes: Sequence[apt.Change]) -> set[str]:
        """Held packages among the changes that are not of the set."""
        names = [change.name for change in changes if change.name not in self.members]
        return {name for name, package in dpkg.installed(names).items() if package.held} if names else set()

    def _act(self, space: apt.Workspace, words: Sequence[str]) -> None:
        root, repository = self.request.root, self.request.repository
        space.adopt_lists(self.refreshed)
        for key in space.keys.iterdir():
            for path in sources.keyrings():
                (root / path).unlink(missing_ok=True)
            (root / sources.KEYRINGS).mkdir(parents=True, exist_ok=True)
            target = root / sources.KEYRINGS / key.name
            target.write_bytes(key.read_bytes())
            target.chmod(0o644)
        self.write_files()
        space.install(words, [])
        leftovers = dpkg.pinning_leftovers()
        if leftovers:
            _run(["dpkg", "--purge", *leftovers])
        members = dpkg.members()
        missing = sorted(name for name, package in members.items() if not package.held)
        if missing:
            _run(["apt-mark", "hold", *missing])
        # What the operator held stays the operator's.
        held = frozenset(members) - self.foreign
        key_url = repository.key_url if repository else ""
        self.record = replace(self.record, held=held, key_url=key_url)
        self.record.save(root)
        self.outcome.after = {name: package.version for name, package in members.items()}
        self.outcome.held = frozenset(members)

    def _finish_host(self, check_mode: bool, pending: bool = False) -> None:
        """Hold a host's module options and look at what DKMS built; with ``pending`` that is not done yet."""
        if self.request.scope != HOST:
            return
        noted = len(self.outcome.files)
        text = boot.modprobe(self.request.options)
        self.file(boot.MODPROBE, text)
        # A file that somebody else wrote may be in the ramdisks by now, too.
        if self.record.ramdisks != text or len(self.outcome.files) > noted:
            self.outcome.changed = True
            if not check_mode:
                replace(self.record, ramdisks="").save(self.request.root)
                self.write_files(noted)
                self.make_ramdisks()
                replace(self.record, ramdisks=text).save(self.request.root)
        if not pending:
            self.refuse_or(*self._built())

    def _built(self) -> list[Check]:
        root, release = self.request.root, self.request.release
        others = [name for name in kernel.other_kernels(root, release) if not kernel.has_module(root, name)]
        return judge.built(release, self.outcome.version, kernel.has_module(root, release), others)


class _FromRunfile(_Step):
    """A container's libraries from a .run file."""

    def __init__(self, request: Request, outcome: Outcome, file: runfile.Runfile) -> None:
        super().__init__(request, outcome)
        self.runfile = file

    def converge(self, check_mode: bool) -> None:
        request, outcome = self.request, self.outcome
        version = outcome.version = outcome.running.version
        coming = bool(request.coming)
        checks = [judge.wanted(request.version, CONTAINER, outcome.running, version, coming)]
        if checks[0].status != FAIL:
            checks.append(judge.host_match(request.version, outcome.running, coming))
        if self.refuse_or(*checks):
            return
        found = runfile.installed(request.root)
        if found and set(found.values()) == {version} and not self.members:
            return
        if self.refuse_or(*runfile.judge(self.runfile, version)):
            return
        outcome.changed = True
        outcome.done.append(f"the libraries of {version} were installed from {self.runfile.path}")
        with apt.workspace([], []) as space:
            if not self.remove_members(space, check_mode) or check_mode:
                return
        if runfile.uninstaller(request.root):
            runfile.uninstall()
        runfile.install(self.runfile)
        self.refuse_or(judge.libraries(version, runfile.installed(request.root)))


class _Absent(_Step):
    """Nothing of the driver, and nothing of ours."""

    def converge(self, check_mode: bool) -> None:
        request, outcome = self.request, self.outcome
        uninstaller = runfile.uninstaller(request.root)
        if (self.members or uninstaller) and self.refuse_or(judge.in_use(kernel.users(request.root))):
            return
        if request.scope == HOST and self.refuse_or(judge.runfile_beside(uninstaller)):
            return
        for path in (sources.SOURCES, sources.PREFERENCES, *sources.keyrings(), boot.MODPROBE, RECORD):
            self.file(path, None)
        if self.members or dpkg.pinning_leftovers():
            with apt.workspace([], []) as space:
                if not self.remove_members(space, check_mode):
                    return
        if uninstaller:
            outcome.changed = True
            outcome.done.append("the installation from a .run file was removed")
        if not check_mode:
            if uninstaller:
                runfile.uninstall()
            self.write_files()
            if any(file.path.name == boot.MODPROBE.name for file in outcome.files):
                self.make_ramdisks()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise DriverError(
            f"{' '.join(command)} ended with {done.returncode}: {apt.complaint(done.stdout, done.stderr)}"
        )
