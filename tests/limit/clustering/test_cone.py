from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import cone

from .particles import integrate_field, sa_field


def uniform(rng, n, d):
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_wendel_values():
    assert [cone.wendel_probability(n, d) for n, d in ((6, 3), (8, 4), (10, 5), (3, 7), (1, 1))] == [
        0.5,
        0.5,
        0.5,
        1,
        1,
    ]
    exact = Fraction(sum(comb(29, k) for k in range(7)), 2**29)
    assert cone.wendel_probability(30, 7) == float(exact)
    assert cone.wendel_probability(4000, 2000) == 0.5
    assert cone.wendel_probability(40_000, 20_000) == pytest.approx(0.5, abs=1e-9)


def test_wendel_vs_frequency_of_the_certificate():
    rng = np.random.default_rng(0)
    for n, d in ((6, 3), (7, 3)):
        found = np.mean([cone.hemisphere(uniform(rng, n, d))[0] > 0 for _ in range(2000)])
        p = cone.wendel_probability(n, d)
        assert abs(found - p) < 5 * np.sqrt(p * (1 - p) / 2000)


def test_hemisphere_vs_linear_programming():
    """A w with ⟨x_i,w⟩ ≥ 1 exists iff the certificate says so."""
    rng = np.random.default_rng(1)
    for n, d in ((5, 2), (6, 3), (12, 6), (9, 9)):
        for _ in range(15):
            x = uniform(rng, n, d)
            feasible = linprog(np.zeros(d), -x, -np.ones(n), bounds=[(None, None)] * d).status == 0
            assert (cone.hemisphere(x)[1] is not None) == feasible


def test_margin_is_optimal():
    """Weak duality: no direction does better than the distance from 0 to the hull; the two agree at the optimum."""
    rng = np.random.default_rng(2)
    for n, d in ((4, 3), (20, 5), (8, 30)):
        x = uniform(rng, n, d) + 2 * np.eye(d)[0]
        margin, w = cone.hemisphere(x)
        assert np.linalg.norm(w) == pytest.approx(1, abs=1e-14)
        assert margin == pytest.approx((x @ w).min(), abs=1e-15)
        weights = rng.dirichlet(np.ones(n) * 0.3, size=2000)
        assert np.linalg.norm(weights @ x, axis=1).min() >= margin - 1e-12
        active = np.abs(x @ w - margin) < 1e-10
        combination = np.linalg.lstsq(x[active].T, margin * w, rcond=None)[0]
        np.testing.assert_allclose(x[active].T @ combination, margin * w, atol=1e-10)
        assert np.all(combination > -1e-10) and combination.sum() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("tilt", [0.3, 1e-3, 1e-6, 1e-9])
def test_narrow_margin(tilt):
    angles = np.array([np.pi / 2 - tilt, -np.pi / 2 + tilt, 0.1])
    margin, w = cone.hemisphere(np.column_stack([np.cos(angles), np.sin(angles)]))
    assert margin == pytest.approx(np.sin(tilt), abs=3e-16)
    np.testing.assert_allclose(w, [1, 0], atol=1e-6)


@pytest.mark.parametrize(
    "tokens",
    [
        [[1.0, 0.0], [-1.0, 0.0]],
        [[1.0, 0.0, 0.0], [-0.5, 0.8, 0.0], [-0.5, -0.8, 0.0]],
        np.vstack([np.eye(4), -np.ones((1, 4)) / 2]),
        [[0.0, 0.0]],
    ],
    ids=["antipodal", "triangle", "simplex", "zero"],
)
def test_no_open_hemisphere(tokens):
    assert cone.hemisphere(tokens) == (0.0, None)


def test_one_token():
    margin, w = cone.hemisphere([[0.6, 0.8]])
    assert margin == pytest.approx(1)
    np.testing.assert_allclose(w, [0.6, 0.8])


def test_cone_residual_vs_geometry():
    quadrant = np.eye(2)
    assert cone.cone_excess([[0.6, 0.8], [1.0, 0.0]], quadrant) == pytest.approx(0, abs=1e-15)
    assert cone.cone_excess([[-0.6, 0.8]], quadrant) == pytest.approx(0.6)
    assert cone.cone_excess([[0.6, 0.8], [-0.6, -0.8]], quadrant) == pytest.approx(1.0)


def test_cone_shrinks_along_the_flow():
    x = uniform(np.random.default_rng(3), 10, 4) + 1.5 * np.eye(4)[0]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    states = integrate_field(lambda t, y: sa_field(y, 4.0), x, [0.5, 2.0])
    assert cone.cone_excess(states[0], x) < 1e-11
    assert cone.cone_excess(states[1], states[0]) < 1e-11
    assert cone.cone_excess(x, states[1]) > 0.01
    margins = [cone.hemisphere(s)[0] for s in (x, *states)]
    assert margins[0] < margins[1] < margins[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cone.wendel_probability(0, 3), "`n` must"),
        (lambda: cone.wendel_probability(3, 0), "`d` must"),
        (lambda: cone.hemisphere([1.0, 2.0]), "`tokens` must have shape"),
        (lambda: cone.hemisphere([[np.nan, 2.0]]), "`tokens` must be finite"),
        (lambda: cone.cone_excess(np.eye(3), np.eye(2)), "`initial` must have 3 columns"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
