"""`pathlines modes-of`: the atlas from the command line."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import modes_of
from pathlines.foundation.errors import ArgumentError, PathlinesError

APP = typer.Typer()
modes_of.register(APP)
APP.callback()(lambda: None)  # a second entry keeps the verb's name


def said(*words):
    result = CliRunner().invoke(APP, ["modes-of", *map(str, words)])
    if isinstance(result.exception, PathlinesError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def matrix(tmp_path):
    np.save(tmp_path / "V.npy", np.diag([0.85, -0.7, -0.8]))
    return tmp_path / "V.npy"


def test_words(matrix):
    text = said(matrix, "--beta", 0.6, "--n", 5, "--starts", 0)
    assert "eigenvalues 0.85, -0.7, -0.8; β = 0.6, n = 5" in text
    assert "all align with it" in text
    assert "4+1" in text


def test_repeated_eigenvalues_leave_a_continuum(tmp_path):
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    np.save(tmp_path / "V.npy", turn @ np.diag([1.0, 1.0, -0.5]) @ turn.T)
    text = said(tmp_path / "V.npy", "--beta", 2, "--n", 6, "--starts", 0)
    assert "The leading eigenvalue 1 is repeated 2 times: it leaves a continuum of rests" in text
    assert "(0, ∞)" not in text


def test_json_and_text_files(tmp_path, matrix):
    file = tmp_path / "V.csv"
    file.write_text("0.85, 0, 0\n0, -0.7, 0\n0, 0, -0.8\n")
    found = json.loads(said(file, "--beta", 0.6, "--n", 5, "--starts", 4, "--json"))
    (single,) = [m for m in found["pure"] if (m["p"], m["n_minus"]) == (0, 1)]
    assert single["stable"] and single["growth"] == pytest.approx(-0.113322199487, abs=1e-11)
    assert sum(e["share"] for e in found["ends"]) == 1
    assert said(matrix, "--starts", 0, "--json").replace("V.npy", "V.csv") == said(file, "--starts", 0, "--json")


def test_picture(tmp_path, matrix):
    said(matrix, "--n", 3, "--starts", 2, "--figure", tmp_path / "atlas.svg")
    assert (tmp_path / "atlas.svg").stat().st_size > 10_000


def test_bad_input(tmp_path, matrix):
    np.save(tmp_path / "W.npy", np.array([[1.0, 0.2], [0.1, 1.0]]))
    with pytest.raises(ArgumentError, match="`V` must be symmetric"):
        said(tmp_path / "W.npy")
    with pytest.raises(ArgumentError, match="There is no file"):
        said(tmp_path / "none.npy")
    with pytest.raises(ArgumentError, match="it needs --starts"):
        said(matrix, "--starts", 0, "--figure", tmp_path / "a.pdf")
    with pytest.raises(ArgumentError, match="--force insists"):
        said(matrix, "--n", 10**9)
