# Copyright (c) 2026, gpuserve contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings an instance to a release, forward or back, and tells what of it needs a restart. It restarts nothing."""

from __future__ import annotations

import hashlib
import json
import pwd
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .. import unit
from ..checks import FAIL
from ..engine.command_line import CommandLine
from ..files import write_whole
from ..hub import manifest
from ..lxc.devices import NODE_PREFIX
from . import caches, changes, nodes, release
from .store import ENVIRONMENT, ROOT, Proof, Record, Store

# In the unit's text: the release that it belongs to, and the variables of the kernel caches.
RELEASE_TOKEN = "@release@"
CACHES_TOKEN = "@caches@"
# The groups of the device nodes. It stays in what is kept of a release: they are the machine's, and may change.
GROUPS_TOKEN = "@groups@"
# The engine carries its release in its environment, so that what runs can be told from what is on disk.
VARIABLE = "GPUSERVE_RELEASE"
_UNITS = Path("/etc/systemd/system")


class ReleaseError(Exception):
    """The release cannot be taken; the text says why and what to do."""


@dataclass(frozen=True)
class Places:
    """Where things lie on a host."""

    releases: Path = ROOT
    units: Path = _UNITS
    caches: Path = caches.ROOT
    nodes: str = NODE_PREFIX


@dataclass(frozen=True)
class Wanted:
    """``environment`` is the text of an environment file, ``unit`` the unit's with the tokens in it.

    ``keys`` is the text of a configuration file of the engine's that holds its API keys, empty when it has none.
    """

    args: Sequence[str]
    environment: str
    keys: str
    venv: Path
    models: Sequence[Path]
    unit: str

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Wanted:
        """From the parameters of the modules that take a release or look at it."""
        models = [Path(model) for model in params["models"]]
        return cls(params["args"], params["environment"], params["keys"], Path(params["venv"]), models, params["unit"])


# What sglang.launch_server takes when the flags are not given (sglang/srt/server_args.py, 0.4.6 to 0.5.23).
_HOST, _PORT = "127.0.0.1", "30000"
_NUMBERS = ("--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens")


@dataclass(frozen=True)
class Asked:
    """What a release's arguments ask for: where it is reached from its own host, and what speculation it does."""

    url: str
    model: str
    drafter: str | None
    algorithm: str | None
    numbers: Mapping[str, int]

    @classmethod
    def of(cls, args: Sequence[str]) -> Asked:
        """Reads an argument list."""
        line = CommandLine.read(args, {})
        host = line.text("--host") or _HOST
        numbers = {flag[2:].replace("-", "_"): line.number(flag) for flag in _NUMBERS}
        return cls(
            f"http://{_HOST if host in ('0.0.0.0', '::') else host}:{line.text('--port') or _PORT}",
            line.text("--model-path") or "",
            line.text("--speculative-draft-model-path"),
            line.text("--speculative-algorithm"),
            {name: number for name, number in numbers.items() if number is not None},
        )


@dataclass(frozen=True)
class Outcome:
    """``restart`` says what takes effect only by a restart of the engine that runs, ``waits`` what can wait for one.

    ``before`` and ``after`` are the installed unit's text. ``running`` is None when nothing runs, and empty when what
    runs was started from no release. ``enabled``: the unit is started at each boot, ``stale``: systemd has yet to read
    it. ``warmth`` is None where no start is ahead.
    """

    record: Record
    changed: bool
    restart: Sequence[str]
    waits: Sequence[str]
    running: str | None
    proof: Proof | None
    before: str
    after: str
    warmth: caches.Warmth | None
    enabled: bool
    stale: bool

    @property
    def settled(self) -> bool:
        """Nothing is left to do but to ask what runs whether it still does what it did."""
        serves = bool(self.running) and not self.restart
        proven = self.proof is not None and self.proof.passed
        return serves and proven and self.enabled and not self.stale and _has_its_user(self.after)

    @property
    def release(self) -> str:
        """Its hash."""
        return self.record.release

    @property
    def asked(self) -> Asked:
        """What its arguments ask for."""
        return Asked.of(self.record.args)

    @property
    def identity(self) -> dict[str, object]:
        """What a measured speed of it belongs to."""
        return identity(self.record)

    def told(self) -> dict[str, object]:
        """What the modules return of it."""
        warmth = self.warmth
        return {
            "changed": self.changed,
            "release": self.release,
            "restart": list(self.restart),
            "waits": list(self.waits),
            "running": self.running,
            "proven": self.proof.passed if self.proof is not None else None,
            "settled": self.settled,
            "caches": warmth and {"folder": str(warmth.folder), "warm": warmth.warm, "sentence": warmth.sentence()},
            "asked": asdict(self.asked),
            "identity": dict(self.identity),
        }


def unit_name(instance: str) -> str:
    """The systemd unit of an instance."""
    return f"sglang@{instance}.service"


def record(args: Sequence[str], environment: str, keys: str, venv: Path, models: Sequence[Path]) -> Record:
    """What a start with these would be, as it would be written."""
    known = release.read(args, _digest(environment), _digest(keys), venv, models)
    return Record(
        known.hash,
        dict(known.parts),
        list(args),
        {name: _digest(value) for name, value in _variables(environment).items()},
        str(venv),
        [str(model) for model in models],
        time.time(),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _variables(environment: str) -> dict[str, str]:
    lines = (line for line in environment.splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def api_key(keys: str) -> str | None:
    """The key that clients give, out of the text of the engine's configuration file. None where it has none."""
    lines = dict(line.split(": ", 1) for line in keys.splitlines() if ": " in line)
    written = lines.get("api-key", "").strip()
    if written.startswith('"'):
        # One that cannot be read so is refused by the server, and asked for by the playbook.
        with suppress(ValueError):
            return str(json.loads(written))
        return None
    return written[1:-1].replace("''", "'") if written.startswith("'") else written or None


def running(instance: str) -> tuple[str | None, unit.UnitState | None]:
    """The release that the running engine was started from: None when nothing runs, empty when it was from none."""
    try:
        state = unit.state(unit_name(instance))
    except unit.UnitError:
        return None, None
    if not state.main_pid:
        return None, state
    return unit.environment(state.main_pid).get(VARIABLE, ""), state


def hold(places: Places, instance: str, wanted: Wanted, retry: bool, only_look: bool) -> Outcome:
    """Make what is wanted the current release of the instance, on disk and for systemd.

    Raises:
        ReleaseError: its gates failed before and ``retry`` is off, another process has its port, or the engine's user
            cannot be let at the device nodes.
        OSError: a file cannot be written.
    """
    store = Store(places.releases / instance)
    asked = record(wanted.args, wanted.environment, wanted.keys, wanted.venv, wanted.models)
    proof = store.proof(asked.release)
    if proof is not None and not proof.passed and not retry:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(proof.at))
        raise ReleaseError(
            f"this very release ({asked.release}) failed its gates on {when}: {proof.told}; change what caused it, or "
            f"set sglang_server_retry to true to start it once more"
        )
    runs, state = running(instance)
    if runs != asked.release:
        _refuse_a_taken_port(Asked.of(wanted.args), state)
    kernels = caches.folder(places.caches, wanted.venv)
    variables = " ".join(f'"{name}={value}"' for name, value in caches.environment(kernels).items())
    kept = wanted.unit.replace(RELEASE_TOKEN, asked.release).replace(CACHES_TOKEN, variables)
    found = _nodes(places)
    text = _for_this_machine(kept, found)
    restart, waits = _compare(places, store, instance, asked, wanted.environment, kept, found, runs, state)
    installed = _installed(places, instance)
    differs = store.differs(asked, kept, wanted.environment, wanted.keys)
    changed = differs or store.current != asked.release or installed != text
    if not only_look:
        if differs:
            store.write(asked, kept, wanted.environment, wanted.keys)
        _take(places, store, instance, asked.release, text, state)
        if state is not None and state.sub == "auto-restart":
            # Else the run's own start would be systemd's next, later, and told by the failure of the one before.
            unit.stop(unit_name(instance))
        if restart or runs is None:
            unit.forget_failures(unit_name(instance))
    return Outcome(
        record=asked,
        changed=changed,
        restart=restart,
        waits=waits,
        running=runs,
        proof=proof,
        before=installed,
        after=text,
        warmth=caches.look(kernels) if restart or runs is None else None,
        enabled=state is not None and state.enabled,
        stale=only_look and state is not None and state.stale,
    )


def remember(instance: Store, release_name: str, proof: Proof, keep: int, running: str | None) -> None:
    """Keep how the gates of a release went, and when they passed, of the older releases the newest ``keep``.

    The current one, the running one and the one to go back to always are. Done before a deploy has ended, the one that
    it replaces would have to be spared, and the next run would find something to remove.

    Raises:
        OSError: a file cannot be written.
    """
    if instance.record(release_name) is None:
        return
    instance.prove(release_name, proof)
    if proof.passed:
        earlier = instance.good(besides=instance.current)
        instance.prune(keep, (instance.current, running, earlier.release if earlier else None))


def _nodes(places: Places) -> list[nodes.Node]:
    found = nodes.look(places.nodes)
    judged = nodes.check(found)
    if judged is not None and judged.status == FAIL:
        raise ReleaseError(f"{judged.actual}; on this machine run {judged.fix}. Nothing was changed")
    return found


def _for_this_machine(kept: str, found: Sequence[nodes.Node]) -> str:
    return kept.replace(GROUPS_TOKEN, " ".join(nodes.groups(found)))


def _refuse_a_taken_port(asked: Asked, state: unit.UnitState | None) -> None:
    """The engine would find out when it has loaded everything."""
    port = urlsplit(asked.url).port
    own = unit.processes(state.control_group) if state is not None else []
    others = [pid for pid in unit.listeners(port or 0) if pid not in own]
    if others:
        named = ", ".join(f"{pid} ({unit.command(pid)})" for pid in others)
        raise ReleaseError(
            f"port {port} is taken by the process {named}; end it, or give another port (sglang_server_port). Nothing "
            f"was changed"
        )


def go_back(places: Places, instance: str, release_name: str | None, only_look: bool) -> Outcome:
    """Make an earlier release the current one: the named one, or the one whose gates passed last.

    Raises:
        ReleaseError: there is none, what it was made from is no longer there, or the engine's user cannot be let at the
            device nodes.
        OSError: a file cannot be written.
    """
    store = Store(places.releases / instance)
    chosen = store.record(release_name) if release_name else store.good(besides=store.current)
    if chosen is None:
        known = ", ".join(one.release for one in store.records()) or "none"
        what = f"release {release_name}" if release_name else "release whose gates passed, beside the current one,"
        raise ReleaseError(f"instance {instance} has no {what}; there is: {known}")
    environment, keys = store.secrets(chosen.release)
    now = record(chosen.args, environment, keys, Path(chosen.venv), [Path(model) for model in chosen.models])
    moved = [part for part, told in chosen.parts.items() if now.parts.get(part) != told]
    if moved:
        named = ", ".join({"engine": f"the engine in {chosen.venv}"}.get(part, part) for part in moved)
        raise ReleaseError(
            f"release {chosen.release} cannot be taken again: {named} is no longer what it was made from; run the main "
            f"playbook with the variables of that release"
        )
    text = _for_this_machine(store.unit(chosen.release), _nodes(places))
    runs, state = running(instance)
    installed = _installed(places, instance)
    changed = store.current != chosen.release or installed != text
    restart = [] if runs == chosen.release else [f"release {runs or store.current} -> {chosen.release}"]
    if not only_look:
        _take(places, store, instance, chosen.release, text, state)
        unit.forget_failures(unit_name(instance))
    proof = store.proof(chosen.release)
    return Outcome(
        record=chosen,
        changed=changed,
        restart=restart,
        waits=[],
        running=runs,
        proof=proof,
        before=installed,
        after=text,
        warmth=caches.look(caches.folder(places.caches, Path(chosen.venv))) if restart or runs is None else None,
        enabled=state is not None and state.enabled,
        stale=only_look and state is not None and state.stale,
    )


def identity(one: Record) -> dict[str, object]:
    """What a measured speed belongs to: base model, engine and GPUs. Where they are not known by hash, their paths."""
    model = Asked.of(one.args).model
    return {
        "model": one.parts.get(model) or model,
        "engine": one.parts.get("engine") or one.venv,
        "gpus": caches.gpus(),
    }


def _take(places: Places, store: Store, instance: str, chosen: str, text: str, state: unit.UnitState | None) -> None:
    if store.current != chosen:
        store.switch(chosen)
    if _installed(places, instance) != text:
        write_whole(places.units / unit_name(instance), text, mode=0o644)
        unit.reload_units()
    elif state is not None and state.stale:
        # A run died between the two.
        unit.reload_units()


def _has_its_user(text: str) -> bool:
    named = re.search(r"^User=(\S+)$", text, re.MULTILINE)
    if named is None:
        return True
    try:
        pwd.getpwnam(named[1])
    except KeyError:
        return False
    return True


def _installed(places: Places, instance: str) -> str:
    try:
        return (places.units / unit_name(instance)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _compare(
    places: Places,
    store: Store,
    instance: str,
    asked: Record,
    environment: str,
    kept: str,
    found: Sequence[nodes.Node],
    runs: str | None,
    state: unit.UnitState | None,
) -> tuple[list[str], list[str]]:
    if runs is None or state is None:
        return [], []
    known = store.record(runs) if runs else None
    if known is None:
        return ["what runs was started from no release that is known here"], []
    told = changes.between(known, asked) if runs != asked.release else []
    restart = [change.told for change in told if change.restarts]
    waits = [change.told for change in told if not change.restarts]
    # An edit by hand counts if the engine was started after it.
    file = places.units / unit_name(instance)
    installed = _installed(places, instance)
    if installed and _start_lines(installed) != _start_lines(store.unit(store.current or runs)):
        (restart if _older(file, state) else waits).append("the unit was edited by hand")
    elif runs == asked.release and kept != store.unit(runs):
        waits.append("what the unit says of limits and order")
    has = unit.groups(state.main_pid)
    lacking = {group: gid for group, gid in nodes.groups(found).items() if gid not in has}
    for group, gid in lacking.items():
        owned = ", ".join(node.path for node in found if node.by_group and node.gid == gid)
        restart.append(f"the engine is not in the group {group}, which owns {owned}")
    before, after = _groups_line(installed), _groups_line(_for_this_machine(kept, found))
    if before != after and not lacking:
        waits.append(f"the groups of the device nodes: {before or 'none'} -> {after or 'none'}")
    variables = store.path(runs) / ENVIRONMENT
    if runs == asked.release and store.environment_differs(runs, environment) and _older(variables, state):
        restart.append("the environment's file was edited by hand")
    restart += [
        f"the engine may have loaded a file of {model} that was wrong" for model in _mended(asked.models, state)
    ]
    return restart, waits


def _start_lines(text: str) -> list[str]:
    """What decides how the engine is started; of the groups the running engine itself tells."""
    names = r"(Exec\w+|Environment\w*|User|Group|WorkingDirectory|LoadCredential)="
    return [line for line in text.splitlines() if re.match(names, line)]


def _groups_line(text: str) -> str:
    """What a unit says of groups, empty where it says nothing."""
    found = re.search(r"^SupplementaryGroups=(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def _began(state: unit.UnitState) -> float | None:
    """When the engine was started, in seconds since the epoch."""
    return None if state.began is None else time.time() - (time.monotonic() - state.began)


def _older(path: Path, state: unit.UnitState) -> bool:
    """Whether a file was last changed before the engine's start."""
    began = _began(state)
    return began is None or path.stat().st_mtime < began


def _mended(models: Sequence[str], state: unit.UnitState) -> list[str]:
    """The models of which a file was wrong at the engine's start, and was put right since."""
    began = _began(state)
    if began is None:
        return []
    # An end that is yet to come is a clock's error, and would never be over.
    return [
        model
        for model in models
        if any(since <= began < until <= time.time() for since, until in manifest.wrong(Path(model)))
    ]
