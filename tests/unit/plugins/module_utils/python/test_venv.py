# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import pip, state, venv

from tests.fixtures import venvs, wheels


class Made(NamedTuple):
    """A finished venv that holds ``alpha`` 1.0 and its ``beta`` 1.0, and the request that made it."""

    request: venv.Request
    path: Path
    house: Path


@pytest.fixture(scope="session")
def finished(empty_venv: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("finished")
    house = folder / "house"
    wheels.wheel(house, "alpha", "1.0", requires=["beta"])
    wheels.wheel(house, "beta", "1.0")
    wheels.lock(house)
    path = venvs.copy(empty_venv, folder / "engine")
    request = venv.Request(path, python=venvs.PYTHON, wheelhouse=house)
    venv.converge(request)
    return Made(request, path, house)


@pytest.fixture
def made(finished: Made, tmp_path: Path) -> Made:
    """One of our own, to be broken."""
    path = venvs.copy(finished.path, tmp_path / "engine")
    house = Path(shutil.copytree(finished.house, tmp_path / "house"))
    return Made(replace(finished.request, path=path, wheelhouse=house), path, house)


@pytest.fixture
def empty(empty_venv: Path, tmp_path: Path) -> Path:
    return venvs.copy(empty_venv, tmp_path / "engine")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A wheelhouse with ``alpha`` 1.0 alone."""
    folder = tmp_path / "house"
    wheels.wheel(folder, "alpha", "1.0")
    wheels.lock(folder)
    return folder


def tree(path: Path) -> dict[str, tuple[int, int]]:
    """Everything in a folder, with its time of change and size."""
    found = {}
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            status = (Path(folder) / name).lstat()
            found[str(Path(folder) / name)] = (status.st_mtime_ns, status.st_size)
    return found


def no_command(*_arguments: object, **_named: object) -> str:
    raise AssertionError("a command was run")


# --- making one ------------------------------------------------------------------------------------------------------


def test_a_venv_is_made_from_nothing(tmp_path: Path, house: Path) -> None:
    path = tmp_path / "sglang" / "engine"
    outcome = venv.converge(venv.Request(path, python=venvs.PYTHON, wheelhouse=house))
    assert outcome.problems == ["there is no venv yet"]
    assert outcome.repairs == ["the venv was made", "pip was brought by ensurepip", "1 packages were installed"]
    assert outcome.changed
    assert venvs.packages(path) == {"alpha": "1.0"}
    record = state.read_record(path)
    assert record is not None
    assert (record.packages, record.finished) == ({"alpha": "1.0"}, True)


def test_a_strict_umask_does_not_lock_the_services_user_out(tmp_path: Path, house: Path) -> None:
    before = os.umask(0o077)
    try:
        path = tmp_path / "sglang" / "engine"
        venv.converge(venv.Request(path, python=venvs.PYTHON, wheelhouse=house))
    finally:
        assert os.umask(before) == 0o077
    closed = [
        item for item in [path.parent, path, *path.rglob("*")] if not item.is_symlink() and not item.stat().st_mode & 4
    ]
    assert closed == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


@pytest.mark.parametrize("creator", ["virtualenv", "uv"])
def test_a_creator_that_is_really_here(creator: str, tmp_path: Path, house: Path) -> None:
    if shutil.which(creator) is None:
        pytest.skip(f"{creator} is not installed here")
    path = tmp_path / "engine"
    outcome = venv.converge(venv.Request(path, python=venvs.PYTHON, creator=creator, wheelhouse=house))
    assert outcome.repairs[0] == "the venv was made"
    assert venvs.packages(path)["alpha"] == "1.0"
    shutil.rmtree(path / "bin")
    again = venv.converge(venv.Request(path, python=venvs.PYTHON, creator=creator, wheelhouse=house))
    assert again.repairs[0] == "the venv was made again"


def creators(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Scripts in the place of virtualenv and uv that make a venv by other means and leave their name in it."""
    folder.mkdir()
    for name in names:
        script = folder / name
        make = f'{venvs.PYTHON} -I -m venv --without-pip "$last"'
        script.write_text(f'#!/bin/sh\nfor last; do :; done\n{make}\ntouch "$last/by-{name}"\n', encoding="utf-8")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")


def python_without(module: str, folder: Path) -> str:
    """A Python that lacks a module when it is asked for, as Debian's does before python3-venv is there."""
    script = folder / "python-without"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *{module}*) echo "No module named {module}" >&2; exit 1 ;; esac\n'
        f'exec {venvs.PYTHON} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("creator", "command"),
    [("auto", venvs.PYTHON), ("venv", venvs.PYTHON), ("virtualenv", "virtualenv"), ("uv", "uv")],
)
def test_the_creator_that_is_asked_for_is_taken(
    creator: str, command: str, tmp_path: Path, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    creators(tmp_path / "bin", monkeypatch, "virtualenv", "uv")
    request = venv.Request(tmp_path / "engine", python=venvs.PYTHON, creator=creator, wheelhouse=house)
    assert venv._creator(request)[0] == command


def test_auto_goes_on_to_the_next_creator_when_venv_is_not_there(
    tmp_path: Path, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    creators(tmp_path / "bin", monkeypatch, "uv")
    path = tmp_path / "engine"
    venv.converge(venv.Request(path, python=python_without("venv", tmp_path), wheelhouse=house))
    assert (path / "by-uv").exists()


def test_venv_without_ensurepip_will_do_when_there_is_a_wheel_of_pip(
    tmp_path: Path, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    creators(tmp_path / "bin", monkeypatch, "virtualenv")
    python = python_without("ensurepip", tmp_path)
    monkeypatch.setattr(venv, "PIP_WHEELS", tmp_path / "nowhere")
    command = venv._creator(venv.Request(tmp_path / "engine", python=python, wheelhouse=house))
    assert command[0] == "virtualenv"
    wheels.wheel(house, "pip", "99")
    command = venv._creator(venv.Request(tmp_path / "engine", python=python, wheelhouse=house))
    assert command[:4] == [python, "-I", "-m", "venv"]


@pytest.mark.parametrize(
    ("creator", "package"), [("auto", "python3-venv"), ("venv", "python3-venv"), ("virtualenv", "virtualenv")]
)
def test_no_creator_is_told_with_the_package_to_install(
    creator: str, package: str, tmp_path: Path, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    creators(tmp_path / "bin", monkeypatch)
    request = venv.Request(
        tmp_path / "engine", python=python_without("venv", tmp_path), creator=creator, wheelhouse=house
    )
    with pytest.raises(state.VenvError, match=f"nothing here can make a venv .* package {package}$"):
        venv.converge(request)


def test_a_python_that_is_not_there(tmp_path: Path, house: Path) -> None:
    with pytest.raises(state.VenvError, match=r"no Python that starts as python3.99; install it or name another"):
        venv.converge(venv.Request(tmp_path / "engine", python="python3.99", wheelhouse=house))


# --- nothing to do ---------------------------------------------------------------------------------------------------


def test_a_finished_venv_is_left_alone_and_no_command_runs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(made.path)
    monkeypatch.setattr(pip, "run", no_command)
    outcome = venv.converge(made.request)
    assert (outcome.problems, outcome.repairs, outcome.changed) == ([], [], False)
    assert outcome.before == outcome.after
    assert tree(made.path) == before


def test_a_comment_in_the_lock_is_no_other_request(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "run", no_command)
    lock = made.house / "lock.txt"
    lock.write_text("# renewed\n" + lock.read_text(encoding="utf-8"), encoding="utf-8")
    assert not venv.converge(made.request).problems


def test_a_foreign_package_is_kept_and_is_nothing_to_do(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    venvs.install(made.path, wheels.wheel(made.path.parent, "foreign", "3"))
    monkeypatch.setattr(pip, "run", no_command)
    outcome = venv.converge(made.request)
    assert (outcome.problems, outcome.changed) == ([], False)


# --- the repairs -----------------------------------------------------------------------------------------------------


def lose_pip(path: Path) -> None:
    for item in venvs.site(path).glob("pip*"):
        shutil.rmtree(item)


def lose_pip_but_for_its_name(path: Path) -> None:
    shutil.rmtree(venvs.site(path) / "pip")


def kill_link(path: Path) -> None:
    link = path / "bin" / "python3"
    (path / "bin" / "python").unlink()
    link.unlink()
    link.symlink_to("/usr/bin/python3.99")
    (path / "bin" / "python").symlink_to("python3")


def other_minor(path: Path) -> None:
    settings = path / "pyvenv.cfg"
    text = settings.read_text(encoding="utf-8")
    settings.write_text("\n".join("version = 3.9.2" if "version" in line else line for line in text.splitlines()))


def no_settings(path: Path) -> None:
    (path / "pyvenv.cfg").unlink()


def lose_metadata(path: Path) -> None:
    (venvs.site(path) / "beta-1.0.dist-info" / "RECORD").unlink()


def leave_remains(path: Path) -> None:
    (venvs.site(path) / "beta-1.0.dist-info").rename(venvs.site(path) / "~eta-1.0.dist-info")
    (venvs.site(path) / "~eta.py").touch()


def two_versions(path: Path) -> None:
    shutil.copytree(venvs.site(path) / "beta-1.0.dist-info", venvs.site(path) / "beta-0.9.dist-info")


def lose_record(path: Path) -> None:
    (path / state.RECORD).unlink()
    (venvs.site(path) / "beta.py").unlink()
    shutil.rmtree(venvs.site(path) / "beta-1.0.dist-info")


def cut_record(path: Path) -> None:
    (path / state.RECORD).write_text('{"key": ', encoding="utf-8")
    shutil.rmtree(venvs.site(path) / "beta-1.0.dist-info")


def remove_package(path: Path) -> None:
    shutil.rmtree(venvs.site(path) / "beta-1.0.dist-info")


def other_version(path: Path) -> None:
    venvs.install(path, wheels.wheel(path.parent, "beta", "0.5"))


BREAKS: list[tuple[Callable[[Path], None], str]] = [
    (lose_pip, "it has no pip"),
    (lose_pip_but_for_its_name, "it has no pip"),
    (kill_link, "its Python is a link to /usr/bin/python3.99, which is not there"),
    (other_minor, "its Python is .*, but it was made for 3.9"),
    (no_settings, "its pyvenv.cfg does not say which Python it was made for"),
    (lose_metadata, "half-installed: beta-1.0.dist-info"),
    (leave_remains, "half-installed: ~eta-1.0.dist-info, ~eta.py"),
    (two_versions, "half-installed: beta-1.0.dist-info, beta-0.9.dist-info"),
    (lose_record, "an earlier installation was not finished"),
    (cut_record, "an earlier installation was not finished"),
    (remove_package, "beta 1.0 is missing"),
    (other_version, "beta is 0.5, installed was 1.0"),
]


@pytest.mark.parametrize(("breaks", "problem"), BREAKS, ids=[breaks.__name__ for breaks, dummy in BREAKS])
def test_whatever_it_was_it_is_whole_after_one_run(
    breaks: Callable[[Path], None], problem: str, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(made.path)
    broken = tree(made.path)

    looked = venv.converge(made.request, check_mode=True)
    assert looked.changed
    assert re.search(problem, looked.problems[0])
    assert looked.after is None
    assert tree(made.path) == broken

    outcome = venv.converge(made.request)
    assert outcome.problems == looked.problems
    assert outcome.changed
    assert venvs.packages(made.path) == {"alpha": "1.0", "beta": "1.0"}
    assert list(venvs.site(made.path).glob("~*")) == []

    monkeypatch.setattr(pip, "run", no_command)
    assert venv.converge(made.request).problems == []


def test_pip_comes_from_a_wheel_where_there_is_no_ensurepip(made: Made) -> None:
    bundled = [*venv.PIP_WHEELS.glob("pip-*.whl")]
    if not bundled:
        pytest.skip(f"no wheel of pip in {venv.PIP_WHEELS}")
    lose_pip(made.path)
    venvs.lose_ensurepip(made.path)
    outcome = venv.converge(made.request)
    assert outcome.repairs == [f"pip was brought from {bundled[0]}"]
    assert venvs.packages(made.path) == {"alpha": "1.0", "beta": "1.0"}


def test_no_pip_to_be_had_is_told_with_the_package_to_install(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "PIP_WHEELS", made.path / "nowhere")
    lose_pip(made.path)
    venvs.lose_ensurepip(made.path)
    with pytest.raises(state.VenvError, match=r"No module named ensurepip\nfix: install .* python3-venv"):
        venv.converge(made.request)


def test_a_run_that_is_killed_in_the_middle_is_finished_by_the_next(made: Made) -> None:
    wheels.wheel(made.house, "alpha", "2.0", requires=["beta"])
    (made.house / "alpha-1.0-py3-none-any.whl").unlink()
    wheels.lock(made.house)
    request = replace(made.request)

    def killed(_path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        venv.converge(request, accept=killed)
    assert venv.converge(request, check_mode=True).problems == ["an earlier installation was not finished"]
    outcome = venv.converge(request)
    assert not outcome.changed  # The packages were all there; it only had not been said.
    assert not venv.converge(request).problems


def test_what_is_not_accepted_stays_unfinished_and_is_judged_again(made: Made) -> None:
    request = replace(made.request, lock=wheels.lock_text([*made.house.glob("beta*.whl")]))
    judged: list[Path] = []

    def refuse(path: Path) -> None:
        judged.append(path)
        raise ValueError("not with this engine")

    for dummy in range(2):
        with pytest.raises(ValueError, match="not with this engine"):
            venv.converge(request, accept=refuse)
    assert judged == [made.path, made.path]


def left_by_an_interrupted_run(path: Path, seconds: float) -> subprocess.Popen[bytes]:
    """It is gone itself, its pip goes on and holds what it was given."""
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    left = subprocess.Popen(["/bin/sleep", str(seconds)], pass_fds=[held])
    os.close(held)
    return left


def test_two_at_once_do_not_mix(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "_PATIENCE_S", 0)
    lose_pip(made.path)
    left = left_by_an_interrupted_run(made.path, 60)
    try:
        with pytest.raises(state.VenvError, match=rf"into it after 0 s \(process {left.pid}\); wait"):
            venv.converge(made.request)
    finally:
        left.kill()
        left.wait()
    assert venv.converge(made.request).changed


def test_an_installation_that_an_interrupted_run_left_is_waited_for(made: Made) -> None:
    lose_pip(made.path)
    with left_by_an_interrupted_run(made.path, 1):
        assert venv.converge(made.request).changed
    assert not venv.converge(made.request).problems


def test_what_it_ended_with_is_looked_at_anew(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done twice where it came to a good end."""
    lose_pip(made.path)
    inspect = venv.inspect
    broken = inspect(made.path)
    venv.converge(made.request)
    looks = iter([broken])
    monkeypatch.setattr(venv, "inspect", lambda path: next(looks, None) or inspect(path))
    with left_by_an_interrupted_run(made.path, 1):
        assert not venv.converge(made.request).changed


# --- what is no venv -------------------------------------------------------------------------------------------------


def test_a_folder_with_other_things_is_never_emptied(tmp_path: Path, house: Path) -> None:
    path = tmp_path / "models"
    (path / "Kimi-K2.6").mkdir(parents=True)
    for check_mode in (True, False):
        with pytest.raises(state.VenvError, match=r"models holds Kimi-K2.6 and is no virtual environment"):
            venv.converge(venv.Request(path, python=venvs.PYTHON, wheelhouse=house), check_mode=check_mode)
    assert (path / "Kimi-K2.6").is_dir()


def test_a_file_and_a_dead_link_are_told(tmp_path: Path, house: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(state.VenvError, match="is no folder"):
        venv.converge(venv.Request(tmp_path / "file", wheelhouse=house))
    with pytest.raises(state.VenvError, match=r"is a link to .*nowhere, which is not there"):
        venv.converge(venv.Request(tmp_path / "link", wheelhouse=house))


def test_one_that_was_killed_in_its_first_moments_is_made_again(tmp_path: Path, house: Path) -> None:
    path = tmp_path / "engine"
    for name in ("bin", "lib"):
        (path / name).mkdir(parents=True)
    venv.converge(venv.Request(path, python=venvs.PYTHON, wheelhouse=house))
    assert venvs.packages(path) == {"alpha": "1.0"}


def test_a_link_to_a_venv_stays_one(made: Made) -> None:
    link = made.path.parent / "current"
    link.symlink_to(made.path)
    kill_link(made.path)
    venv.converge(replace(made.request, path=link))
    assert link.is_symlink()
    assert venvs.packages(made.path) == {"alpha": "1.0", "beta": "1.0"}


def test_a_python_that_hangs_does_not_cost_the_venv(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_START_LIMIT_S", 0.2)
    python = made.path / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nsleep 5\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(state.VenvError, match="does not answer within"):
        venv.converge(made.request)
    assert (venvs.site(made.path) / "alpha.py").exists()


def test_another_python_that_is_asked_for(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = tmp_path / "python-newer"
    newer.write_text("#!/bin/sh\necho 3.99.1 1.0\n", encoding="utf-8")
    newer.chmod(0o755)
    looked = venv.converge(replace(made.request, python=str(newer)), check_mode=True)
    assert looked.problems[0].endswith("asked for is 3.99.1")
    # The same one by another name is not another one.
    link = tmp_path / "python-link"
    link.write_text(f'#!/bin/sh\nexec {venvs.PYTHON} "$@"\n', encoding="utf-8")
    link.chmod(0o755)
    assert venv.converge(replace(made.request, python=str(link))).problems == []


# --- packages --------------------------------------------------------------------------------------------------------


def test_exclusive_removes_what_the_request_does_not_bring(made: Made) -> None:
    venvs.install(made.path, wheels.wheel(made.path.parent, "foreign", "3"))
    request = replace(made.request, exclusive=True)
    looked = venv.converge(request, check_mode=True)
    assert looked.problems == ["foreign does not belong to it"]
    outcome = venv.converge(request)
    assert outcome.repairs == ["foreign was removed"]
    assert venvs.packages(made.path) == {"alpha": "1.0", "beta": "1.0"}
    assert not venv.converge(request).problems


def test_foreign_packages_that_a_new_venv_cannot_keep_are_told(made: Made) -> None:
    venvs.install(made.path, wheels.wheel(made.path.parent, "foreign", "3"))
    other_minor(made.path)
    outcome = venv.converge(made.request)
    assert outcome.repairs[-1] == "foreign was not brought back, since nothing asks for it"


@pytest.fixture
def from_requirements(empty: Path, tmp_path: Path) -> venv.Request:
    """Requirements with and without dependencies, from a folder that has no lock of its own."""
    house = tmp_path / "house"
    wheels.wheel(house, "alpha", "1.0", requires=["beta[fast]>=1", 'gamma ; python_version < "3"'])
    for_extras = ['delta ; extra == "fast"', 'epsilon ; extra == "slow"']
    for version in ("1.0", "2.0"):
        wheels.wheel(house, "beta", version, requires=for_extras, extras=["fast", "slow"])
    for name in ("delta", "gamma", "epsilon", "zeta"):
        wheels.wheel(house, name, "2.0")
    wheels.wheel(house, "zeta", "1.0", requires=["epsilon"])
    return venv.Request(
        empty,
        python=venvs.PYTHON,
        requirements=("alpha",),
        requirements_no_deps=("zeta==1.0",),
        constraints=("beta<2",),
        index_url=house.as_uri(),
    )


@pytest.fixture
def folder_as_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index needs a server; a folder of wheels does the same for pip."""
    monkeypatch.setattr(pip.Source, "arguments", lambda source: ["--no-index", "--find-links", str(source.index_url)])


@pytest.mark.usefixtures("folder_as_index")
def test_requirements_and_their_constraints(from_requirements: venv.Request, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = venv.converge(from_requirements)
    assert outcome.repairs == ["4 packages were installed"]
    there = {"alpha": "1.0", "beta": "1.0", "delta": "2.0", "zeta": "1.0"}
    assert venvs.packages(from_requirements.path) == there
    record = state.read_record(from_requirements.path)
    assert record is not None
    assert record.packages == there
    monkeypatch.setattr(pip, "run", no_command)
    assert venv.converge(from_requirements).problems == []


@pytest.mark.usefixtures("folder_as_index")
def test_what_was_there_before_and_is_not_needed_is_foreign(from_requirements: venv.Request, tmp_path: Path) -> None:
    venvs.install(from_requirements.path, wheels.wheel(tmp_path, "foreign", "3"))
    venv.converge(from_requirements)
    record = state.read_record(from_requirements.path)
    assert record is not None
    assert "foreign" not in record.packages
    assert venv.converge(replace(from_requirements, exclusive=True)).repairs == ["foreign was removed"]


@pytest.mark.usefixtures("folder_as_index")
def test_another_requirement_changes_the_package(from_requirements: venv.Request) -> None:
    venv.converge(from_requirements)
    request = replace(from_requirements, constraints=("beta==2.0",))
    outcome = venv.converge(request)
    assert outcome.problems == ["other packages are asked for than were installed"]
    assert outcome.repairs == ["1 packages were installed"]
    assert venvs.packages(request.path)["beta"] == "2.0"


@pytest.mark.usefixtures("folder_as_index")
def test_a_request_that_changes_no_package_is_no_change(from_requirements: venv.Request) -> None:
    venv.converge(from_requirements)
    outcome = venv.converge(replace(from_requirements, requirements=("alpha>=1",)))
    assert outcome.problems == ["other packages are asked for than were installed"]
    assert not outcome.changed


@pytest.mark.usefixtures("folder_as_index")
def test_another_url_of_the_same_version_is_another_package(empty: Path, tmp_path: Path) -> None:
    first = wheels.wheel(tmp_path / "monday", "alpha", "1.0.dev0", files={"alpha.py": "DAY = 1\n"})
    second = wheels.wheel(tmp_path / "friday", "alpha", "1.0.dev0", files={"alpha.py": "DAY = 5\n"})
    request = venv.Request(empty, python=venvs.PYTHON, requirements=(f"alpha @ {first.as_uri()}",), index_url="/srv")
    venv.converge(request)
    assert not venv.converge(request).problems
    outcome = venv.converge(replace(request, requirements=(f"alpha @ {second.as_uri()}",)))
    assert outcome.changed
    assert (venvs.site(empty) / "alpha.py").read_text(encoding="utf-8") == "DAY = 5\n"


def test_a_wheel_that_was_built_again_is_another_package(made: Made) -> None:
    wheels.wheel(made.house, "beta", "1.0", files={"beta.py": "BUILT = 2\n"})
    wheels.lock(made.house)
    outcome = venv.converge(replace(made.request))
    assert outcome.repairs == ["1 packages were installed"]
    assert (venvs.site(made.path) / "beta.py").read_text(encoding="utf-8") == "BUILT = 2\n"


def test_a_requirement_without_a_name_is_refused_before_anything(tmp_path: Path) -> None:
    request = venv.Request(tmp_path / "engine", requirements=("git+https://example.test/sglang.git",))
    with pytest.raises(state.VenvError, match="NAME @ URL"):
        venv.converge(request)
    assert not request.path.exists()


# --- locks and wheelhouses -------------------------------------------------------------------------------------------


def test_a_wrong_hash_is_told_and_leaves_the_venv_unfinished(made: Made) -> None:
    lock = made.house / "lock.txt"
    text = lock.read_text(encoding="utf-8")
    # The digits backwards: any fixed ones might be those of the wheel.
    wrong = re.sub("(?<=beta==1.0 --hash=sha256:)[0-9a-f]+", lambda digits: digits[0][::-1], text)
    lock.write_text(wrong, encoding="utf-8")
    remove_package(made.path)
    with pytest.raises(state.VenvError, match=r"(?s)beta==1.0.*fix: a wheel is not the one whose hash the lock names"):
        venv.converge(replace(made.request))
    looked = venv.converge(replace(made.request), check_mode=True)
    assert looked.problems == ["an earlier installation was not finished"]


def test_a_lock_without_hashes_is_refused(made: Made) -> None:
    remove_package(made.path)
    with pytest.raises(state.VenvError, match="fix: the lock has entries without a hash"):
        venv.converge(replace(made.request, lock="beta==1.0\n"))


def test_a_lock_that_is_no_lock(made: Made) -> None:
    with pytest.raises(state.VenvError, match="the lock cannot be used: the requirement '<html>' names no package"):
        venv.converge(replace(made.request, lock="<html>\n"))


def test_no_wheelhouse_and_no_lock_in_it_are_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()
    for house in (tmp_path / "house", tmp_path / "nowhere"):
        with pytest.raises(state.VenvError, match=f"{house}/lock.txt cannot be read .*playbooks/wheelhouse.yml"):
            venv.converge(venv.Request(tmp_path / "engine", wheelhouse=house))
    assert not (tmp_path / "engine").exists()


def test_a_lock_of_ones_own_counts_more_than_the_wheelhouses(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = (made.house / "lock.txt").read_text(encoding="utf-8")
    shutil.rmtree(made.house)
    monkeypatch.setattr(pip, "run", no_command)
    assert not venv.converge(replace(made.request, lock=lock)).problems


def test_a_wheel_that_is_missing_is_told(made: Made) -> None:
    (made.house / "beta-1.0-py3-none-any.whl").unlink()
    remove_package(made.path)
    with pytest.raises(state.VenvError, match=r"fix: there is no beta==1.0 for this Python and machine"):
        venv.converge(made.request)


def test_a_wheelhouse_for_another_python_is_refused_and_the_venv_stays_whole(made: Made) -> None:
    (made.house / "wheelhouse.json").write_text('{"key": "x", "python": "3.99", "wheels": {}}', encoding="utf-8")
    (made.house / "lock.txt").write_text("alpha==2.0 --hash=sha256:aa\n", encoding="utf-8")
    for check_mode in (True, False):
        with pytest.raises(state.VenvError, match=r"has the wheels for Python 3\.99, but the Python here is 3\."):
            venv.converge(replace(made.request), check_mode)
    assert not venv.converge(replace(made.request, lock=wheels.lock_text(sorted(made.house.glob("*.whl"))))).problems


def test_a_disk_that_is_too_small_is_told_before_anything_is_changed(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_package(made.path)
    before = tree(made.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=10))
    for check_mode in (True, False):
        with pytest.raises(state.VenvError, match="free; free some space"):
            venv.converge(made.request, check_mode)
        with pytest.raises(state.VenvError, match="free; free some space"):
            venv.converge(replace(made.request, path=made.path / "not" / "there"), check_mode)
    assert tree(made.path) == before


def test_a_python_that_is_still_to_be_installed_does_not_fail_a_look(made: Made) -> None:
    request = replace(made.request, path=made.path.parent / "new", python="python3.99")
    assert venv.converge(request, check_mode=True).problems == ["there is no venv yet"]
    (problem,) = venv.converge(replace(made.request, python="python3.99"), check_mode=True).problems
    assert problem.endswith("asked for is python3.99, which is not there")


def test_versions_and_the_module_of_today_agree() -> None:
    assert state.minor("3.11.2") == "3.11"
    assert state.minor(state.python_version(sys.executable)) == f"{sys.version_info[0]}.{sys.version_info[1]}"
