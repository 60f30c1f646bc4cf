# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixed set of prompts: what the answers, the accept length and the decode rate are taken from.

Texts to go on with, of the kinds that a drafter finds easy and hard; no chat template, so that each version of the
engine is asked the very same. An operator's own prompts are added to them. Changing one makes it new to each baseline.
"""

from __future__ import annotations

GOLDEN = (
    "The water cycle begins when the sun warms the sea. Step by step, this is what happens next:\n1.",
    'def is_prime(number: int) -> bool:\n    """Whether the number is prime."""\n',
    "Question: A train leaves at 9:40 and arrives at 13:05. How long does the journey take?\nAnswer: Let us count.",
    '{"name": "Ada Lovelace", "born": 1815, "field": "mathematics"}\n{"name": "Isaac Newton", "born":',
    "English: The harbour was quiet and the boats lay still.\nFrench:",
    "It was past midnight when the lighthouse keeper heard somebody knock at the door. He",
)
# As many of them as a run that changed nothing asks.
FEW = 2
# The length of each answer, in tokens.
TOKENS = 64

# What the prefix cache is asked with: so many characters make about a thousand tokens.
PREFIX_CHARACTERS = 4000
PREFIX_SENTENCE = "Line {number} of the log: pump {number} ran for {hours} hours and its filter was found clean.\n"
