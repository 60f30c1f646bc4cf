# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small engine in the shapes of the real one: up to 0.5.19 it resolves when it is made, from 0.5.20 on when asked."""

from __future__ import annotations

import sys
from pathlib import Path

# What both shapes share. The rules are those of SGLang's _handle_eagle_family, in its own order.
_COMMON = """
import argparse
import logging
import os
import sys
import time

logger = logging.getLogger(__name__)


class Cli:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", required=True)
        parser.add_argument("--device", default=None)
        parser.add_argument("--config", default=None)
        parser.add_argument("--verbose", action="store_true")
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=1)
        parser.add_argument("--attention-backend", default=None)
        parser.add_argument("--model-loader-extra-config", default="{}")
        parser.add_argument("--speculative-algorithm", default=None)
        parser.add_argument("--speculative-num-steps", type=int, default=None)
        parser.add_argument("--speculative-eagle-topk", type=int, default=None)
        parser.add_argument("--speculative-num-draft-tokens", type=int, default=None)
        parser.add_argument("--api-key", default=None)


def resolve(values):
    kind = values["model_path"]
    if kind == "hang":
        print("waiting for the other ranks", file=sys.stderr, flush=True)
        time.sleep(60)
    if kind == "die":
        print("Segmentation fault", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    if kind == "noise":
        print("this is no JSON")
    if kind == "environment":
        values["environment"] = dict(os.environ)
    if not os.path.exists(kind) and kind.startswith("/"):
        raise OSError(f"Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{kind}'.")
    if values["device"] is None:
        raise RuntimeError("No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) is available.")
    if values["attention_backend"] == "fa3" and values["device"] == "cuda":
        raise ValueError("FA3 requires Hopper (SM90).")
    if values["attention_backend"] == "intel_amx":
        values["attention_backend"] = "torch_native"
    if values["attention_backend"] is None:
        values["attention_backend"] = "triton"
    if values["speculative_algorithm"]:
        values["speculative_algorithm"] = values["speculative_algorithm"].upper()
        if values["speculative_algorithm"] not in ("EAGLE", "EAGLE3"):
            raise ValueError(f"Unknown speculative algorithm name: {values['speculative_algorithm']}")
        if values["speculative_num_steps"] is None:
            assert (
                values["speculative_eagle_topk"] is None
                and values["speculative_num_draft_tokens"] is None
            )
        if values["speculative_eagle_topk"] > 1:
            pass
        if values["speculative_eagle_topk"] == 1:
            if values["speculative_num_draft_tokens"] != values["speculative_num_steps"] + 1:
                logger.warning("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1")
                values["speculative_num_draft_tokens"] = values["speculative_num_steps"] + 1


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang serve")
    Cli.add_cli_args(parser)
    raw = parser.parse_args(argv)
    logging.basicConfig(level="INFO", force=True)
    return ServerArgs(vars(raw))
"""
_OLD = """
class ServerArgs:
    def __init__(self, values):
        self.__dict__.update(values)
        self.tp_size = self.__dict__.pop("tensor_parallel_size")
        resolve(self.__dict__)

    def check_server_args(self):
        assert self.tp_size < 64, "tp_size must be smaller than 64"
"""
_NEW = """
class ServerArgs:
    def __init__(self, values):
        self._values = dict(values, tp_size=values["tensor_parallel_size"])

    def resolve_once(self):
        before = dict(self._values)
        resolve(self._values)
        changed = {name: self._values[name] for name in before if before[name] != self._values[name]}
        self._resolved_overrides = [("_handle_everything", changed)]

    def resolved_dict(self):
        return dict(self._values)

    def check_server_args(self):
        assert self._values["tp_size"] < 64, "tp_size must be smaller than 64"
"""


def make_engine(venv: Path, version: str = "0.5.20", torch: str = "def is_available(): return False") -> Path:
    """A virtual environment whose interpreter finds the small engine; it can be read as a real one can."""
    site = venv / "lib" / "python3.12" / "site-packages"
    server_args = _COMMON + (_NEW if version >= "0.5.20" else _OLD)
    files = {
        f"sglang-{version}.dist-info/METADATA": "Name: sglang\n",
        "sglang/__init__.py": "",
        "sglang/srt/__init__.py": "",
        "sglang/srt/server_args.py": server_args,
        "sglang/srt/speculative/spec_info.py": "class SpeculativeAlgorithm(Enum):\n    EAGLE = 1\n    EAGLE3 = 2\n",
        "sglang/srt/plugins/__init__.py": "def load_plugins():\n    pass\n",
        "torch/__init__.py": "from . import cuda\n",
        "torch/cuda.py": torch,
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    python = venv / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return venv
