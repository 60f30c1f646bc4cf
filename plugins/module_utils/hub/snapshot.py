# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's files in a folder: planned (what is there, what is missing, from where), then brought.

What has to be brought is staged beside the files and takes their place when all of it is proved. Until then a folder
keeps what it held; a killed run leaves either that, or all files and no manifest, which the next run proves without
bringing them again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.gpuserve.sglang.plugins.module_utils.hub import (
    digest,
    fetch,
    manifest,
    repository,
    space,
    transfer,
    trouble,
)
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.lock import Lock
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.repository import Entry
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.transfer import Progress, Report
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.trouble import SnapshotError

SIZE, SHA256, NONE = "size", "sha256", "none"
# What huggingface_hub keeps beside the files when it is told to download into a folder.
_FOREIGN = Path(".cache") / "huggingface"
_STAGING = "staging"


@dataclass(frozen=True)
class Request:
    """Which model belongs where, and where its files come from.

    From ``repo_id`` at ``revision``; or out of the folder ``source``; or, with both, the repository's files out of that
    folder. ``seed`` is another host's copy of the repository. ``verify`` tells how closely files that are there are
    looked at: by size and time of change, by SHA-256, or not at all. Times in seconds.
    """

    dest: Path
    repo_id: str | None = None
    revision: str | None = None
    source: Path | None = None
    seed: fetch.Seed | None = None
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    verify: str = SIZE
    prune: bool = False
    python: str | None = None
    xet: bool = True
    max_workers: int = 8
    timeout: float = 30.0
    stall_timeout: float = 60.0
    reserve_bytes: int = 1 << 30

    @property
    def origin(self) -> str:
        """Where the files come from, as the manifest names it."""
        return self.repo_id if self.repo_id is not None else str(self.source)

    @property
    def work(self) -> Path:
        """Our folder beside the files."""
        return self.dest / manifest.WORK

    @property
    def staging(self) -> Path:
        return self.work / _STAGING


@dataclass(frozen=True)
class Plan:
    """What is to do. ``location`` is where the model can be read now: a folder, or ``repository@commit``.

    ``answered`` tells that the manifest in ``dest`` is that of the wanted files. ``proved`` holds the SHA-256 of those
    that are there and right, ``missing`` those to bring, ``unproven`` those there with the right size and still to be
    hashed; ``others`` belongs to another revision or to nobody.
    """

    entries: tuple[Entry, ...]
    commit: str | None
    location: str
    answered: bool
    proved: Mapping[str, str]
    missing: tuple[Entry, ...]
    unproven: tuple[Entry, ...]
    others: tuple[str, ...]
    # Of missing, in bytes, less what is staged.
    missing_bytes: int
    # Whether others shall go.
    prune: bool
    # The manifest that this was planned under.
    known: manifest.Manifest | None = None

    @property
    def changes(self) -> bool:
        """Whether anything has to change, as far as is known before the unproven files are hashed."""
        return not self.answered or bool(self.missing) or (self.prune and bool(self.others))

    @property
    def in_place(self) -> bool:
        """Whether ``dest`` holds the model, whole and under its manifest."""
        return not self.changes and not self.unproven


def plan(request: Request) -> Plan:
    """Find out what is there and what is not, and change nothing.

    A folder whose manifest answers the request is believed without asking the Hub: after a reboot a model must not
    depend on a network. A branch is asked for only while there is no manifest of the repository; after that its commit
    stays, whatever else is asked for.

    Raises:
        SnapshotError: the source is not a model's folder, or does not hold what is wanted.
        repository.HubError: the Hub did not answer the question.
    """
    known = manifest.read(request.dest)
    if known is not None and _answers(known, request) and not _source_moved_on(request, known):
        return _under_manifest(request, known)
    listed = _listing(request, known)
    entries = repository.chosen(listed.entries, request.allow, request.ignore)
    if not entries:
        raise SnapshotError(f"{request.origin} has no file that the patterns choose", "correct allow_patterns")
    proved = {}
    if known is not None:
        look = manifest.look(request.dest, known.entries)
        fine = known.entries.keys() - set(look.damaged) - set(look.touched)
        proved = {
            entry.path: known.entries[entry.path].sha256
            for entry in entries
            if entry.path in fine and entry.sha256 == known.entries[entry.path].sha256
        }
    there = [entry for entry in entries if entry.path not in proved and _size(request.dest / entry.path) == entry.size]
    # A source that names no hashes proves nothing about a file that lies there.
    unproven = tuple(entry for entry in there if entry.is_named)
    have = proved.keys() | {entry.path for entry in unproven}
    missing = tuple(entry for entry in entries if entry.path not in have)
    return Plan(
        entries,
        listed.commit,
        listed.location,
        answered=False,
        proved=proved,
        missing=missing,
        unproven=unproven,
        others=others(request.dest, (entry.path for entry in entries)),
        missing_bytes=_missing_bytes(request, missing),
        prune=request.prune,
        known=known,
    )


def moved_on(request: Request, planned: Plan) -> bool:
    """Whether the folder's manifest is another one than it was planned under."""
    return manifest.read(request.dest) != planned.known


def _under_manifest(request: Request, known: manifest.Manifest) -> Plan:
    """The plan for a folder whose manifest answers the request."""
    look = manifest.look(request.dest, known.entries) if request.verify != NONE else manifest.Look((), ())
    suspects = known.entries.keys() - set(look.damaged) if request.verify == SHA256 else set(look.touched)
    entries = tuple(Entry(name, held.size, held.sha256) for name, held in known.entries.items())
    missing = tuple(entry for entry in entries if entry.path in look.damaged)
    planned = Plan(
        entries,
        known.commit,
        str(request.dest),
        answered=True,
        proved={e.path: str(e.sha256) for e in entries if e.path not in look.damaged and e.path not in suspects},
        missing=missing,
        unproven=tuple(entry for entry in entries if entry.path in suspects),
        others=others(request.dest, known.entries),
        missing_bytes=_missing_bytes(request, missing),
        prune=request.prune,
        known=known,
    )
    return _located(request, planned)


def _located(request: Request, planned: Plan) -> Plan:
    """The plan with the location that it leaves: a folder that lacks files is none to read from."""
    if not planned.missing:
        return planned
    elsewhere = str(request.source) if request.repo_id is None else f"{request.repo_id}@{planned.commit}"
    return replace(planned, location=elsewhere)


def prove(request: Request, planned: Plan, report: Report = lambda progress: None) -> Plan:
    """Hash the unproven files: each is then proved, or missing."""
    total = sum(entry.size for entry in planned.unproven)
    meter = transfer.Meter()

    def tick(done: int, files: int) -> None:
        report(Progress("check", done, total, files, len(planned.unproven), meter.rate(done)))

    tick(0, 0)
    jobs = [
        digest.Job(entry.path, request.dest / entry.path, entry.size, entry.sha256 is None)
        for entry in planned.unproven
    ]
    found = digest.of_all(jobs, tick)
    right = {
        e.path: found[e.path].sha256 for e in planned.unproven if e.path in found and transfer.proves(e, found[e.path])
    }
    missing = planned.missing + tuple(entry for entry in planned.unproven if entry.path not in right)
    proved = {**planned.proved, **right}
    missing_bytes = _missing_bytes(request, missing)
    told = replace(planned, proved=proved, missing=missing, unproven=(), missing_bytes=missing_bytes)
    return _located(request, told)


def _answers(known: manifest.Manifest, request: Request) -> bool:
    revision = request.revision
    fits = revision is None or not repository.is_commit(revision) or revision == known.commit
    return fits and (known.origin, known.allow, known.ignore) == (request.origin, request.allow, request.ignore)


def _source_moved_on(request: Request, known: manifest.Manifest) -> bool:
    """Whether a source folder is there and holds other files than were copied."""
    if request.source is None or request.repo_id is not None or not request.source.is_dir():
        return False
    theirs = manifest.read(request.source)
    if theirs is not None:
        entries = (Entry(name, held.size) for name, held in theirs.entries.items())
        now = {entry.path: theirs.entries[entry.path].sha256 for entry in _chosen(request, entries)}
        return now != known.digests
    there = _chosen(request, _folder_entries(request.source))
    # Copies are younger than what they were made of.
    newest = max((held.mtime_ns for held in known.entries.values()), default=0)
    return {entry.path: entry.size for entry in there} != known.files or any(entry.stamp > newest for entry in there)


def _folder_entries(folder: Path) -> tuple[Entry, ...]:
    return tuple(
        Entry(name, size, stamp=(folder / name).stat().st_mtime_ns) for name, size in manifest.listing(folder).items()
    )


def _chosen(request: Request, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return repository.chosen(entries, request.allow, request.ignore)


@dataclass(frozen=True)
class _Listing:
    entries: tuple[Entry, ...]
    commit: str | None
    location: str


def _listing(request: Request, known: manifest.Manifest | None) -> _Listing:
    """What the source holds: told by a manifest that lies there, else by the Hub, else by the folder itself."""
    if request.source is not None and not (request.source / "config.json").is_file():
        what = "has no config.json" if request.source.is_dir() else "does not exist"
        raise SnapshotError(f"the source {request.source} {what}", "name a folder that holds a model")
    theirs = manifest.read(request.source) if request.source is not None else None
    if request.seed is not None:
        theirs = _seeds_manifest(request, request.seed)
    if theirs is not None and (request.repo_id is None or _same_model(request, theirs)):
        entries = tuple(Entry(name, held.size, held.sha256) for name, held in theirs.entries.items())
        unsafe = next((entry.path for entry in entries if not repository.is_safe(entry.path)), None)
        if unsafe is not None:
            why = f"the manifest of {request.seed or request.source} names {unsafe!r}, a path that no model may have"
            raise SnapshotError(why, "use another source")
        return _Listing(entries, theirs.commit, str(request.source or f"{request.repo_id}@{theirs.commit}"))
    if request.repo_id is None:
        return _Listing(_folder_entries(Path(str(request.source))), None, str(request.source))
    endpoint = repository.endpoint_or_default(request.endpoint)
    found = repository.resolve(request.repo_id, _revision(request, known), endpoint, request.token, request.timeout)
    return _Listing(found.entries, found.commit, str(request.source or f"{found.repo_id}@{found.commit}"))


def _revision(request: Request, known: manifest.Manifest | None) -> str:
    """What to ask the Hub for. Other patterns are no reason to follow a branch to files that nobody has looked at."""
    wanted = request.revision or "main"
    if known is None or known.commit is None or known.origin != request.repo_id or repository.is_commit(wanted):
        return wanted
    return known.commit


def _same_model(request: Request, theirs: manifest.Manifest) -> bool:
    pinned = request.revision is not None and repository.is_commit(request.revision)
    return theirs.origin == request.repo_id and (not pinned or theirs.commit == request.revision)


def _seeds_manifest(request: Request, seed: fetch.Seed) -> manifest.Manifest:
    try:
        theirs = manifest.parse(fetch.read_manifest(seed, manifest.NAME))
    except ValueError as error:
        raise SnapshotError(f"{seed} has no manifest that can be read", "bring the model there first") from error
    if not _same_model(request, theirs):
        raise SnapshotError(
            f"{seed} holds {theirs.origin} at {theirs.commit}, wanted is {request.repo_id} at "
            f"{request.revision or 'main'}",
            "bring that to the other host first",
        )
    return theirs


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _missing_bytes(request: Request, missing: Iterable[Entry]) -> int:
    return sum(entry.size - transfer.staged(request.staging, entry) for entry in missing)


def others(folder: Path, files: Iterable[str]) -> tuple[str, ...]:
    """The files below a folder that are none of ``files``, nor ours, nor what huggingface_hub keeps for itself."""
    belong = set(files)
    found = []
    for root, folders, names in os.walk(folder):
        inside = Path(root).relative_to(folder)
        folders[:] = [name for name in folders if inside / name not in (Path(manifest.WORK), _FOREIGN)]
        found += [str(inside / name) for name in names if name not in (manifest.NAME, f"{manifest.NAME}.new")]
    return tuple(sorted(set(found) - belong))


def make_work(request: Request) -> None:
    """Our folder beside the files. Raises SnapshotError when nothing can be written there."""
    try:
        request.staging.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise trouble.explain(error, request.dest) from error


def bring(request: Request, planned: Plan, lock: Lock, report: Report = lambda progress: None) -> Plan:
    """Bring what is missing and write the manifest. Returns the plan as it was carried out: ``missing`` was brought.

    Raises:
        SnapshotError: not enough space, a failed copy or download, or files that are not what was announced.
    """
    try:
        return _bring(request, planned, lock, report)
    except OSError as error:
        raise trouble.explain(error, request.dest) from error


def _bring(request: Request, planned: Plan, lock: Lock, report: Report) -> Plan:
    space.check(request.dest, planned.missing_bytes, len(planned.missing), request.reserve_bytes)
    if planned.unproven:
        planned = prove(request, planned, report)
        space.check(request.dest, planned.missing_bytes, len(planned.missing), request.reserve_bytes)
    keep = {transfer.key(entry) for entry in planned.missing}
    for leftover in request.staging.iterdir():
        if leftover.stem not in keep and leftover.is_file():
            leftover.unlink()
    proved = dict(planned.proved)
    if planned.missing:
        moved = transfer.Transfer(
            entries=planned.missing,
            staging=request.staging,
            fetcher=lambda xet: _fetcher(request, planned, xet, lock),
            source=str(request.seed or request.source or f"{request.repo_id}@{planned.commit}"),
            stall_timeout=request.stall_timeout,
            xet=request.xet,
            report=report,
        )
        proved.update(moved.run())
    _put_in_place(request, planned, proved)
    return replace(planned, location=str(request.dest))


def _fetcher(request: Request, planned: Plan, xet: bool, lock: Lock) -> fetch.Fetcher:
    if request.seed is not None:
        return fetch.SeedFetcher(request.seed, request.max_workers)
    if request.source is not None:
        return fetch.FolderFetcher(request.source, request.max_workers)
    python = request.python
    if python is None or not os.access(python, os.X_OK):
        raise SnapshotError(
            f"a download needs a Python with huggingface_hub, and {python} is not there",
            "install the engine first",
        )
    source = fetch.HubSource(
        repo_id=str(request.repo_id),
        commit=str(planned.commit),
        endpoint=repository.endpoint_or_default(request.endpoint),
        token=request.token,
        python=python,
        max_workers=request.max_workers,
        timeout=request.timeout,
        home=request.staging / "huggingface",
    )
    return fetch.HubFetcher(source, xet, lock.fileno())


def _put_in_place(request: Request, planned: Plan, proved: Mapping[str, str]) -> None:
    """Give the proved files their names, and write down what is there now."""
    dest = request.dest
    if planned.answered:
        # Of another revision files are not wrong, and what is not there was loaded by nobody.
        there = [dest / entry.path for entry in planned.missing if (dest / entry.path).is_file()]
        if there:
            manifest.remember_wrong(dest, min(path.stat().st_mtime for path in there), time.time())
    if planned.changes:
        # First: a folder between two states must not be believed.
        (dest / manifest.NAME).unlink(missing_ok=True)
    folders = {dest}
    for entry in planned.missing:
        target = dest / entry.path
        if target.is_dir() and not target.is_symlink():
            raise SnapshotError(f"{target} is a folder, and the model has a file of that name", "move the folder away")
        target.parent.mkdir(parents=True, exist_ok=True)
        folders.add(target.parent)
        transfer.whole(request.staging, entry).replace(target)
    if request.prune:
        remove_files(dest, planned.others)
    for folder in folders:
        manifest.sync(folder)
    held = {}
    for entry in planned.entries:
        found = (dest / entry.path).stat()
        held[entry.path] = manifest.Held(found.st_size, proved[entry.path], found.st_mtime_ns)
    manifest.Manifest(request.origin, planned.commit, held, request.allow, request.ignore).write(dest)
    shutil.rmtree(request.staging)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files, and the folders that are empty without them."""
    for name in names:
        path = folder / name
        path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == folder:
                break
            try:
                parent.rmdir()
            except OSError:
                break


@dataclass(frozen=True)
class Removal:
    """What goes when a model goes, and what stays since it is nobody's."""

    files: tuple[str, ...]
    others: tuple[str, ...]
    there: bool


def plan_removal(dest: Path) -> Removal:
    """What a removal would remove: the manifest's files and what we keep beside them."""
    known = manifest.read(dest)
    files = tuple(sorted(known.entries)) if known is not None else ()
    ours = known is not None or (dest / manifest.WORK).is_dir()
    return Removal(files, others(dest, files), there=ours)


def remove(dest: Path, removal: Removal, prune: bool) -> None:
    """Carry a removal out; with ``prune`` nothing stays."""
    try:
        # First: what is half removed must not be believed.
        (dest / manifest.NAME).unlink(missing_ok=True)
        remove_files(dest, removal.files + (removal.others if prune else ()))
        for ours in (dest / manifest.WORK, dest / _FOREIGN):
            if ours.is_dir():
                shutil.rmtree(ours)
        for folder in (dest / _FOREIGN.parent, dest):
            with contextlib.suppress(OSError):
                folder.rmdir()
    except OSError as error:
        raise trouble.explain(error, dest) from error
