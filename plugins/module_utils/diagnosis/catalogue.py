# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How known failures look in the engine's log: the data of the diagnosis, and of docs/failures.md.

A table in Python, since no target need have a reader of YAML. Named groups of a pattern are words of its cause and fix.
"""

from __future__ import annotations

from dataclasses import dataclass

# Why the engine ended.
CAUSE = "cause"
# It ended because it was asked to.
STOP = "stop"
# What happened, but not why: gives way to any cause.
GENERAL = "general"
# The engine serves, and something is wrong with it all the same.
HINT = "hint"

_SGLANG = "https://github.com/sgl-project/sglang/issues/"
_H200 = "seen on an H200 with SGLang 0.5.15"
_ALL = "all"


@dataclass(frozen=True)
class Signature:
    """One way to fail.

    ``pattern`` is searched in the whole log, ``^`` and ``$`` matching at each line; ``unless`` is a pattern that rules
    it out wherever it stands. ``versions`` are those of SGLang in which it was seen or whose source has the text.
    """

    id: str
    pattern: str
    cause: str
    fix: str
    source: str
    versions: str = _ALL
    kind: str = CAUSE
    unless: str = ""


# The frames of a drafter's traceback, and no more than so many characters up to the exception.
_IN_DRAFTER = r"models/\w*eagle3?\.py\"[\s\S]{0,6000}?"
_ENDED = r"(?:Subprocess \S+ \(pid=\d+\) crashed with exit code|scheduler died during initialization \(exit code:)"

_FLAGS = (
    Signature(
        id="flags.unknown",
        pattern=r"error: unrecognized arguments: (?P<flags>.+)",
        cause="the engine does not know {flags}: misspelt, or a flag of another version",
        fix="take it out of the arguments, or write it as the installed version does (sglang_args checks that)",
        source="argparse, as sglang/srt/server_args.py uses it",
    ),
    Signature(
        id="flags.value",
        pattern=r"error: argument (?P<flag>--[\w-]+)[^:\n]*: (?P<why>(?:invalid|expected)[^\n]{1,120})",
        cause="the engine refuses the value of {flag}: {why}",
        fix="give {flag} a value that the installed version accepts",
        source="argparse, as sglang/srt/server_args.py uses it",
    ),
    Signature(
        id="flags.draft_numbers",
        pattern=r"in _handle_(?:eagle_family|speculative_decoding)\n(?:.*\n){0,6}?AssertionError\s*$",
        cause="speculative_num_draft_tokens or speculative_eagle_topk was given without speculative_num_steps; "
        "the engine "
        "asserts that without a word",
        fix="give speculative_num_steps, speculative_eagle_topk and speculative_num_draft_tokens together, or "
        "none of them",
        source=f"{_H200}; sglang/srt/arg_groups/speculative_hook.py:380 (0.5.15)",
    ),
    Signature(
        id="flags.draft_topk",
        pattern=r"in _handle_(?:eagle_family|speculative_decoding)\n(?:.*\n){0,6}?"
        r"TypeError: '>' not supported between instances of 'NoneType' and 'int'",
        cause="speculative_num_steps was given without speculative_eagle_topk",
        fix="give speculative_num_steps, speculative_eagle_topk and speculative_num_draft_tokens together, or "
        "none of them",
        source=f"{_H200}; sglang/srt/arg_groups/speculative_hook.py:455 (0.5.15)",
    ),
    Signature(
        id="flags.draft_pipeline",
        pattern=r"Pipeline parallelism is not compatible with overlap schedule, speculative decoding",
        cause="speculative decoding and pipeline parallelism exclude each other",
        fix="leave pp_size at 1 and split the model with tp_size",
        source="sglang/srt/arg_groups/validation_hook.py:83 (0.5.20), sglang/srt/server_args.py:7250 (0.5.12)",
    ),
    Signature(
        id="flags.draft_page_size",
        pattern=r"topk\S* > 1 with page_size\S* > 1 is (?:unstable|only supported)",
        cause="a draft tree (topk above 1) over KV pages of more than one token is wrong on this attention backend",
        fix="set speculative_eagle_topk to 1",
        source="sglang/srt/server_args.py:3843 (0.5.12), sglang/srt/arg_groups/speculative_hook.py:993 (0.5.20)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="flags.draft_topk_backend",
        pattern=r"Error: (?:Currently )?(?P<what>[\w ]{1,60}?)(?: currently)? only supports topk ?= ?1",
        cause="{what} drafts a chain only, and topk is above 1",
        fix="set speculative_eagle_topk to 1 and speculative_num_draft_tokens to speculative_num_steps + 1",
        source="sglang/srt/arg_groups/speculative_hook.py:920 (0.5.20), "
        "sglang/srt/speculative/eagle_worker_v2.py:1136 (0.5.12)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="flags.draft_backend",
        pattern=r"EAGLE is not supported in (?:\w+ )?attention backend (?P<backend>\w+)",
        cause="the attention backend {backend} cannot draft",
        fix="set speculative_draft_attention_backend to triton, flashinfer or fa3 (0.5.7 and later)",
        source="sglang/srt/speculative/draft_utils.py:119 (0.5.20)",
    ),
    Signature(
        id="flags.backend_gpu",
        pattern=r"^ValueError: (?P<backend>.{1,40}) backend is only supported on (?P<gpus>.{1,60}?)\. ",
        cause="the attention backend {backend} runs on {gpus} only",
        fix="choose another attention_backend; triton runs on every NVIDIA GPU",
        source=f"{_H200}; sglang/srt/arg_groups/overrides.py:1596 (0.5.15)",
    ),
    Signature(
        id="flags.tp_size",
        pattern=r"^AssertionError: (?P<number>\d+) is not divisible by (?P<parts>\d+)",
        cause="{number} heads or rows of a model cannot be split into {parts} equal parts",
        fix="choose a tp_size that divides the attention heads of the base model and of the drafter",
        source="sglang/srt/distributed/utils.py:55 (0.5.20)",
    ),
    Signature(
        id="flags.quantization",
        pattern=r"Quantization method specified in the model config \((?P<have>[\w-]+)\) does not match the "
        r"quantization "
        r"method specified in the `quantization` argument \((?P<asked>[\w-]+)\)",
        cause="the checkpoint is quantised with {have}, and quantization asks for {asked}",
        fix="leave quantization out: the engine reads it from the checkpoint",
        source="sglang/srt/configs/model_config.py:1857 (0.5.20)",
    ),
)

_DRAFTER = (
    Signature(
        id="drafter.hidden_size",
        pattern=_IN_DRAFTER
        + r"RuntimeError: mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<given>\d+) and (?P<wanted>\d+)x",
        cause="the drafter was made for another base model: it wants {wanted} hidden values and gets {given}. The "
        "advice "
        "about memory that the engine prints after it is wrong",
        fix="use the drafter that was trained for this base model (drafter_compat compares them before a start)",
        source=f"{_H200}; sglang/srt/models/llama_eagle3.py, fc",
    ),
    Signature(
        id="drafter.hidden_norm",
        pattern=_IN_DRAFTER
        + r"Check failed: input\.size\(1\) == weight\.size\(0\) \((?P<given>\d+) vs\. (?P<wanted>\d+)\)",
        cause="the drafter was made for another base model: its norm has {wanted} values and gets {given}. The "
        "advice about "
        "memory that the engine prints after it is wrong",
        fix="use the drafter that was trained for this base model (drafter_compat compares them before a start)",
        source=f"{_H200}; sglang/srt/models/llama_eagle3.py, input_layernorm",
    ),
    Signature(
        id="drafter.vocabulary",
        pattern=r"vectorized gather kernel index out of bounds|index\w*Index: .{0,80}Assertion `srcIndex < "
        r"srcSelectDimSize`|"
        r"^IndexError: index out of range in self",
        cause="a token id is beyond the end of an embedding: the drafter's vocabulary is not that of the base model",
        fix="use a drafter of the same tokenizer (drafter_compat compares vocab_size and d2t before a start)",
        source=f"{_H200}, which then reports Xid 43; {_SGLANG}7139",
    ),
    Signature(
        id="drafter.none",
        pattern=r"^AttributeError: '(?P<base>\w+)' object has no attribute '(?:hot_token_id|set_embed)'",
        cause="no drafter was given, so the engine loaded the base model {base} a second time as its own drafter",
        fix="set speculative_draft_model_path",
        source=f"{_H200}; {_SGLANG}36528",
    ),
    Signature(
        id="drafter.context_length",
        pattern=r"Target model's context_length \((?P<target>\d+)\) is greater than the derived context_length "
        r"\((?P<derived>\d+)\)[^\n]*set the env var",
        cause="the base model is served with {target} tokens of context, and the drafter's configuration allows "
        "{derived}",
        fix="set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in the environment, or context_length to {derived}",
        source=f"{_H200}; sglang/srt/configs/model_config.py:1031 (0.5.20)",
        versions="0.5.2 and later",
    ),
    Signature(
        id="drafter.quantization",
        pattern=r"^TypeError: CompressedTensorsConfig\.__init__\(\) missing \d+ required positional arguments",
        cause="quantization compressed-tensors was given, and the engine applies it to the drafter, which is not "
        "quantised",
        fix="leave quantization out, or set speculative_draft_model_quantization to unquant (0.5.7 and later)",
        source=f"{_H200}; sglang/srt/model_loader/weight_utils.py:321 (0.5.15)",
    ),
    Signature(
        id="drafter.attention",
        pattern=r"^ValueError: \w+ backend can only be used with MLA models|"
        r"^AttributeError: 'ModelConfig' object has no attribute 'kv_lora_rank'",
        cause="the drafter has no MLA attention and inherits an attention backend of the base model that can do "
        "nothing else",
        fix="set speculative_draft_attention_backend to triton (0.5.7 and later)",
        source=f"{_H200} (flashmla, cutlass_mla); {_SGLANG}23490 (trtllm_mla)",
    ),
    Signature(
        id="drafter.base_class",
        pattern=r"^AttributeError: '(?P<base>\w+)' object has no attribute '"
        r"(?:set_eagle3_layers_to_capture|set_dflash_layers_to_capture|get_embed_and_head)'",
        cause="this version of the engine cannot give the hidden states of {base} to a drafter",
        fix="install a version whose class for this base model supports the algorithm (sglang_info tells), or "
        "serve without it",
        source="sglang/srt/model_executor/model_runner_components/attention_backend_setup.py:55 (0.5.20)",
    ),
    Signature(
        id="drafter.class",
        pattern=r"Model architectures \['(?P<name>\w*(?:Eagle3?|EAGLE3?|DFlash|Speculator|Draft)\w*)'",
        cause="this version of the engine knows no drafter of the class {name}",
        fix="install a version that knows it (Eagle3DeepseekV2ForCausalLM: 0.5.12, DFlashDraftModel: 0.5.11), or "
        "take another "
        "drafter",
        source=f"sglang/srt/models/registry.py:51 (0.5.20); {_SGLANG}25673",
    ),
    Signature(
        id="drafter.weights",
        pattern=r"speculative/\w*eagle\w*\.py\"[\s\S]{0,8000}?Attempted to load weight "
        r"\(torch\.Size\(\[(?P<have>[\d, ]+)\]\)\) into "
        r"parameter \(torch\.Size\(\[(?P<want>[\d, ]+)\]\)\)",
        cause="a tensor of the drafter has the shape {have} where its configuration says {want}",
        fix="bring the drafter's config.json and weights from one revision (hf_snapshot verifies them)",
        source=f"sglang/srt/model_loader/weight_utils.py:1597 (0.5.20); {_SGLANG}9074",
    ),
    Signature(
        id="drafter.dtype",
        pattern=_IN_DRAFTER
        + r"expected m\w+ and m\w+ to have the same dtype, but got: (?P<given>[\w:]+) != (?P<wanted>[\w:]+)",
        cause="the base model computes in {given} and the drafter in {wanted}; without a dtype in its "
        "configuration the "
        "engine takes float16",
        fix="set dtype to bfloat16",
        source="sglang/srt/configs/model_config.py:2284 (0.5.23): a missing dtype becomes float16",
    ),
    Signature(
        id="drafter.draft_vocab_size",
        pattern=r"^AttributeError: '\w+' object has no attribute 'draft_vocab_size'",
        cause="the drafter's config.json has no draft_vocab_size",
        fix="add draft_vocab_size (null if it equals the base model's vocabulary) to the drafter's config.json, "
        "or take a "
        "drafter that was exported for SGLang",
        source="sglang/srt/models/llama_eagle3.py:295 (0.5.20)",
    ),
    Signature(
        id="drafter.accepts_nothing",
        pattern=r"accept len: 1\.00, accept rate: 0\.00",
        unless=r"accept len: (?!1\.00)\d",
        cause="the base model accepted not one draft token: the server is right, and slower than without speculation",
        fix="check speculative_algorithm (EAGLE3, not EAGLE), the drafter's layer ids and the base model it was "
        "trained for "
        "(drafter_compat)",
        source=f"{_H200}; {_SGLANG}21272",
        kind=HINT,
    ),
    Signature(
        id="drafter.tensors_left_out",
        pattern=r"Eagle3 MLA: skipping unexpected weight (?P<name>\S+)",
        cause="the engine left out the drafter's tensor {name}: its configuration or this version does not use "
        "it, and fewer "
        "tokens are accepted",
        fix="bring the drafter's config.json from the revision of its weights; fc_norm and norm_output need "
        "0.5.12 or later",
        source="seen on an H200 with SGLang 0.5.15: accept length 2.2 instead of 3.2; "
        "sglang/srt/models/kimi_k25_eagle3.py:492",
        versions="0.5.12 and later",
        kind=HINT,
    ),
    Signature(
        id="drafter.numbers_changed",
        pattern=r"speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1",
        cause="with topk 1 the engine drafts speculative_num_steps + 1 tokens, not the number that was asked for",
        fix="set speculative_num_draft_tokens to speculative_num_steps + 1",
        source="sglang/srt/arg_groups/speculative_hook.py:974 (0.5.20)",
        kind=HINT,
    ),
)

_MODEL = (
    Signature(
        id="model.path",
        pattern=r"Repo id must (?:be in the form|use alphanumeric)[^\n]*?'(?P<path>/[^'\n]*)'",
        cause="there is no folder {path}, so the engine takes it for the name of a repository",
        fix="correct the path, or bring the model there (hf_snapshot)",
        source=f"{_H200}; huggingface_hub, validate_repo_id",
    ),
    Signature(
        id="model.no_config",
        pattern=r"^(?:OSError|ValueError): .{0,200}(?:does not appear to have a file named config\.json|"
        r"Should have a `model_type` key in its config\.json)",
        cause="the folder of a model has no config.json that could be used",
        fix="bring the whole model into its folder (hf_snapshot)",
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
        source=f"{_H200}; transformers, dynamic_module_utils.py",
    ),
    Signature(
        id="model.type",
        pattern=r"model type `(?P<type>[\w.-]+)` but Transformers does not recognize this architecture",
        cause="the installed transformers does not know models of the type {type}",
        fix="install the version of transformers that this SGLang asks for, and set trust_remote_code if the "
        "model has own code",
        source=f"transformers, models/auto/configuration_auto.py; {_SGLANG}25673",
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

_MEMORY = (
    Signature(
        id="memory.unbalanced",
        pattern=r"^RuntimeError: The memory capacity is unbalanced\. Some GPUs may be occupied",
        cause="one GPU has far less free memory than another: a process of a former start may still hold it",
        fix="find the process that holds it (gpu_health, on the host too) and end it, then start again",
        source="sglang/srt/distributed/bootstrap.py:366 (0.5.20); SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
    ),
    Signature(
        id="memory.kv_cache",
        pattern=r"Not enough memory\. Please try to increase --mem-fraction-static",
        cause="after the weights no memory is left for the KV cache within mem_fraction_static",
        fix="set context_length or max_running_requests lower, or tp_size higher; raise mem_fraction_static only "
        "if vram_plan "
        "shows the room",
        source="sglang/srt/model_executor/pool_configurator.py:92 (0.5.20)",
    ),
    Signature(
        id="memory.weights",
        pattern=r"in (?:load_model|load_weights)\n[\s\S]{0,8000}?OutOfMemoryError: CUDA out of memory\.[^\n]*?"
        r"total capacity of (?P<total>[\d.]+ \wiB) of which (?P<free>[\d.]+ \wiB) is free",
        cause="the weights do not fit: {free} of {total} were free when the next tensor came",
        fix="raise tp_size, or end what else is on the GPU (vram_plan counts the bytes, gpu_health names processes)",
        source="PyTorch, CUDACachingAllocator.cpp",
    ),
    Signature(
        id="memory.graphs",
        pattern=r"Capture cuda graph failed: CUDA out of memory",
        cause="the GPU was full before all CUDA graphs were captured",
        fix="lower mem_fraction_static by 0.05",
        source="sglang/srt/model_executor/runner/decode_cuda_graph_runner.py:467 (0.5.20)",
    ),
    Signature(
        id="memory.running",
        pattern=r"OutOfMemoryError: CUDA out of memory\. Tried to allocate (?P<size>[\d.]+ \wiB)",
        unless=r"Capture cuda graph failed: CUDA out of memory|in (?:load_model|load_weights)\n",
        cause="the GPU was full when a batch asked for {size}: what a batch needs lies outside mem_fraction_static",
        fix="lower mem_fraction_static by 0.05 (Kimi K2.6 bears 0.85), or chunked_prefill_size",
        source="SGLang's documentation, advanced_features/speculative_decoding.md; 0.90 ends Kimi K2.6 on 96 GB GPUs",
    ),
    Signature(
        id="memory.pool",
        pattern=r"(?P<what>Prefill|Decode) out of memory\. Try to lower your batch size",
        cause="the KV cache has no room left for a running batch",
        fix="lower max_running_requests",
        source="sglang/srt/mem_cache/allocation.py:231 (0.5.20)",
    ),
    Signature(
        id="memory.host",
        pattern=r"killed by the OOM killer|Failed with result 'oom-kill'|Out of memory: Killed process|"
        r"Memory cgroup out of memory",
        cause="the machine or the container ran out of main memory, and the kernel killed a process of the engine",
        fix="give the container more memory (pct set <id> --memory), or load with fewer threads "
        "(model_loader_extra_config num_threads)",
        source="systemd, OOMPolicy; kernel, mm/oom_kill.c",
    ),
    Signature(
        id="memory.shm",
        pattern=r"(?:extend|creating shared memory segment|attaching to shared memory segment) /dev/shm/|"
        r"insufficient shared memory \(shm\)|unable to write to file </torch_",
        cause="/dev/shm is full or too small, and NCCL passes data between the GPUs' processes through it",
        fix="make /dev/shm larger: mount -o remount,size=16G /dev/shm (in a container: an entry of its configuration)",
        source="https://github.com/NVIDIA/nccl/issues/342, https://github.com/NVIDIA/nccl/issues/1518",
    ),
)

_GPU = (
    Signature(
        id="gpu.none",
        pattern=r"No accelerator \(CUDA|Found no NVIDIA driver on your system|No CUDA GPUs are available",
        cause="the engine sees no GPU",
        fix="run gpu_health on the host: it says whether the driver, the device nodes or their permissions are missing",
        source="sglang/srt/utils/common.py:948 (0.5.20); PyTorch, torch/cuda/__init__.py",
    ),
    Signature(
        id="gpu.uvm",
        pattern=r"CUDA unknown error - this may be due to an incorrectly set up environment",
        cause="CUDA cannot begin: most often /dev/nvidia-uvm is missing or is an old number after a reboot of the host",
        fix="make the node on the Proxmox host before the container starts: nvidia-modprobe -c 0 -u (role "
        "nvidia_driver)",
        source="https://github.com/tensorflow/tensorflow/issues/53341, https://github.com/canonical/lxd/issues/5618",
    ),
    Signature(
        id="gpu.versions",
        pattern=r"Driver/library version mismatch|system has unsupported display driver / cuda driver combination",
        cause="the driver's libraries in this container are not of the version of the kernel module",
        fix="install the module's version in the container (role nvidia_driver), or reboot the host after its upgrade",
        source="NVML_ERROR_LIB_RM_VERSION_MISMATCH, CUDA error 803",
    ),
    Signature(
        id="gpu.driver_old",
        pattern=r"The NVIDIA driver on your system is too old|CUDA driver version is insufficient for CUDA "
        r"runtime version|"
        r"forward compatibility was attempted on non supported HW",
        cause="the driver is older than the CUDA that PyTorch was built with",
        fix="install a newer driver on the host (role nvidia_driver); CUDA 13 needs 580 or later",
        source="PyTorch, torch/cuda/__init__.py; CUDA errors 35 and 804",
    ),
    Signature(
        id="gpu.ordinal",
        pattern=r"CUDA error: invalid device ordinal",
        cause="more GPUs are asked for than this container sees",
        fix="set tp_size to the number of GPUs that gpu_facts shows, or pass the missing ones through (role lxc_gpu)",
        source="CUDA error 101",
    ),
    Signature(
        id="gpu.busy",
        pattern=r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable",
        cause="a GPU is in exclusive mode and another process has it, or it waits for a reset",
        fix="set the compute mode to default on the host: nvidia-smi -c 0",
        source="CUDA error 46",
    ),
    Signature(
        id="gpu.kernel_image",
        pattern=r"no kernel image is available for execution on the device",
        cause="a compiled package has no code for this generation of GPUs",
        fix="install the wheels of PyTorch and sglang-kernel for CUDA 12.8 or later: they have code for Blackwell "
        "(sm_120)",
        source=f"{_SGLANG}7249",
    ),
    Signature(
        id="gpu.ecc",
        pattern=r"uncorrectable ECC error encountered",
        cause="the memory of a GPU returned a wrong bit that cannot be corrected: a fault of the hardware",
        fix="run gpu_health, which reads the error counters; reset the GPU or reboot the host, and replace it if "
        "it returns",
        source="CUDA error 214; NVIDIA's Xid catalogue, Xid 48",
    ),
    Signature(
        id="gpu.lost",
        pattern=r"GPU is lost|GPU has fallen off the bus",
        cause="a GPU no longer answers on the PCIe bus: power, heat, its seat, or the card",
        fix="reboot the host, then run gpu_health and look for Xid 79 in the host's kernel log",
        source="NVIDIA's Xid catalogue, Xid 79",
    ),
    Signature(
        id="gpu.shared_memory",
        pattern=r"out of resource: shared memory, Required: (?P<want>\d+), Hardware limit: (?P<have>\d+)",
        cause="a Triton kernel asks for {want} bytes of shared memory per block, and this GPU has {have}",
        fix="install a version with block sizes for sm_120 (0.5.9 and later), or choose another attention_backend",
        source=f"https://github.com/sgl-project/sglang/pull/14311; {_SGLANG}2847",
        versions="before 0.5.9 on sm_120",
    ),
    Signature(
        id="gpu.nan",
        pattern=r"Detected errors during sampling! NaN in the logits|"
        r"probability tensor contains either `inf`, `nan` or element < 0",
        cause="the model computes no numbers: on sm_120 the kernels for NVFP4 weights do that",
        fix="use the INT4 or FP8 checkpoint of the model on RTX PRO 6000",
        source=f"{_SGLANG}18954, https://github.com/flashinfer-ai/flashinfer/issues/2577; "
        f"sglang/srt/layers/sampler.py:84 (0.5.12)",
    ),
    Signature(
        id="gpu.deep_gemm",
        pattern=r"Assertion error \([^)\n]{1,200}\.hpp:\d+\): (?P<why>Unknown SF transformation|Unknown "
        r"recipe|Unsupported architecture)",
        cause="DeepGEMM has no kernel for this generation of GPUs ({why})",
        fix="set SGLANG_ENABLE_JIT_DEEPGEMM=0 in the environment",
        source=f"{_SGLANG}25877",
    ),
    Signature(
        id="gpu.illegal_access",
        pattern=r"an illegal memory access was encountered",
        cause="a kernel read or wrote beyond its memory; the traceback stands where it was noticed, not where it "
        "happened",
        fix="start once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; then another attention_backend, or no "
        "speculation",
        source="CUDA error 700",
        kind=GENERAL,
    ),
    Signature(
        id="gpu.device_assert",
        pattern=r"device-side assert triggered",
        cause="a kernel found a value that must not be, most often an index beyond a table",
        fix="start once with CUDA_LAUNCH_BLOCKING=1 to see the kernel",
        source="CUDA error 710; NVIDIA's Xid catalogue, Xid 43",
        kind=GENERAL,
    ),
    Signature(
        id="gpu.capture",
        pattern=r"Capture cuda graph failed: (?P<why>[^\n]{1,200})",
        cause="a CUDA graph could not be captured: {why}",
        fix="find the cause in the first exception; the engine's advice to lower mem_fraction_static follows "
        "every failed "
        "capture, whatever it died of",
        source=f"{_H200}; sglang/srt/model_executor/runner_backend_utils/__init__.py:14 (0.5.20)",
        kind=GENERAL,
    ),
)

_PARALLEL = (
    Signature(
        id="nccl.timeout",
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\([^)\n]*OpType=(?P<what>\w+)",
        cause="the GPUs waited for each other in {what} until NCCL's limit: peer to peer does not work on this "
        "machine, or "
        "one rank had died",
        fix="start with NCCL_P2P_DISABLE=1; if that serves, turn off ACS in the host's firmware or set NCCL_P2P_LEVEL",
        source="https://github.com/NVIDIA/nccl/issues/1999, https://github.com/local-inference-lab/rtx6kpro/issues/15",
    ),
    Signature(
        id="nccl.watchdog",
        pattern=r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<limit>[\d.]+)(?:, self\.soft=False)?\)",
        cause="one forward pass took longer than {limit} s, so the engine ended itself: GPUs that wait for each "
        "other, or a "
        "kernel that was compiled meanwhile",
        fix="run gpu_health at level deep, which proves an all_reduce over all GPUs; for a cold cache raise "
        "watchdog_timeout once",
        source=f"sglang/srt/utils/watchdog.py:154 (0.5.20); {_SGLANG}3752",
    ),
    Signature(
        id="nccl.system",
        pattern=r"unhandled system error",
        cause="NCCL failed in a call to the system: sockets, shared memory, or memory that may not be locked",
        fix="start once with NCCL_DEBUG=WARN in the environment: it names the call",
        source=f"{_SGLANG}4289, {_SGLANG}3460",
        kind=GENERAL,
    ),
    Signature(
        id="nccl.cuda",
        pattern=r"unhandled cuda error",
        cause="NCCL failed in a call to CUDA",
        fix="start once with NCCL_DEBUG=WARN in the environment: it names the call",
        source="NCCL, ncclUnhandledCudaError",
        kind=GENERAL,
    ),
    Signature(
        id="nccl.custom_all_reduce",
        pattern=r"custom_all_reduce\w*\.cuh:\d+[^\n]*invalid argument",
        cause="the engine's own all_reduce cannot share the GPUs' memory: no NVLink, or PYTORCH_CUDA_ALLOC_CONF has "
        "expandable_segments",
        fix="set disable_custom_all_reduce, and take expandable_segments out of the environment",
        source=f"{_SGLANG}25649, https://github.com/sgl-project/sglang/pull/27948",
    ),
    Signature(
        id="nccl.rendezvous",
        pattern=r"client socket has (?:timed out|failed to connect)[^\n]*?\((?P<host>[^,()\n]+), (?P<port>\d+)\)",
        cause="a rank did not reach the first one at {host}, port {port}",
        fix="check dist_init_addr, node_rank and the firewall, and that the first node is starting",
        source="PyTorch, TCPStore",
    ),
    Signature(
        id="nccl.numa",
        pattern=r"^set(?:ting membind|_mempolicy): (?P<why>Invalid argument|Operation not permitted)",
        cause="the container may not bind memory to a NUMA node ({why}), and numactl ends before the engine's "
        "Python begins",
        fix="install 0.5.15 or later, which tries the binding first, or set SGLANG_NUMA_BIND_V2=0 in the environment",
        source=f"{_SGLANG}27368, https://github.com/sgl-project/sglang/pull/28401",
        versions="before 0.5.15",
    ),
)

_INSTALL = (
    Signature(
        id="install.kernels",
        pattern=r"\[sgl_kernel\] CRITICAL: Could not load any common_ops library",
        cause="sglang-kernel cannot be loaded: it was built for another PyTorch or CUDA, or a library of the "
        "system is missing",
        fix="install PyTorch and sglang-kernel as this SGLang pins them (role sglang_install); the log names what "
        "was missing "
        "under 'Error details'",
        source=f"{_SGLANG}29646, {_SGLANG}16052, https://github.com/sgl-project/sglang/pull/30562",
    ),
    Signature(
        id="install.symbol",
        pattern=r"^ImportError: (?P<file>/\S+\.so\S*): undefined symbol: (?P<symbol>\S+)",
        cause="{file} was built for another version of PyTorch or CUDA: it misses {symbol}",
        fix="install both as this SGLang pins them (role sglang_install)",
        source="https://github.com/agentica-project/rllm/issues/8",
    ),
    Signature(
        id="install.library",
        pattern=r"^(?:ImportError|OSError): (?P<file>lib[\w.+-]+): cannot open shared object file",
        cause="the library {file} is not installed",
        fix="install the package that holds it; libcudart, libnvrtc and libnccl come with the wheels that PyTorch "
        "asks for",
        source=f"{_SGLANG}16052",
    ),
    Signature(
        id="install.glibc",
        pattern=r"version `GLIBC_(?P<version>[\d.]+)' not found",
        cause="a wheel needs glibc {version}, which this distribution does not have",
        fix="use Debian 12, Ubuntu 22.04 or later: SGLang's wheels are built for glibc 2.34 from 0.5.11 on",
        source="the wheels' tag manylinux_2_34",
        versions="0.5.11 and later",
    ),
    Signature(
        id="install.too_old",
        pattern=r"^Exception: (?P<package>[\w-]+) (?:is installed with version (?P<have>\S+), which is less than "
        r"the|with) minimum "
        r"required version (?P<want>[\w.]*\w)",
        cause="the engine wants {package} {want} or later",
        fix="install the packages as this SGLang pins them (role sglang_install)",
        source="sglang/srt/utils/common.py:2210 (0.5.20)",
    ),
    Signature(
        id="install.compiler",
        pattern=r"Could not find nvcc|nvcc: not found|CUDA_HOME environment variable is not set|"
        r"Ninja is required to load C\+\+ extensions|No such file or directory: '(?:/[^'\n]*/)?(?:nvcc|ninja)'|"
        r"Could not find CUDA installation",
        cause="the engine compiles kernels at the first start, and nvcc or ninja is not on the unit's PATH",
        fix="install the compiler and name it in the unit's environment: CUDA_HOME and PATH (role cuda_toolkit)",
        source="https://github.com/smg-project/smg/pull/513 (0.5.9 and later compile kernels); gptq_marlin_repack "
        "on Kimi K2.6",
    ),
    Signature(
        id="install.compiler_old",
        pattern=r"nvcc fatal\s*: Unsupported gpu architecture '(?P<arch>\w+)'",
        cause="this nvcc is too old for the GPU: it does not know {arch}",
        fix="install CUDA 12.8 or later for Blackwell (role cuda_toolkit), and let CUDA_HOME name it",
        source="https://github.com/sgl-project/sglang/pull/9340",
    ),
    Signature(
        id="install.compile",
        pattern=r"ninja exited with status (?P<status>\d+)|ninja: build stopped",
        cause="a kernel could not be compiled",
        fix="read the first line with 'error:' in the log: it comes from the compiler",
        source=f"{_SGLANG}26545",
        kind=GENERAL,
    ),
    Signature(
        id="install.package",
        pattern=r"^ModuleNotFoundError: No module named '(?P<name>[\w.]+)'",
        cause="the engine imports {name}, which is not installed in its venv",
        fix="install the packages that this SGLang asks for (role sglang_install; sglang_info lists what is missing)",
        source="seen on an H200 with SGLang 0.5.15 (cutlass)",
        kind=GENERAL,
    ),
)

_SERVICE = (
    Signature(
        id="service.port",
        pattern=r"error while attempting to bind on address \('(?P<host>[^'\n]+)', (?P<port>\d+)[^\n]*address "
        r"already in use",
        cause="another process listens on port {port}; the engine finds that out after it has loaded everything",
        fix="end it (ss -ltnp sport = :{port} names it), or give this instance another port",
        source="uvicorn, server.py",
    ),
    Signature(
        id="service.inner_port",
        pattern=r"EADDRINUSE|zmq\.error\.ZMQError: Address already in use|"
        r"server socket has failed to listen on any local network address",
        cause="a port that the engine's processes use among themselves is taken, often by an instance that is "
        "still ending",
        fix="end the other instance, or set nccl_port and dist_init_addr to free ports",
        source="PyTorch, TCPStore; sglang/srt/utils/network.py",
    ),
    Signature(
        id="service.disk",
        pattern=r"No space left on device",
        unless=r"/dev/shm|</torch_",
        cause="a file system is full: the caches of compiled kernels, or the temporary folder",
        fix="free space (df -h names the file system), or move the caches to a larger one",
        source="ENOSPC",
    ),
    Signature(
        id="service.files",
        pattern=r"Too many open files",
        cause="the engine may not open more files or connections",
        fix="raise LimitNOFILE in its unit",
        source="EMFILE",
    ),
    Signature(
        id="service.permission",
        pattern=r"PermissionError: \[Errno 13\] Permission denied: '(?P<path>[^'\n]+)'",
        cause="the service's user may not use {path}",
        fix="give it to that user, or put the user into the file's group",
        source="EACCES",
    ),
    Signature(
        id="service.read_only",
        pattern=r"OSError: \[Errno 30\] Read-only file system: '(?P<path>[^'\n]+)'",
        cause="the engine wants to write to {path}, which its unit shows it as read-only",
        fix="move that cache below the service's home, or name the folder in ReadWritePaths",
        source="EROFS; the unit sets ProtectSystem=strict",
    ),
    Signature(
        id="service.spawn",
        pattern=r"Failed at step (?P<step>[A-Z_]+) spawning (?P<what>\S{1,200}): (?P<why>[^\n]+)",
        cause="systemd could not start {what}: {why} (step {step})",
        fix="install what the unit names: EXEC the venv, USER and GROUP the account, CHDIR and NAMESPACE the folders",
        source="systemd.exec(5), exit statuses 200 to 243",
    ),
    Signature(
        id="service.environment",
        pattern=r"Failed to load environment files: (?P<why>[^\n]+)",
        cause="systemd could not read the file of the unit's environment: {why}",
        fix="run the role sglang_server again, which writes it",
        source="systemd.exec(5), EnvironmentFile",
    ),
    Signature(
        id="service.stop_limit",
        pattern=r"State 'stop-sigterm' timed out\. Killing",
        cause="it was stopped, and its requests took longer than TimeoutStopSec: they were cut off",
        fix="raise the stop timeout of the unit above the longest answer, or drain the server before it is stopped",
        source="systemd.service(5); sglang/srt/managers/tokenizer_manager.py:3293 (0.5.20): it drains without a limit",
    ),
    Signature(
        id="service.stopped",
        pattern=r"SIGTERM received\. |^Stopping [^\n]*(?:sglang|SGLang)",
        unless=r"State 'stop-sigterm' timed out\. Killing",
        cause="it was stopped (systemctl stop or restart, a shutdown); the CUDA build then ends by SIGKILL after "
        "it has drained",
        fix="start it again if that was not meant",
        source=f"{_H200}; sglang/srt/managers/tokenizer_manager.py:3820 (0.5.20)",
        kind=STOP,
    ),
    Signature(
        id="service.killed",
        pattern=_ENDED + r" -9\b",
        cause="a process of the engine was killed from outside, most often because main memory ran out",
        fix="look into the kernel log of the host for 'Out of memory' (dmesg -T), and give the container more memory",
        source=f"{_H200}; https://github.com/sgl-project/sglang/pull/20287",
        kind=GENERAL,
    ),
    Signature(
        id="service.crashed",
        pattern=_ENDED + r" -(?P<signal>4|6|7|8|11)\b|Fatal Python error: (?P<what>[^\n]+)",
        cause="compiled code crashed in a process of the engine ({what}{signal})",
        fix="look at the lines before it for the last thing it did; signal 7 is a full /dev/shm, signal 4 a CPU "
        "without AVX",
        source="sglang/srt/utils/watchdog.py:218 (0.5.20)",
        kind=GENERAL,
    ),
    Signature(
        id="service.warm_up",
        pattern=r"Initialization failed\. warmup error:",
        cause="the server came up and did not answer its own first request",
        fix="read the exception that follows",
        source="sglang/srt/entrypoints/http_server.py:2238 (0.5.20)",
        kind=GENERAL,
    ),
    Signature(
        id="service.gave_up",
        pattern=r"Start request repeated too quickly",
        cause="systemd gave up after it had started the unit again and again",
        fix="repair what the first of those starts died of, then systemctl reset-failed and start",
        source="systemd.unit(5), StartLimitBurst",
        kind=GENERAL,
    ),
    Signature(
        id="service.main_killed",
        pattern=r"Main process exited, code=(?:killed|dumped), status=(?P<status>\d+/\w+)",
        cause="the engine's main process was ended by the signal {status}",
        fix="if nobody sent it, look into the kernel log of the host for 'Out of memory' (dmesg -T)",
        source="systemd.exec(5)",
        kind=GENERAL,
    ),
)

SIGNATURES = (*_FLAGS, *_DRAFTER, *_MODEL, *_MEMORY, *_GPU, *_PARALLEL, *_INSTALL, *_SERVICE)
