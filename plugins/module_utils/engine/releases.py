# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SGLang releases whose published wheels the rule tables were read from, and spans of them."""

from __future__ import annotations

from dataclasses import dataclass

from .versions import Version, parse_version

READ = tuple(
    parse_version(text)
    for text in (
        "0.4.6.post5",
        "0.4.9",
        "0.5.2",
        "0.5.3.post3",
        "0.5.4.post3",
        "0.5.5",
        "0.5.6.post2",
        "0.5.7",
        "0.5.8",
        "0.5.9",
        "0.5.10.post1",
        "0.5.11",
        "0.5.12",
        "0.5.13.post1",
        "0.5.14",
        "0.5.15",
        "0.5.16",
        "0.5.17",
        "0.5.18",
        "0.5.19",
        "0.5.20",
        "0.5.21",
        "0.5.22",
        "0.5.23",
    )
)


def is_covered(version: Version) -> bool:
    """Whether the release lies between the oldest and the newest one that were read."""
    return READ[0] <= version.without_local() <= READ[-1]


@dataclass(frozen=True)
class Span:
    """From the first release seen with something to the last one, both included; None: no such end was seen."""

    since: str | None = None
    until: str | None = None

    def _holds(self, version: Version) -> bool:
        return (self.since is None or parse_version(self.since) <= version) and (
            self.until is None or version <= parse_version(self.until)
        )

    def holds(self, version: Version) -> bool | None:
        """Whether it is so in ``version``; None where the releases that were read do not tell.

        A release between two that were read is told when both neighbours agree. Nothing is told about releases older
        than the oldest or newer than the newest one read.
        """
        version = version.without_local()
        older = [read for read in READ if read <= version]
        newer = [read for read in READ if read >= version]
        if not older or not newer:
            return None
        before, after = self._holds(older[-1]), self._holds(newer[0])
        return before if before == after else None
