"""Parking: counts against reference values and counting, pulls against differences, the atlas of V."""

import numpy as np
import pytest
from scipy import integrate

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.causal.atlas import final_state, single_token
from pathlines.limit.causal.parking import (
    RENYI,
    cap_mass,
    capture_mass,
    centre_flags,
    centre_lifetime,
    centres,
    frozen_centres_capture,
    parking_coverage,
    pull,
    pull_slope,
    strong_centres,
    strongest_pull,
)


def test_coverage():
    found = parking_coverage([1.0, 5.0, 15.915494309, 50.0])
    np.testing.assert_allclose(found, [0.471424633909, 0.684569702130, 0.727791011004, 0.741293185220], rtol=2e-12)
    assert parking_coverage(1e12) == pytest.approx(RENYI, rel=1e-11)
    assert parking_coverage(0.0) == 0


def test_counts():
    assert centres(400, 0.5) == pytest.approx(9.270, abs=6e-4)
    assert strong_centres(400, 0.5, 2) == pytest.approx(6.283, abs=6e-4)
    assert strong_centres(400, 0.25, 2) == pytest.approx(12.566, abs=6e-4)
    assert strong_centres(400, 0.6, 3) == pytest.approx(11.451, abs=6e-4)


@pytest.mark.parametrize("strong", [False, True])
def test_counts_vs_counting(strong):
    rng = np.random.default_rng(5)
    counts = []
    for _ in range(300):
        angles = rng.uniform(0, 2 * np.pi, 60)
        counts.append(centre_flags(np.stack([np.cos(angles), np.sin(angles)], 1), 0.7, strong=strong).sum())
    expected = strong_centres(60, 0.7, 2) if strong else centres(60, 0.7)
    # one token more or less is a whole: random sequential adsorption on a short circle differs by O(e^{-2π/δ})
    assert np.mean(counts) == pytest.approx(expected, abs=5 * np.std(counts) / np.sqrt(300) + 0.01)


@pytest.mark.parametrize("d", [2, 3, 4, 7])
@pytest.mark.parametrize("delta", [0.3, 1.5, 2.5])
def test_cap_mass(d, delta):
    mass = lambda top: integrate.quad(lambda s: np.sin(s) ** (d - 2), 0, top)[0]  # noqa: E731
    assert cap_mass(delta, d) == pytest.approx(mass(delta) / mass(np.pi), rel=1e-10)


def test_pulls():
    x, h = np.linspace(0.01, 3, 7), 1e-6
    np.testing.assert_allclose(pull_slope(x, 9.0), (pull(x + h, 9.0) - pull(x - h, 9.0)) / (2 * h), atol=1e-9)
    for beta in (1.0, 64.0, 1e8):
        best = strongest_pull(beta)
        assert (beta + 0.5) ** -0.5 < best < beta**-0.5
        assert abs(pull_slope(best, beta)) < 1e-7


def test_windows_of_the_theorems():
    assert capture_mass(6.5, 0.1) == pytest.approx(682.9, abs=0.06)
    assert frozen_centres_capture(682.0, 6.5, 14.05, 0.1)
    assert not frozen_centres_capture(1e5, 6.5, 14.05, 0.1)
    assert centre_lifetime(10, 5.0, 400.0, 0.25) > 50 * centre_lifetime(10, 4.0, 400.0, 0.25)
    with pytest.raises(ArgumentError, match="pull is largest"):
        centre_lifetime(3, 0.5, 400.0, 0.25)


def test_atlas():
    assert final_state(np.eye(3)).known == "theorem"
    assert final_state(np.diag([1, 0.5, -0.5])).kind.startswith("two points")
    assert final_state(np.diag([1, 1, -0.5])).kind.startswith("one point")
    assert final_state(-np.diag([1, 2, 3])).kind.startswith("two clouds")
    assert final_state(-np.eye(3)).kind == "a cloud around L"
    assert final_state([[0, 1], [-1, 0]]).kind == "not in the atlas"
    assert final_state([[1, 1], [0, 1]]).kind == "not in the atlas"


def test_one_token_solves_its_equation():
    v, x, h = np.array([[1, 0.3], [-0.2, 0.4]]), np.array([0.6, 0.8]), 1e-5
    y = single_token(v, x, 0.7)
    slope = (single_token(v, x, 0.7 + h) - single_token(v, x, 0.7 - h)) / (2 * h)
    np.testing.assert_allclose(slope, v @ y - (y @ v @ y) * y, atol=1e-9)
