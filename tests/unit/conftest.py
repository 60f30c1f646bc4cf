# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from lab.hub import HubServer, serve

# The same examples in each run: a change is to blame for a failure, and not the dice.
settings.register_profile("gpuserve", derandomize=True)
settings.load_profile("gpuserve")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A Hub on loopback, with no models yet."""
    with serve() as served:
        yield served
