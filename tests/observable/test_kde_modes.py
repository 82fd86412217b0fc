"""Counted modes against a plain count, closed forms and published averages."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq

from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.limit.metastability.kde_modes import count_by_signs, two_sample_modes
from pathlines.observable.kde_modes import count_modes, find_modes, mode_positions, normal_modes


@pytest.mark.parametrize(("n", "beta", "runs"), [(3, 7.0, 60), (40, 4.0, 40), (200, 300.0, 6), (2000, 100.0, 4)])
def test_isolated_zeros_vs_signs_on_a_fine_grid(n, beta, runs):
    samples = np.random.default_rng(n).standard_normal((runs, n))
    found = find_modes(samples, beta)
    assert found.count.tolist() == [count_by_signs(row, beta, parts=36) for row in samples]
    assert found.doubtful.sum() == 0


def test_two_samples_split_at_two_bandwidths():
    h = 5.0**-0.5
    assert count_modes([0.0, 2 * h * (1 - 1e-6)], 5.0) == 1
    assert count_modes([0.0, 2 * h * (1 + 1e-6)], 5.0) == 2


def test_a_degenerate_mode_is_reported_as_doubtful():
    """At exactly two bandwidths the single mode is a triple zero."""
    assert find_modes([-1.0, 1.0], 1.0).doubtful[0] > 0
    assert find_modes([-1.1, 1.1], 1.0).doubtful[0] == 0


@pytest.mark.parametrize("shift", [0.0, 5.1, -17.3, 1234.5])
@pytest.mark.parametrize(("beta", "share"), [(1.0, 1.0), (1e6, 1.0), (1e6, 1 - 1e-12), (1e6, 1 + 1e-12), (3.0, 1.0)])
def test_a_degenerate_mode_counts_once(shift, beta, share):
    """Signs by chance within rounding of a triple zero are one fall, never more modes than samples."""
    h = beta**-0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PathlinesWarning)
        assert 1 <= count_modes([shift, shift + 2 * h * share], beta) <= 2
        assert 2 <= count_modes([shift, shift + 2 * h * share, shift + 90 * h], beta) <= 3


def test_an_uncertified_count_warns():
    with pytest.warns(PathlinesWarning, match="1 of 1 samples is not certified"):
        assert count_modes([5.1, 7.1], 1.0) == 1


def test_positions_are_zeros_of_the_derivative():
    x, beta = np.random.default_rng(3).standard_normal(60), 40.0
    slope = lambda t: np.sum((x - t) * np.exp(-beta * (t - x) ** 2 / 2))  # noqa: E731
    found = mode_positions(x, beta)
    assert len(found) == count_by_signs(x, beta, parts=48)
    for t in found:
        assert abs(brentq(slope, t - 1e-4, t + 1e-4, xtol=1e-14) - t) < 1e-10


def test_known_pair():
    np.testing.assert_allclose(mode_positions([0.0, 2.0], 2.0), [0.0424960, 1.9575040], atol=1e-6)


@pytest.mark.parametrize("beta", [1.0, 1e4])
def test_far_groups_neither_underflow_nor_interact(beta):
    x = np.array([0.0, 0.0, 30.0, -5000.0, 1e5, 1e5 + 0.001])
    assert count_modes(x, beta) == 4
    assert count_modes([3.0], beta) == 1
    assert count_modes(np.full(7, -2.5), beta) == 1


def test_many_samples_at_a_narrow_bandwidth():
    """n = 10⁵, β = 10⁴: the fast count and the plain one on a tenth of the line."""
    x = np.random.default_rng(4).standard_normal(100_000)
    found = find_modes(x, 1e4)
    assert found.doubtful[0] == 0
    window = np.abs(found.position - 2.0) < 0.2
    part = x[np.abs(x - 2.0) < 0.2 + 0.095]
    slope = lambda t: np.sum((part - t) * np.exp(-5e3 * (t - part) ** 2))  # noqa: E731
    signs = np.sign([slope(t) for t in np.arange(1.8, 2.2, 0.01 / 24)])
    assert window.sum() == np.sum((signs[:-1] > 0) & (signs[1:] < 0))


@pytest.mark.parametrize(
    ("n", "beta", "mean", "error", "runs"),
    [(50, 4.0, 1.1047, 0.0016, 3000), (100, 10.0, 1.6520, 0.0036, 2000), (100, 100.0, 9.9619, 0.0111, 1000),
     (1000, 100.0, 8.7530, 0.0326, 800), (1000, 1000.0, 37.279, 0.054, 300)],
)  # fmt: skip
def test_reference_averages(n, beta, mean, error, runs):
    """Monte-Carlo references with their standard errors; five combined ones at a fixed seed."""
    found = normal_modes(n, beta, runs, 11)
    assert abs(found.mean - mean) < 5 * np.hypot(found.error, error)


def test_two_samples_on_average():
    found = normal_modes(2, 4.0, 8_000, 5)
    assert abs(found.mean - two_sample_modes(4.0)) < 4 * found.error


def test_rows_are_independent_and_batches_do_not_matter(monkeypatch):
    x = np.random.default_rng(6).standard_normal((9, 50)) * 2
    together = find_modes(x, 20.0)
    assert together.count.tolist() == [count_modes(row, 20.0) for row in x]
    np.testing.assert_allclose(together.position[together.run == 4], mode_positions(x[4], 20.0), rtol=1e-14)
    whole = normal_modes(50, 20.0, 30, 8)
    monkeypatch.setattr("pathlines.observable.kde_modes.BATCH", 120)
    cut = normal_modes(50, 20.0, 30, 8)
    np.testing.assert_array_equal(whole.count, cut.count)
    np.testing.assert_allclose(whole.position, cut.position, atol=1e-13)


@pytest.mark.parametrize(
    ("samples", "beta", "says"),
    [
        ([], 1.0, "list of numbers"),
        ([1.0, np.nan], 1.0, "must be finite"),
        ([1.0, 2.0], 0.0, "`beta` must be a finite number > 0"),
        ([1e12], 1.0, "within 1e9 bandwidths"),
        (["a"], 1.0, "real numeric array"),
    ],
)
def test_bad_samples(samples, beta, says):
    with pytest.raises(ArgumentError, match=says):
        count_modes(samples, beta)
