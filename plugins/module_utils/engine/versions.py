# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and requirements of Python packages, as far as judging an installed engine needs them.

Rules: the version specifiers specification of the Python packaging guide (PEP 440, PEP 508). The library that
implements them, packaging, is not part of a target's system Python, hence this small reading of the same rules; the
unit tests hold it against that library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[._-]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[._-]?(?P<pre_n>\d*))?"
    r"(?P<post>-(?P<post_bare>\d+)|[._-]?(?:post|rev|r)[._-]?(?P<post_n>\d*))?"
    r"(?P<dev>[._-]?dev[._-]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[._-][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


@dataclass(frozen=True, order=True)
class Version:
    """A version that compares by PEP 440; ``text`` is how it was written."""

    key: tuple[object, ...]
    text: str = field(compare=False)
    epoch: int = field(compare=False)
    release: tuple[int, ...] = field(compare=False)
    local: str = field(compare=False)
    is_prerelease: bool = field(compare=False)
    is_postrelease: bool = field(compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def base(self) -> tuple[int, ...]:
        """The release numbers without zeros at the end."""
        return _trimmed(self.release)

    def without_local(self) -> Version:
        """The version less its local part (``2.9.1+cu130`` -> ``2.9.1``)."""
        return parse_version(self.text.partition("+")[0])


def parse_version(text: str) -> Version:
    """Reads ``0.5.13.post1``, ``2.9.1+cu130``, ``0.6.0rc1``, ``0.5.24.dev3`` and the like.

    Raises ValueError when the text is no version.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a version; write it as the package does, for example 0.5.20 or 0.5.13.post1")
    release = tuple(int(part) for part in match["release"].split("."))
    pre, post, dev, local = match["pre"], match["post"], match["dev"], match["local"]
    # dev < a < b < rc < final < post; a dev of anything sorts before that thing.
    final = (-1, 0) if dev and not post else (3, 0)
    pre_key = (_PRE[pre.lower()], int(match["pre_n"] or 0)) if pre else final
    post_key = int(match["post_bare"] or match["post_n"] or 0) if post else -1
    dev_key = (0, int(match["dev_n"] or 0)) if dev else (1, 0)
    # A number sorts after a word, nothing before both.
    local_key = tuple((1, int(part), "") if part.isdigit() else (0, 0, part.lower()) for part in _split_local(local))
    epoch = int(match["epoch"] or 0)
    key = (epoch, _trimmed(release), pre_key, post_key, dev_key, local_key)
    return Version(key, text.strip(), epoch, release, (local or "").lower(), bool(pre or dev), bool(post))


def _trimmed(release: tuple[int, ...]) -> tuple[int, ...]:
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return release


def _split_local(local: str | None) -> list[str]:
    return re.split(r"[._-]", local) if local else []
