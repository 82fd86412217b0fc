"""Rates, responses and profiles against reference values with all their digits, and against their own equations."""

import numpy as np
import pytest
from scipy import integrate

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.causal.profile import hard_accuracy, retrieval_profile, soft_accuracy, u_shape_depth
from pathlines.limit.causal.rates import modes_needed, retrieval_rates
from pathlines.limit.causal.response import positional_kernel, response

DIGITS = 3e-12
"""References are printed to 12 significant digits."""


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (1.0, [0.565159103992, 0.542990679068, 0.199515824319, 0.0437939235367, 0.00678657889892, 0.000809591813177]),
        (2.0, [1.59063685464, 2.75579379079, 1.91465963316, 0.811657119667, 0.245641983078, 0.0576062410868]),
        (4.0, [9.7594651537, 25.6887575011, 30.0354820058, 22.6604113225, 12.6181090778, 5.56073279534]),
    ],
)
def test_rates(beta, expected):
    np.testing.assert_allclose(retrieval_rates(beta, 6), expected, rtol=DIGITS)


def test_rates_of_softmax_and_on_spheres():
    np.testing.assert_allclose(
        retrieval_rates(2.0, 3, softmax=True), [0.348887328982, 0.604450684072, 0.419957882514], rtol=DIGITS
    )
    for d, expected in (
        (3, [0.829235536456, 0.702665328182, 0.290977697528]),
        (5, [0.936887104242, 0.484962829213, 0.142304203702]),
    ):
        np.testing.assert_allclose(retrieval_rates(1.5, 3, d=d), expected, rtol=DIGITS)
    np.testing.assert_allclose(retrieval_rates(1.5, 4, d=2), retrieval_rates(1.5, 4) / 1.5, rtol=1e-13)
    np.testing.assert_allclose(
        retrieval_rates(1.5, 4, d=2, softmax=True), retrieval_rates(1.5, 4, softmax=True), rtol=1e-13
    )


@pytest.mark.parametrize(
    ("slope", "rate", "t", "sigma", "source", "expected"),
    [
        (0.0, 0.5, 1.0, 1.0, 0.1, 0.8486669313971),
        (0.0, 0.5, 2.0, 0.5, 0.1, 4.1039738051494),
        (2.0, 0.7, 1.3, 1.0, 0.2, 1.155834347982),
        (2.0, 0.7, 1.3, 0.6, 0.2, 2.215122516832),
        (-1.0, 0.7, 1.3, 1.0, 0.2, 1.9881478561172),
    ],
)
def test_response(slope, rate, t, sigma, source, expected):
    assert response(t, sigma, source, rate=rate, slope=slope) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("slope", [0.0, 2.0, -1.3, 40.0])
def test_response_solves_the_volterra_hardy_equation(slope):
    rate, t, source, h = 0.7, 1.3, 0.2, 1e-4
    g = lambda t, s: float(response(t, s, source, rate=rate, slope=slope))  # noqa: E731
    left = (8 * (g(t + h, 0.9) - g(t - h, 0.9)) - g(t + 2 * h, 0.9) + g(t - 2 * h, 0.9)) / (12 * h)
    inside = integrate.quad(lambda s: positional_kernel(0.9, s, slope) * g(t, s), source, 0.9, epsabs=1e-13, limit=200)[
        0
    ]
    assert left == pytest.approx(rate * (float(positional_kernel(0.9, source, slope)) + inside), rel=1e-9)


def test_response_to_a_large_slope_is_finite():
    assert np.isfinite(response(1.0, 1.0, 0.99, rate=0.5, slope=2000.0))


@pytest.mark.parametrize(
    ("source", "soft", "hard"),
    [
        (0.001, 1.7196905098967, 0.2461241662991),
        (0.01, 1.1543391055752, 0.16610746212688),
        (0.05, 0.90682849364743, 0.13118288178883),
        (0.1, 0.86003522748438, 0.12478053079327),
        (0.25, 0.92116558820222, 0.13433073006773),
        (0.5, 1.2163696930771, 0.1783966063017),
        (0.75, 1.6924862427194, 0.2494765236202),
        (0.9, 2.0823468799724, 0.3078718599789),
        (1.0, 2.3953150925496, 0.35487698368228),
    ],
)
def test_profile(source, soft, hard):
    assert retrieval_profile(1.0, 2.0, 8, 1.0)(source) == pytest.approx(soft, rel=1e-12)
    assert retrieval_profile(1.0, 2.0, 8, 1.0, decoder="hard")(source) == pytest.approx(hard, rel=1e-12)


def test_worst_position_and_slope():
    profile = retrieval_profile(1.0, 2.0, 8, 1.0)
    assert profile.worst == pytest.approx(0.11866224197662, abs=1e-12)
    assert profile(profile.worst) == pytest.approx(0.85770040362625, rel=1e-13)
    assert profile.slope_at_end == pytest.approx(3.3655042448, rel=1e-10)
    h = 1e-5
    assert profile.slope_at_end == pytest.approx(
        (3 * profile(1) - 4 * profile(1 - h) + profile(1 - 2 * h)) / (2 * h), rel=1e-6
    )


@pytest.mark.parametrize(
    ("setting", "lost", "monotone"),
    [
        ((1.0, 1.0, 8), 2.45748898033, 2.45748898033),
        ((1.0, 2.0, 8), 3.3615486531, 3.4761),
        ((1.0, 4.0, 8), 3.81648479218, 5.5959),
        ((1.0, 8.0, 8), None, 11.065),
        ((2.0, 4.0, 16), 0.973309691633, 1.31128),
        ((4.0, 4.0, 16), 0.0871856401306, None),
    ],
)
def test_depths_at_which_the_shape_changes(setting, lost, monotone):
    profile = retrieval_profile(*setting, 1.0)
    if lost is not None:
        assert profile.recency_lost == pytest.approx(lost, rel=1e-11)
    if monotone is not None:
        assert profile.monotone_from == pytest.approx(monotone, rel=2e-5)
    assert (
        profile.at_depth(0.999 * profile.recency_lost).slope_at_end
        > 0
        > profile.at_depth(1.001 * profile.recency_lost).slope_at_end
    )


@pytest.mark.parametrize(
    ("slope", "share", "regime", "low", "high"),
    [
        (4.0, 0.9, "U", [0.178], []),
        (4.0, 1.3, "buried recency", [0.305], [0.738]),
        (4.0, 1.6, "primacy", [], []),
        (1.0, 0.99, "U", [0.967], []),
        (1.0, 1.01, "primacy", [], []),
        (0.0, 1.0, "primacy", [], []),
        (-1.0, 1.0, "primacy", [], []),
    ],
)
def test_regimes_and_extrema(slope, share, regime, low, high):
    profile = retrieval_profile(1.0, slope, 8, 1.0)
    profile = profile.at_depth(share * (profile.recency_lost or 1.0))
    minima, maxima = profile.extrema()
    np.testing.assert_allclose(minima, low, atol=6e-4)
    np.testing.assert_allclose(maxima, high, atol=6e-4)
    assert profile.regime == regime
    grid = np.linspace(1e-3, 1, 4000)
    turns = np.diff(np.sign(np.diff(profile(grid))))
    assert (turns > 0).sum() == len(low)
    assert (turns < 0).sum() == len(high)


@pytest.mark.parametrize(("beta", "slope", "vocabulary"), [(0.2, 0.2, 4), (4.0, 8.0, 32), (1.0, 1.0, 8), (2.5, 0.3, 2)])
def test_within_the_theorem_the_profile_is_a_u(beta, slope, vocabulary):
    profile = retrieval_profile(beta, slope, vocabulary, u_shape_depth(beta, slope))
    assert profile.regime == "U"
    assert profile.slope_at_end > 0
    assert u_shape_depth(beta, slope) <= profile.recency_lost


def test_accuracies_are_above_chance():
    assert soft_accuracy(0.0, 8, 100) == pytest.approx(np.sqrt(np.pi / 2) / 8)
    assert hard_accuracy(0.5, 8, 100) == pytest.approx(1 / 8 + 0.01)


@pytest.mark.parametrize("beta", [1e-6, 1.0, 30.0, 600.0])
def test_enough_modes(beta):
    rates = retrieval_rates(beta, modes_needed(beta) + 1)
    assert rates[-1] <= 1e-17 * rates.max()


@pytest.mark.parametrize(
    "call",
    [
        lambda: retrieval_rates(np.nan, 3),
        lambda: retrieval_rates(1e4, 3),
        lambda: retrieval_profile(1.0, np.inf, 8, 1.0),
        lambda: retrieval_profile(1.0, 2.0, 1, 1.0),
        lambda: retrieval_profile(1.0, 2.0, 8, 0.0),
        lambda: retrieval_profile(1.0, 2.0, 8, 1.0)(0.0),
        lambda: response(1.0, 0.5, 0.6, rate=1.0),
        lambda: u_shape_depth(1.0, 0.0),
    ],
)
def test_bad_input_is_one_line(call):
    with pytest.raises(ArgumentError) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("slope", [36.0, 50.0, 300.0, 600.0])
def test_steep_slopes_have_a_u(slope):
    profile = retrieval_profile(1.0, slope, 8, 1.0)
    assert profile.regime == "U"
    low = profile.worst
    # S in logarithms: both neighbours of the minimum are above it
    for side in (0.5, 2.0):
        assert profile(low * side if low * side < 1 else (1 + low) / 2) > profile(low)
    assert profile.monotone_from >= profile.recency_lost
    assert profile.at_depth(1.01 * profile.recency_lost).regime == "buried recency"


def test_shapes_beyond_the_three_are_called_so():
    profile = retrieval_profile(30.0, 50.0, 2, 1.0)
    assert profile.at_depth(0.99 * profile.recency_lost).regime == "several extrema"


def test_the_hard_decoder_may_never_lose_recency():
    profile = retrieval_profile(4.0, 2.0, 2, 0.01, decoder="hard")
    assert profile.recency_lost > 0
