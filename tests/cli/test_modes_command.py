"""`pathlines modes`: counts from the command line."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import modes
from pathlines.cli.modes import read_numbers
from pathlines.foundation.errors import ArgumentError

app = typer.Typer()
modes.register(app)


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_expected_count_as_json_and_text(tmp_path):
    picture = tmp_path / "m.png"
    result = run("--n", 100, "--beta", 10, "--runs", 50, "--json", "--figure", picture)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["lower"] == pytest.approx(1.412833, abs=1e-6)
    assert found["certified"] and found["runs"] == 50
    assert abs(found["mean"] - 1.652) < 5 * found["error"]
    assert picture.stat().st_size > 1000
    text = run("--n", 100, "--beta", 10, "--runs", 0).output
    assert "1.4128 ≤ E #modes ≤ 2.2711" in text and "simulation" not in text
    assert "none for β > n²" in run("--n", 5, "--beta", 100, "--runs", 3).output


@pytest.mark.parametrize("kind", ["txt", "csv", "npy"])
def test_modes_of_a_file(tmp_path, kind):
    path = tmp_path / f"values.{kind}"
    if kind == "npy":
        np.save(path, np.array([0.0, 2.0]))
    else:
        path.write_text("0.0\n2.0\n" if kind == "txt" else "value\n0.0,2.0\n")
    result = run("--numbers", path, "--beta", 2, "--json", "--figure", tmp_path / "s.svg")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["modes"] == 2 and found["certified"]
    np.testing.assert_allclose(found["positions"], [0.042496, 1.957504], atol=1e-6)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "has no numbers"), ("1\n2\nthree\n", "Line 3"), ("1\nnan\n", "must be finite")],
)
def test_bad_files(tmp_path, text, says):
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=says):
        read_numbers(path)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--numbers", "nowhere.txt"), "no file nowhere.txt"),
        (("--beta", -1), "`beta` must be a finite number > 0"),
        (("--n", 1), "`n` must be an integer ≥ 2"),
        (("--figure", "x.bmp"), "must end in .pdf"),
        (("--runs", 0, "--figure", "x.png"), "needs --runs"),
    ],
)
def test_bad_options(words, says):
    error = run(*words).exception
    assert isinstance(error, ArgumentError) and says in str(error)


def test_two_samples_have_an_exact_answer():
    found = json.loads(run("--n", 2, "--beta", 4, "--runs", 0, "--json").stdout)
    assert found["exact"] == pytest.approx(1.47950012, abs=5e-9)
    assert "1.47950012" in run("--n", 2, "--beta", 4, "--runs", 0).stdout


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x03\x00{}\n", b"PK\x03\x04", b"junk"])
def test_a_damaged_array_is_bad_input(tmp_path, content):
    """An empty one ends in EOFError, which the command line took for Ctrl-D."""
    path = tmp_path / "damaged.npy"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="is not an array of numbers"):
        read_numbers(path)
