"""The law of the mean overlap in d dimensions against a chain in NumPy, closed forms and drawn weights."""

import math

import numpy as np
import pytest

from pathlines.claim.homogenized import direct
from pathlines.limit.homogenized.overlap_curve import layer_map_curve
from pathlines.limit.homogenized.overlap_law import (
    attention_branch,
    overlap_law,
    perceptron_branch,
    power_participation,
)
from pathlines.limit.homogenized.participation import mean_participation
from pathlines.limit.homogenized.perceptron_collapse import perceptron_step
from pathlines.limit.homogenized.simplex import simplex_table


def attention(n, b, v, **options):
    return attention_branch(simplex_table(n, b), v, **options)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_infinite_dimension_is_the_layer_map(norm):
    law = overlap_law(20, 12, 10**9, [attention(12, 1.5, 0.3)], norm=norm)
    curve = layer_map_curve(20, 12, 1.5, 0.3, norm=norm).overlap
    assert law.mean == pytest.approx(curve, abs=1e-7)
    assert np.max(law.spread) < 1e-3


def test_log_odds_at_uniform_attention():
    """d logit m = [1 - (4-3m)/d] dτ on the simplex: drift of m, and the Itô term of a variance 4/d; O(1/n) and O(v)."""
    n, d, v = 50, 400, 1e-3
    law = overlap_law(1, n, d, [attention(n, 0.0, v)])
    rate = (law.log_odds[1] - law.log_odds[0]) / v
    assert rate - (1 - v / 2) == pytest.approx(-(4 - 3 / n) / d, rel=2e-2)
    assert law.log_odds_spread[1] == pytest.approx(2 * math.sqrt(v / d), rel=2e-2)


def test_against_the_chain_in_numpy():
    """n = 6, d = 32, b = 0.7, 8 layers of v = 0.25, 4000 runs: 5 standard errors and (4τ/d)²/8 for the next order. The
    layer map with the exact 1/d term of a layer, but without fluctuations, is five standard errors away.
    """
    n, d, b, v, depth, runs = 6, 32, 0.7, 0.25, 8, 4000
    grams = direct.random_layers(np.eye(n, d), b, math.sqrt(v), 1, depth, runs, 5, width=np.inf)
    drawn = direct.mean_overlap(grams)
    law = overlap_law(depth, n, d, [attention(n, b, v)])
    error = drawn.std(axis=0, ddof=1) / math.sqrt(runs)
    assert np.all(np.abs(drawn.mean(axis=0) - law.mean)[1:] < 5 * error[1:] + (4 * v * depth / d) ** 2 / 8)
    assert drawn.std(axis=0)[1:] == pytest.approx(law.spread[1:], rel=0.1)
    plain = layer_map_curve(depth, n, b, v, d=d, exact=True).overlap
    assert abs(drawn[:, -1].mean() - plain[-1]) > 4 * error[-1]


def test_uniform_start():
    """Log-odds of |x̄|² of uniform tokens: 20 000 draws, 5 standard errors and the next order in 1/d."""
    n, d, runs = 8, 64, 20000
    x = np.random.default_rng(3).standard_normal((runs, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    m = np.sum(x.mean(axis=1) ** 2, axis=-1)
    odds = np.log(m / (1 - m))
    law = overlap_law(1, n, d, [attention(n, 0.0, 0.1)], random_start=True)
    assert odds.mean() == pytest.approx(law.log_odds[0], abs=5 * odds.std() / math.sqrt(runs) + 2 / d**2)
    assert odds.std() == pytest.approx(law.log_odds_spread[0], rel=0.05)


def test_participations():
    assert power_participation(8, 2.0, 2) == pytest.approx(mean_participation(8, 2.0, 0.0).f, abs=1e-8)
    weights = np.exp(2 * np.random.default_rng(0).standard_normal((100_000, 8)))
    cubes = np.sum((weights / weights.sum(axis=1, keepdims=True)) ** 3, axis=1)
    assert power_participation(8, 2.0, 3) == pytest.approx(cubes.mean(), abs=5 * cubes.std() / 316)
    assert power_participation(30, 0.0, 3) == pytest.approx(1 / 900, rel=1e-9)


def test_perceptron_is_composed():
    branches = [attention(10, 1.0, 0.2), perceptron_branch("erf", 3.0, 0.5)]
    law = overlap_law(1, 10, 10**9, branches)
    middle = layer_map_curve(1, 10, 1.0, 0.2).overlap[1]
    assert law.mean[1] == pytest.approx(float(perceptron_step(middle, 0.5, "erf", 3.0)), abs=1e-7)
