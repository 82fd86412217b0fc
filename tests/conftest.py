"""Tests run in float64 and with a results folder of their own."""

import jax
import matplotlib as mpl
import pytest

import pathlines  # noqa: F401  before anything is compiled

jax.config.update("jax_enable_x64", True)
mpl.use("agg")


@pytest.fixture(autouse=True)
def results_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHLINES_STORE", str(tmp_path / "store"))
    return tmp_path / "store"
