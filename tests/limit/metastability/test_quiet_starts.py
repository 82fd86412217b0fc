import numpy as np
import pytest
from scipy import special

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.growth import growth_rates
from pathlines.limit.metastability.linear_phase import mean_maxima
from pathlines.limit.metastability.quiet_starts import _velocity, maxima_of_starts, quiet_moments
from pathlines.numerics.runge_kutta import rk4_step


@pytest.mark.parametrize("kind", ["sa", "usa"])
def test_velocity_vs_sum_over_pairs(kind):
    rng = np.random.default_rng(3)
    theta, masses = rng.uniform(0, 2 * np.pi, (2, 30)), rng.dirichlet(np.ones(30), 2)
    found = _velocity(theta, masses, special.ive(np.arange(40), 9.0), 9.0, kind)
    turn = theta[:, None, :] - theta[:, :, None]
    w = masses[:, None, :] * np.exp(9.0 * (np.cos(turn) - 1))
    expected = (w * np.sin(turn)).sum(axis=2)
    if kind == "sa":
        expected /= w.sum(axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_a_small_bump_grows_at_its_rate():
    theta = np.tile(2 * np.pi * np.arange(64) / 64, (1, 1))
    masses = (1 + 2e-6 * np.cos(4 * theta)) / 64
    g = special.ive(np.arange(40), 9.0)
    for _ in range(8):
        (theta,) = rk4_step(lambda x: (_velocity(x, masses, g, 9.0, "sa"),), (theta,), 0.25)
    size = (masses * np.exp(-4j * theta)).sum().real
    # RK4: (λ/4)⁵/120 per step, eight steps
    assert np.log(size / 1e-6) / 2 == pytest.approx(growth_rates(9.0, 2, 4)[-1], abs=3e-5)


def test_mean_number_of_maxima_at_the_start_is_that_of_rice():
    found = maxima_of_starts(9.0, quiet_moments(1e8, 1500, 5), [0.0])[:, 0]
    assert found.mean() == pytest.approx(float(mean_maxima(9.0)), abs=5 * found.std() / np.sqrt(1500))


def test_shares_of_four_maxima_vs_reference():
    """β = 9, SA, at saturation: 0.72 at N = 10³ and 1.00 at 10¹², each from 40 starts to 0.15."""
    for tokens, share in ((1e3, 0.72), (1e12, 1.0)):
        until = (0.5 * np.log(tokens) + 2) / growth_rates(9.0, 2, 4)[-1]
        found = maxima_of_starts(9.0, quiet_moments(tokens, 200, 0), [until])[:, 0]
        assert np.mean(found == 4) == pytest.approx(share, abs=0.15)


def test_bad_arguments():
    quiet = quiet_moments(1e4, 2, 0)
    with pytest.raises(ArgumentError, match="beta"):
        maxima_of_starts(0.0, quiet, [1.0])
    with pytest.raises(ArgumentError, match="kind"):
        maxima_of_starts(9.0, quiet, [1.0], "linear")
    with pytest.raises(ArgumentError, match="increase"):
        maxima_of_starts(9.0, quiet, [1.0, 1.0])
    with pytest.raises(ArgumentError, match="densities"):
        maxima_of_starts(9.0, 30 * quiet, [1.0])
