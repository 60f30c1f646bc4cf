# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt, asked in a workspace: sources, key and pin are tried out there before the machine has any of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_LISTS = Path("/var/lib/apt/lists")
_LOCK_LIMIT_S = 120
_MISSING_KEY = re.compile(r"NO_PUBKEY|EXPKEYSIG|[Mm]issing key|is not signed|signatures? (?:were|couldn't|could not)")


class AptError(Exception):
    """apt refused; the text is what it said, without what says nothing."""

    @property
    def about_key(self) -> bool:
        """Whether it is about the key that signs a repository."""
        return _MISSING_KEY.search(str(self)) is not None

    @property
    def missing_key(self) -> str:
        """The key that would be needed, by its id or fingerprint; empty when it is not told."""
        found = re.search(r"(?:NO_PUBKEY|[Mm]issing key) ([0-9A-F]{8,})", str(self))
        return found[1] if found else ""

    @property
    def about_other_sources(self) -> bool:
        """Whether another file of the machine names the same repository with other settings."""
        return "Conflicting values set for option" in str(self)


@dataclass(frozen=True)
class Change:
    """What apt would do with a package: Debian versions, None for "not there"."""

    name: str
    before: str | None
    after: str | None


def parse_simulation(text: str) -> list[Change]:
    """The changes that ``apt-get --simulate`` announces, each once."""
    changes = []
    for line in text.splitlines():
        gone = re.match(r"(?:Remv|Purg) (\S+) \[(\S+)\]", line)
        come = re.match(r"Inst (\S+) (?:\[(\S+)\] )?\((\S+) ", line)
        if gone:
            changes.append(Change(gone[1].partition(":")[0], gone[2], None))
        elif come:
            changes.append(Change(come[1].partition(":")[0], come[2], come[3]))
    return changes


def parse_madison(text: str) -> dict[str, list[str]]:
    """Offered Debian versions by package, the highest first."""
    offered: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and fields[1] not in offered.setdefault(fields[0], []):
            offered[fields[0]].append(fields[1])
    return offered


def complaint(stdout: str, stderr: str) -> str:
    """The lines of apt's answer that say what is wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.startswith(("E:", "W:"))]
    # What cannot be installed, and why, is told on the standard output.
    reasons = stdout.partition("The following packages have unmet dependencies:\n")[2]
    if reasons:
        lines = [line.strip() for line in reasons.splitlines() if line.startswith(" ")] + lines
    return " ".join(dict.fromkeys(lines)) or (stdout + stderr).strip()[-500:]


@dataclass(frozen=True)
class Workspace:
    """A folder with sources, preferences and lists of its own; everything else is the machine's."""

    folder: Path

    @property
    def sources(self) -> Path:
        return self.folder / "sources.list.d"

    @property
    def own(self) -> Path:
        """The driver's sources alone."""
        return self.folder / "own.list.d"

    @property
    def preferences(self) -> Path:
        return self.folder / "preferences.d"

    @property
    def lists(self) -> Path:
        return self.folder / "lists"

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    def run(self, program: str, arguments: Sequence[str], options: Sequence[str] = ()) -> str:
        """What the program says.

        Raises:
            AptError: it ended with an error.
        """
        settings = {
            "Dir::Etc::SourceParts": self.sources,
            "Dir::Etc::PreferencesParts": self.preferences,
            "Dir::State::Lists": self.lists,
            # A cache of other lists than these must be neither read nor written.
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "DPkg::Lock::Timeout": _LOCK_LIMIT_S,
        }
        words = [word for name, value in settings.items() for word in ("--option", f"{name}={value}")]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            [program, *words, *options, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            raise AptError(complaint(done.stdout, done.stderr))
        return done.stdout

    def update(self, own_alone: bool) -> None:
        """Fetch the lists, of the driver's sources alone or of all.

        Raises:
            AptError: a source does not answer, or is not signed by its key.
        """
        alone = ["Dir::Etc::SourceList=/dev/null", f"Dir::Etc::SourceParts={self.own}", "APT::Get::List-Cleanup=0"]
        options = [word for setting in alone for word in ("--option", setting)] if own_alone else []
        self.run("apt-get", ["update"], [*options, "--option", "APT::Update::Error-Mode=any", "--quiet"])

    def offered(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Offered Debian versions of the packages, the highest first; without those that no source has."""
        return parse_madison(self.run("apt-cache", ["madison", *names])) if names else {}

    def install(self, words: Sequence[str], how: Sequence[str]) -> str:
        """``apt-get install`` with words as ``name=version`` and ``name-``.

        Raises:
            AptError: it cannot be done.
        """
        common = ["--yes", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages"]
        keep = [word for old in ("confdef", "confold") for word in ("--option", f"Dpkg::Options::=--force-{old}")]
        # Purged, since a pinning package's pin is a configuration file that would outlive its removal.
        return self.run("apt-get", ["install", *words], [*common, *keep, "--purge", *how])

    def simulate(self, words: Sequence[str]) -> list[Change]:
        """What ``install`` would change."""
        return parse_simulation(self.install(words, ["--simulate"]))

    def adopt_lists(self, all_of_them: bool) -> None:
        """Give the machine the lists that were fetched here."""
        before = _LISTS.stat()
        for path in self.lists.iterdir():
            known = path.is_symlink() and path.readlink().parent == _LISTS
            if path.is_file() and not known and path.name != "lock":
                shutil.copy2(path, _LISTS / path.name)
        if not all_of_them:
            # ansible.builtin.apt takes the folder's age for that of all lists.
            os.utime(_LISTS, ns=(before.st_atime_ns, before.st_mtime_ns))


@contextmanager
def workspace(leave_out_sources: Sequence[str], leave_out_preferences: Sequence[str]) -> Iterator[Workspace]:
    """A workspace that starts as the machine is, without the named files; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="gpuserve-apt-") as name:
        folder = Path(name)
        # apt fetches as the user _apt.
        folder.chmod(0o755)
        made = Workspace(folder)
        for path in (made.own, made.keys):
            path.mkdir()
        _copy(Path("/etc/apt/sources.list.d"), made.sources, leave_out_sources)
        _copy(Path("/etc/apt/preferences.d"), made.preferences, leave_out_preferences)
        (made.lists / "partial").mkdir(parents=True)
        for path in _LISTS.glob("*"):
            if path.is_file() and path.name != "lock":
                (made.lists / path.name).symlink_to(path)
        yield made


def _copy(source: Path, target: Path, leave_out: Sequence[str]) -> None:
    target.mkdir()
    for path in source.glob("*"):
        if path.is_file() and str(path) not in leave_out:
            shutil.copy2(path, target / path.name)
