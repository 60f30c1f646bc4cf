# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    """Options of the modules that return checks."""

    DOCUMENTATION = r"""
options:
  fail_on:
    description: Which checks make the module fail. V(warn) stops at warnings and failures.
    type: str
    choices: [fail, warn, never]
    default: fail
"""

    # A base model with its drafter, and where they are read.
    PAIR = r"""
options:
  base:
    description:
      - The base model.
      - A value that starts with C(/) is a directory on the target, anything else a repository on the Hub.
    type: str
    required: true
  base_revision:
    description: The base's branch, tag or commit on the Hub.
    type: str
    default: main
  drafter_revision:
    description: The drafter's branch, tag or commit on the Hub.
    type: str
    default: main
  tp_size:
    description: Number of GPUs that the model is split over.
    type: int
    default: 1
  endpoint:
    description: The Hub to read repositories from. The environment variable E(HF_ENDPOINT) is used when not set.
    type: str
  token:
    description: A read token for gated repositories. It is sent to the Hub alone.
    type: str
  names:
    description:
      - What the caller calls these options, so that a message names the variable to change.
      - The keys are options of this module, the values names of variables, see the examples.
    type: dict
    default: {}
"""
