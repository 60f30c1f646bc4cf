# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module asks of a host, apart from how it is asked: by the module itself, or together with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Arguments in, what the module returns out, with its `warnings` if it has any. Raises Refused.
Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class Refused(Exception):
    """The module fails with ``msg``, and returns ``result`` all the same."""

    def __init__(self, msg: str, result: Mapping[str, Any]) -> None:
        super().__init__(msg)
        self.msg, self.result = msg, result


@dataclass(frozen=True)
class Question:
    """A question that changes nothing.

    ``arguments`` is the argument spec of the module, ``rules`` what else AnsibleModule takes about its arguments
    (``mutually_exclusive``).
    """

    arguments: Mapping[str, Any]
    answer: Answer
    rules: Mapping[str, Any] = field(default_factory=dict)


def told(answer: Answer, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the module returns, with ``failed`` and ``msg`` if it fails."""
    try:
        return answer(arguments)
    except Refused as refused:
        return {**refused.result, "failed": True, "msg": refused.msg}
    except OSError as error:
        return {"failed": True, "msg": f"the host could not be looked at: {error}"}
