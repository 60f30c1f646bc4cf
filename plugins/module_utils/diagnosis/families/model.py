# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A base model that cannot be read or built."""

from __future__ import annotations

from ..signature import GENERAL, H200, SGLANG, Signature

SIGNATURES = (
    Signature(
        id="model.path",
        pattern=r"Repo id must (?:be in the form|use alphanumeric)[^\n]*?'(?P<path>/[^'\n]*)'",
        cause="there is no folder {path}, so the engine takes it for the name of a repository",
        fix="correct the path, or bring the model there (hf_snapshot)",
        source=f"{H200}; huggingface_hub, validate_repo_id",
    ),
    Signature(
        id="model.no_config",
        pattern=r"^(?:OSError|ValueError): .{0,200}(?:does not appear to have a file named config\.json|"
        r"Should have a `model_type` key in its config\.json)",
        # transformers does not tell a file that is not there from one that it may not read.
        cause="the folder of a model has no config.json that the engine could read",
        fix="bring the whole model into its folder (hf_snapshot); if it is there, let the service's user read it",
        source="transformers, utils/hub.py and models/auto/configuration_auto.py",
    ),
    Signature(
        id="model.offline",
        pattern=r"We couldn't connect to '(?P<hub>[^'\n]+)' to load|LocalEntryNotFoundError|outgoing traffic has "
        r"been disabled",
        cause="the engine wants a file from the Hub, which it must not or cannot reach",
        fix="bring the models into folders first and give their paths to the engine (hf_snapshot)",
        source="transformers, utils/hub.py; the unit sets HF_HUB_OFFLINE=1",
    ),
    Signature(
        id="model.gated",
        pattern=r"You are trying to access a gated repo|GatedRepoError|401 Client Error: Unauthorized for url",
        cause="the repository of a model asks for a token that has been granted access",
        fix="accept its terms on the Hub and give hf_snapshot a token",
        source="huggingface_hub, utils/_http.py",
    ),
    Signature(
        id="model.remote_code",
        pattern=r"contains custom code which must be executed to correctly load the model",
        cause="the model brings its own Python code, which runs only when it is allowed to",
        fix="pin the model's revision, read its code, then set trust_remote_code (Kimi K2.6 needs it)",
        source=f"{H200}; transformers, dynamic_module_utils.py",
    ),
    Signature(
        id="model.type",
        pattern=r"model type `(?P<type>[\w.-]+)` but Transformers does not recognize this architecture",
        cause="the installed transformers does not know models of the type {type}",
        fix="install the version of transformers that this SGLang asks for, and set trust_remote_code if the "
        "model has own code",
        source=f"transformers, models/auto/configuration_auto.py; {SGLANG}25673",
    ),
    Signature(
        id="model.class",
        pattern=r"Model architectures \['(?P<name>(?!\w*(?:Eagle|EAGLE|DFlash|Speculator|Draft))\w+)'\] "
        r"(?:are not supported for now|failed to be inspected)",
        cause="this version of the engine does not serve models of the class {name}, or a package that its code "
        "imports is "
        "missing",
        fix="look for 'Ignore import error' in the log: install the package it names, else a version that knows "
        "the class",
        source="sglang/srt/models/registry.py:51 (0.5.20)",
    ),
    Signature(
        id="model.damaged",
        pattern=r"SafetensorError: Error while deserializing header: (?P<why>[^\n]{1,80})",
        cause="a file of weights is no complete safetensors file ({why}): cut off, or the pointer of a large file",
        fix="verify and bring it again (hf_snapshot with verify sha256)",
        source="safetensors, src/tensor.rs",
    ),
    Signature(
        id="model.no_weights",
        pattern=r"Cannot find any model weights with `(?P<path>[^`\n]+)`",
        cause="there are no weights in {path}",
        fix="bring the whole model into its folder (hf_snapshot)",
        source="sglang/srt/model_loader/loader.py:555 (0.5.20)",
    ),
    Signature(
        id="model.file_missing",
        pattern=r"No such file or directory: "
        r"\"?'?(?P<path>/[^'\"\n]+\.(?:safetensors|json|jinja|model|tiktoken|txt|py))\b",
        cause="the file {path} is not there",
        fix="bring the whole model into its folder (hf_snapshot)",
        source="Python, FileNotFoundError",
    ),
    Signature(
        id="model.context_length",
        pattern=r"User-specified context_length \((?P<asked>\d+)\) is greater than the derived context_length "
        r"\((?P<derived>\d+)\)[^\n]*set the env var",
        cause="context_length asks for {asked} tokens, and the model was made for {derived}",
        fix="set context_length to {derived} or less",
        source="sglang/srt/configs/model_config.py:1031 (0.5.20)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="model.weights",
        pattern=r"^AssertionError: Attempted to load weight \(torch\.Size\(\[(?P<have>[\d, ]+)\]\)\) into parameter "
        r"\(torch\.Size\(\[(?P<want>[\d, ]+)\]\)\)",
        cause="a tensor has the shape {have} where the configuration of its model says {want}",
        fix="bring config.json and weights from one revision (hf_snapshot verifies them)",
        source="sglang/srt/model_loader/weight_utils.py:1597 (0.5.20)",
        kind=GENERAL,
    ),
)
