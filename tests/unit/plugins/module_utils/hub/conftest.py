# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of four files, one of them large-file and one in a folder."""
    folder = tmp_path / "model"
    (folder / "original").mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}\n')
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 4096)
    (folder / "original" / "params.json").write_text("{}\n")
    return folder
