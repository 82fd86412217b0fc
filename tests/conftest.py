"""Tests run in float64 and with a results folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import matplotlib as mpl
import pytest

import typecheck

typecheck.install()

import pathlines  # noqa: E402, F401  before anything is compiled
from pathlines.foundation.errors import PathlinesError  # noqa: E402
from pathlines.foundation.programs import make_room_for_programs  # noqa: E402

FOLDER = Path(__file__).parent

jax.config.update("jax_enable_x64", True)
mpl.use("agg")


@pytest.fixture
def optimised(request):
    """Programs as users compile them: where tests are compiled quickly, this one runs in a process of its own."""
    if "optimization_level=0" in os.environ.get("XLA_FLAGS", ""):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            request.node.nodeid,
        ]
        subprocess.run(command, env={**os.environ, "XLA_FLAGS": ""}, cwd=request.config.rootpath, check=True)
        pytest.skip("passed in a process of its own")


@pytest.fixture(autouse=True)
def results_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHLINES_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Thousands of tests in one process compile more programs than it may map into memory."""
    yield
    make_room_for_programs()


@pytest.fixture(autouse=True)
def nothing_is_promoted(request):
    """Arrays of other ranks and types are put together on purpose, or refused."""
    if not request.path.relative_to(FOLDER).as_posix().startswith(typecheck.STRICT):
        yield
        return
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(autouse=True)
def annotations_hold(request, monkeypatch):
    """Values are what annotations say, or refused."""
    place = request.path.relative_to(FOLDER)
    room = place.parts[0]
    if room not in typecheck.ROOMS or place.as_posix().startswith(typecheck.OPEN):
        yield
        return
    typecheck.ACTIVE.update(typecheck.TOGETHER if room in typecheck.TOGETHER else [room])
    typecheck.VIOLATIONS.clear()
    refuse = PathlinesError.__init__

    def forgive(self, *arguments):
        typecheck.VIOLATIONS.clear()
        refuse(self, *arguments)

    monkeypatch.setattr(PathlinesError, "__init__", forgive)
    yield
    typecheck.ACTIVE.clear()
    assert typecheck.VIOLATIONS == []
