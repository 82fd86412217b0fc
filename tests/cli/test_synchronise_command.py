"""`pathlines synchronise`: a sentence, numbers, a picture."""

import json

import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import synchronise
from pathlines.foundation.errors import ArgumentError, PathlinesError, UnknownNameError
from pathlines.limit.homogenized.perceptron_kernel import ACTIVATIONS, by_quadrature

APP = typer.Typer()
synchronise.register(APP)
APP.callback()(lambda: None)  # a second entry keeps the verb's name


def said(*words):
    result = CliRunner().invoke(APP, ["synchronise", *map(str, words)])
    if isinstance(result.exception, PathlinesError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_numbers_and_sentence():
    found = json.loads(said("--activation", "tanh", "--d", 40, "--json"))
    assert found["lyapunov_exponent"] == pytest.approx(1.805, abs=5e-4)
    assert found["critical_dimension"] == pytest.approx(14.248, abs=6e-4)
    assert found["verdict"] == "separate" and found["simulated"] is None
    text = " ".join(said("--activation", "relu", "--d", 8, "--sb", 1).split())
    assert "synchronises nearby tokens in every dimension" in text and "coercive" in text


def test_simulated_pairs_and_picture(tmp_path):
    picture = tmp_path / "map.png"
    found = json.loads(
        said("--activation", "erf", "--d", 6, "--simulate", "--runs", 200, "--json", "--figure", picture)
    )
    measured, exact = found["simulated"], found["lyapunov_exponent"]
    allowed = 5 * measured["standard_error"] + 0.005 * (abs(exact) + 1)  # and what two steps leave
    assert abs(measured["lyapunov_exponent"] - exact) < allowed
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_simulated_pairs_do_not_see_their_step():
    """Without extrapolation Λ of erf, d = 40, is off by many standard errors."""
    found = json.loads(said("--activation", "erf", "--d", 40, "--simulate", "--runs", 8000, "--json"))
    measured, exact = found["simulated"], found["lyapunov_exponent"]
    assert measured["standard_error"] < 0.01 * abs(exact)
    assert abs(measured["lyapunov_exponent"] - exact) < 5 * measured["standard_error"]


def test_an_activation_of_ones_own(monkeypatch):
    import numpy as np

    monkeypatch.setitem(ACTIVATIONS, "sine", by_quadrature(np.sin))
    assert json.loads(said("--activation", "sine", "--json"))["critical_dimension"] == pytest.approx(9.389056098930642)
    with pytest.raises(ArgumentError, match="--simulate knows relu"):
        said("--activation", "sine", "--simulate")


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (("--d", 1), ArgumentError, "`d` must be an integer ≥ 2, but is 1"),
        (("--activation", "swish"), UnknownNameError, "no activation `swish`"),
        (("--sw", 1000), ArgumentError, "`sigma_w` must be ≤ 50"),
        (("--sw", 0), ArgumentError, "`sigma_w` must be a finite number > 0"),
        (("--attention", -1), ArgumentError, "`attention` must be a finite number ≥ 0"),
        (("--simulate", "--runs", 10**10), ArgumentError, "but the limit is"),
    ],
)
def test_refusals(words, error, message):
    with pytest.raises(error, match=message):
        said(*words)
