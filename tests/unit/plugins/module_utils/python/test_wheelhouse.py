# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.gpuserve.sglang.plugins.module_utils.python import names, pip, state, venv, wheelhouse

from tests.fixtures import venvs, wheels


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels in the place of an index: pip takes what it needs and nothing else."""
    folder = tmp_path / "index"
    wheels.wheel(folder, "alpha", "1.0", requires=["beta"])
    wheels.wheel(folder, "beta", "1.0")
    wheels.wheel(folder, "beta", "2.0")
    wheels.wheel(folder, "gamma", "1.0", requires=["nowhere"])
    monkeypatch.setattr(pip.Source, "arguments", lambda _source: ["--no-index", "--find-links", str(folder)])
    return folder


@pytest.fixture
def request_(index: Path) -> wheelhouse.Request:
    assert index.is_dir()
    return wheelhouse.Request(("alpha",), ("gamma",), venvs.PYTHON)


def files(path: Path) -> list[str]:
    return sorted(item.name for item in path.iterdir())


def test_a_house_has_the_wheels_their_lock_and_says_for_which_python(
    tmp_path: Path, request_: wheelhouse.Request
) -> None:
    path = tmp_path / "house"
    house, changed = wheelhouse.build(path, request_)
    assert changed
    wanted = ["alpha-1.0-py3-none-any.whl", "beta-2.0-py3-none-any.whl", "gamma-1.0-py3-none-any.whl"]
    assert sorted(house.wheels) == wanted
    assert house.size == sum((path / name).stat().st_size for name in wanted)
    locked = names.locked((path / "lock.txt").read_text(encoding="utf-8"))
    assert {name: entry.version for name, entry in locked.items()} == {"alpha": "1.0", "beta": "2.0", "gamma": "1.0"}
    assert locked["beta"].hashes == {wheels.sha256(path / wanted[1])}
    assert wheelhouse.made_for(path) == state.minor(state.python_version(venvs.PYTHON))
    assert not list(path.glob("incoming"))


def test_a_venv_is_installed_from_it(tmp_path: Path, request_: wheelhouse.Request, empty_venv: Path) -> None:
    wheelhouse.build(tmp_path / "house", request_)
    path = venvs.copy(empty_venv, tmp_path / "engine")
    venv.converge(venv.Request(path, python=venvs.PYTHON, wheelhouse=tmp_path / "house"))
    assert venvs.packages(path) == {"alpha": "1.0", "beta": "2.0", "gamma": "1.0"}


def test_a_house_that_is_whole_is_left_alone(tmp_path: Path, request_: wheelhouse.Request) -> None:
    first, dummy = wheelhouse.build(tmp_path / "house", request_)
    again, changed = wheelhouse.build(tmp_path / "house", request_)
    assert (again, changed) == (first, False)


def test_constraints_hold_a_version_and_are_part_of_the_request(tmp_path: Path, request_: wheelhouse.Request) -> None:
    wheelhouse.build(tmp_path / "house", request_)
    held = replace(request_, constraints=("beta<2",))
    house, changed = wheelhouse.build(tmp_path / "house", held)
    assert changed
    assert "beta-1.0-py3-none-any.whl" in house.wheels
    # The wheel of the earlier request must not stay: a look into the folder would find both.
    assert [path.name for path in (tmp_path / "house").glob("beta-*")] == ["beta-1.0-py3-none-any.whl"]


@pytest.mark.parametrize("broken", ["wheel gone", "wheel cut", "lock gone", "manifest cut"])
def test_a_house_that_is_not_whole_is_filled_again(broken: str, tmp_path: Path, request_: wheelhouse.Request) -> None:
    path = tmp_path / "house"
    first, dummy = wheelhouse.build(path, request_)
    wheel = path / "alpha-1.0-py3-none-any.whl"
    if broken == "wheel gone":
        wheel.unlink()
    elif broken == "wheel cut":
        wheel.write_bytes(wheel.read_bytes()[:-1])
    elif broken == "lock gone":
        (path / "lock.txt").unlink()
    else:
        (path / "wheelhouse.json").write_text("{", encoding="utf-8")
    assert wheelhouse.read(path) is None
    again, changed = wheelhouse.build(path, request_)
    assert changed
    assert again == first
    assert wheelhouse.read(path) == first


def test_what_a_killed_run_left_does_not_end_in_the_lock(tmp_path: Path, request_: wheelhouse.Request) -> None:
    path = tmp_path / "house"
    wheels.wheel(path / "incoming", "foreign", "1.0")
    wheels.wheel(path, "stranger", "1.0")
    house, dummy = wheelhouse.build(path, request_)
    assert not [name for name in house.wheels if name.startswith(("foreign", "stranger"))]


def test_a_source_package_becomes_a_wheel(tmp_path: Path, index: Path) -> None:
    source = tmp_path / "omega-1.0"
    source.mkdir()
    # A backend of its own in the tree: setuptools would have to come from an index.
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n', encoding="utf-8"
    )
    made = wheels.wheel(tmp_path, "omega", "1.0")
    (source / "backend.py").write_text(
        "import shutil\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        f"    shutil.copy({str(made)!r}, folder)\n    return {made.name!r}\n",
        encoding="utf-8",
    )
    with tarfile.open(index / "omega-1.0.tar.gz", "w:gz") as packed:
        packed.add(source, "omega-1.0")
    house, dummy = wheelhouse.build(tmp_path / "house", wheelhouse.Request(("omega",), (), venvs.PYTHON))
    assert list(house.wheels) == ["omega-1.0-py3-none-any.whl"]


def test_two_versions_of_one_package_are_refused(tmp_path: Path, request_: wheelhouse.Request) -> None:
    with pytest.raises(wheelhouse.WheelhouseError, match=r"beta is asked for twice: beta==1\.0 and 2\.0"):
        wheelhouse.build(tmp_path / "house", replace(request_, requirements_no_deps=("beta==1.0",)))
    assert wheelhouse.read(tmp_path / "house") is None


@pytest.mark.usefixtures("index")
def test_what_cannot_be_got_is_told(tmp_path: Path) -> None:
    request = wheelhouse.Request(("gamma",), (), venvs.PYTHON)
    with pytest.raises(wheelhouse.WheelhouseError, match="there is no nowhere for this Python and machine"):
        wheelhouse.build(tmp_path / "house", request)
    with pytest.raises(wheelhouse.WheelhouseError, match="NAME @ URL"):
        wheelhouse.build(tmp_path / "house", replace(request, requirements=("./gamma.whl",)))
    with pytest.raises(wheelhouse.WheelhouseError, match="/nowhere/python cannot be run"):
        wheelhouse.build(tmp_path / "house", replace(request, python="/nowhere/python"))


def test_a_folder_with_other_things_is_not_filled(tmp_path: Path, request_: wheelhouse.Request) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "thesis.pdf").touch()
    with pytest.raises(wheelhouse.WheelhouseError, match=r"holds thesis\.pdf; name a folder for wheels alone"):
        wheelhouse.build(tmp_path / "house", request_)
    assert files(tmp_path / "house") == [".lock", "thesis.pdf"]
