#!/usr/bin/python
# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ask_together
short_description: Ask a host the questions of several modules in one call
version_added: 0.1.0
author: gpuserve contributors (@gpuserve)
description:
  - Answers what M(gpuserve.sglang.hf_snapshot_info), M(gpuserve.sglang.gpu_health),
    M(gpuserve.sglang.cuda_toolkit_info), M(gpuserve.sglang.sglang_venv), M(gpuserve.sglang.sglang_release_info) and
    M(gpuserve.sglang.sglang_probe) answer, each with the same arguments and the same result, at the price of one call
    to the host.
  - An answer that failed does not make this module fail, nor do arguments that its module refuses. Whoever asked has to
    look at C(failed) of each.
  - It fails for a module that cannot be asked and for secrets in the wrong place, before anything is looked at.
options:
  questions:
    description:
      - The questions, each under the name that its answer is to have.
      - Each has C(module), the name of one of the modules above without C(gpuserve.sglang), and C(arguments), a
        dictionary of the module's options. One that is null counts as not given.
      - V(sglang_venv) and V(sglang_probe) are answered as in check mode.
    type: dict
    required: true
  secrets:
    description:
      - The arguments that are secrets (C(token) of V(hf_snapshot_info), C(environment) and C(keys) of
        V(sglang_release_info), C(api_key) of V(sglang_probe)), in a dictionary under the name of the question.
      - They are taken here only, since O(questions) is shown in logs.
    type: dict
    default: {}
extends_documentation_fragment:
  - gpuserve.sglang.attributes.read_only
"""

EXAMPLES = r"""
- name: See what is left to do
  gpuserve.sglang.ask_together:
    questions:
      models:
        module: hf_snapshot_info
        arguments:
          models:
            - repo_id: moonshotai/Kimi-K2.6
              allow_moving: true
              dest: /srv/models/moonshotai/Kimi-K2.6
      gpus:
        module: gpu_health
        arguments:
          expected_count: 8
      venv:
        module: sglang_venv
        arguments:
          path: /opt/sglang/engine-0.5.20
          wheelhouse: /srv/wheelhouse/sglang
    secrets:
      models:
        token: "{{ hf_models_token }}"
  register: host

- name: Stop at GPUs that are not sound
  ansible.builtin.assert:
    that: not host.answers.gpus.failed
    fail_msg: "{{ host.answers.gpus.msg }}"
"""

RETURN = r"""
answers:
  description:
    - For each name what its module returns, and three values that an answer always has.
    - Warnings of a module come as warnings of this one, with the name before them.
  returned: success
  type: dict
  contains:
    failed:
      description: Whether the module would fail.
      type: bool
    msg:
      description: The module's message, empty where it has none.
      type: str
    changed:
      description: Whether the module would change something.
      type: bool
  sample:
    models:
      changed: false
      failed: false
      msg: ""
      models: []
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.gpuserve.sglang.plugins.module_utils.driver.question import QUESTION as CUDA_TOOLKIT_INFO
from ansible_collections.gpuserve.sglang.plugins.module_utils.gpu.question import QUESTION as GPU_HEALTH
from ansible_collections.gpuserve.sglang.plugins.module_utils.hub.question import QUESTION as HF_SNAPSHOT_INFO
from ansible_collections.gpuserve.sglang.plugins.module_utils.installation_question import QUESTION as SGLANG_VENV
from ansible_collections.gpuserve.sglang.plugins.module_utils.probe.question import QUESTION as SGLANG_PROBE
from ansible_collections.gpuserve.sglang.plugins.module_utils.question import Question, told
from ansible_collections.gpuserve.sglang.plugins.module_utils.service.question import QUESTION as SGLANG_RELEASE_INFO

QUESTIONS = {
    "cuda_toolkit_info": CUDA_TOOLKIT_INFO,
    "gpu_health": GPU_HEALTH,
    "hf_snapshot_info": HF_SNAPSHOT_INFO,
    "sglang_probe": SGLANG_PROBE,
    "sglang_release_info": SGLANG_RELEASE_INFO,
    "sglang_venv": SGLANG_VENV,
}
ASKED = {
    "module": {"type": "str", "required": True, "choices": list(QUESTIONS)},
    "arguments": {"type": "dict", "default": {}},
}


class Wrong(Exception):
    """What is wrong in the asking: a line for each fault, with the fix."""


def given(arguments: object, where: str) -> dict[str, Any]:
    """The arguments that are not null. Raises Wrong."""
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise Wrong(f"{where}: expected a dictionary; found {type(arguments).__name__}; correct it")
    return {name: value for name, value in arguments.items() if value is not None}


def misplaced(name: str, what: str, shown: Mapping[str, Any], hidden: Mapping[str, Any]) -> list[str]:
    """A line for each argument that belongs to the other option."""
    secrets = {argument for argument, spec in QUESTIONS[what].arguments.items() if spec.get("no_log")}
    return [
        *(
            f"questions.{name}.arguments.{argument}: a secret of {what}, which this shows; give it in secrets.{name}"
            for argument in sorted(secrets & set(shown))
        ),
        *(
            f"secrets.{name}.{argument}: this is no secret of {what}; give it in questions.{name}.arguments"
            for argument in sorted(set(hidden) - secrets)
        ),
    ]


def understood(name: str, asked: object, secrets: object) -> tuple[Question, dict[str, Any]]:
    """One question, and what its module is given. Raises Wrong."""
    where = f"questions.{name}"
    form = ArgumentSpecValidator(ASKED).validate(given(asked, where))
    if form.error_messages:
        raise Wrong("\n".join(f"{where}: {message.rstrip('.')}; correct it" for message in form.error_messages))
    what = form.validated_parameters["module"]
    shown = given(form.validated_parameters["arguments"], f"{where}.arguments")
    hidden = given(secrets, f"secrets.{name}")
    question = QUESTIONS[what]
    if wrong := misplaced(name, what, shown, hidden):
        raise Wrong("\n".join(wrong))
    return question, {**shown, **hidden}


def answered(question: Question, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the module would return, be it that it refuses its arguments."""
    found = ArgumentSpecValidator(question.arguments, **question.rules).validate(arguments)
    if found.error_messages:
        return {"failed": True, "msg": found.errors.msg}
    return told(question.answer, found.validated_parameters)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "questions": {"type": "dict", "required": True},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    asked, secrets = module.params["questions"], module.params["secrets"]
    wrong = [
        f"secrets.{name}: nothing of this name is asked; give it the name of a question, or leave it out"
        for name in secrets
        if name not in asked
    ]
    ready = {}
    for name, one in asked.items():
        try:
            ready[name] = understood(name, one, secrets.get(name))
        except Wrong as error:
            wrong.append(str(error))
    if wrong:
        # Without the arguments: a secret may be among them.
        module.fail_json(msg="\n".join(wrong), invocation={})
    answers = {}
    for name, (question, arguments) in ready.items():
        answer = answered(question, arguments)
        for warning in answer.pop("warnings", []):
            module.warn(f"{name}: {warning}")
        # As every result has them when it is registered.
        answers[name] = {"changed": False, "failed": False, "msg": "", **answer}
    module.exit_json(changed=False, answers=answers)


if __name__ == "__main__":
    main()
