"""Tests run in float64 and with a results folder of their own."""

import os
import subprocess
import sys

import jax
import matplotlib as mpl
import pytest

import pathlines  # noqa: F401  before anything is compiled
from pathlines.foundation.programs import make_room_for_programs

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
