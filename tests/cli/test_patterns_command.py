"""pathlines patterns, and the forecast behind it."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathlines.cli import patterns
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.forecast import forecast
from pathlines.limit.metastability.growth import growth_rates


def test_numbers():
    """Rates of section 9 and a probability of section 3.3 of the specification 04-metastability-and-modes."""
    found = forecast(9.0, 2, 1e4)
    assert found.dominant_degree == 4
    assert found.rates_sa[3] == pytest.approx(0.7044970292996)
    assert found.rates_usa_printed[3] == pytest.approx(0.09507858414351 * np.exp(9))
    assert found.probabilities[3] == pytest.approx(0.453, abs=0.005)
    assert (found.threshold_below, found.threshold_above) == pytest.approx((6.21129837943, 10.228483163))
    times = found.formation_times
    assert times["sa"] == pytest.approx((0.5 * np.log(1e4) + np.log(0.1)) / found.rates_sa[3])
    assert times["usa_printed"] == pytest.approx(times["usa_scaled"] * np.exp(-9))


def test_high_dimension_goes_straight_to_one_cluster():
    found = forecast(8.0, 64, 1e6)
    assert found.dominant_degree == 1
    assert found.threshold_below is None
    assert found.probabilities is None
    assert found.threshold_above == pytest.approx(42.618439455)


def test_probabilities_on_higher_spheres():
    """They sum to one, and more tokens make k* surer; too few tokens are a sentence, not an error."""
    few, many = (forecast(9.0, 3, n).probabilities for n in (1e4, 1e9))
    assert sum(few) == pytest.approx(1, abs=1e-8)
    k = forecast(9.0, 3, 1e4).dominant_degree - 1
    assert few[k] < many[k] and np.argmax(many) == k
    assert "too few tokens" in run("--d", "8", "--n", "2000").stdout
    assert "P(k first)" in run("--d", "3").stdout


def test_large_beta_does_not_overflow():
    found = forecast(1200.0, 2, 1e4)
    assert found.rates_usa_printed[found.dominant_degree - 1] is None
    assert found.formation_times["usa_printed"] is None
    assert found.rates_sa[0] == pytest.approx(growth_rates(1200.0, 2, 1)[0])


def test_too_few_tokens():
    with pytest.raises(ArgumentError, match="1/level"):
        forecast(9.0, 2, 50)


def run(*words):
    app = typer.Typer()
    patterns.register(app)
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(("words", "says"), [
    (["--beta", "0"], "Argument `beta`"), (["--d", "1"], "Argument `d`"), (["--n", "20"], "Argument `tokens`"),
    (["--n", "150"], "at least"),
])  # fmt: skip
def test_bad_input(words, says):
    result = run(*words)
    assert isinstance(result.exception, ArgumentError)
    assert says in str(result.exception)


def test_output():
    assert "k* = 4, 4 clusters" in run().stdout
    assert "one cluster" in run("--d", "64", "--beta", "8").stdout
    steep = run("--beta", "1200").stdout
    assert "> 1e304" in steep
    assert "< 1e-304 (USA, printed)" in steep
    assert "nan" not in run("--beta", "5000", "--d", "10000").stdout
    assert json.loads(run("--json", "--beta", "81", "--n", "1e12").stdout)["dominant_degree"] == 13
