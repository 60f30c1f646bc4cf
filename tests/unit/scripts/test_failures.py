# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.gpuserve.sglang.plugins.module_utils.diagnosis.catalogue import SIGNATURES

from scripts.failures import DOCUMENT, document


def test_the_document_is_the_catalogue() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run scripts/failures.py"


def test_each_failure_is_in_it() -> None:
    assert [line[4:] for line in document().splitlines() if line.startswith("### ")] == [
        signature.id for signature in SIGNATURES
    ]
