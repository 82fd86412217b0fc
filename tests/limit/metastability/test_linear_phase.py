"""The linear phase. Reference values: sections 3 and 9 of the specification 04-metastability-and-modes."""

import numpy as np
import pytest
from scipy import integrate

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability import linear_phase as phase
from pathlines.limit.metastability.growth import growth_rates

RICE = {1: 1.28440302868, 9: 3.65944849031, 25: 6.11397911013, 81: 11.0171115505}


@pytest.mark.parametrize("beta", RICE)
def test_maxima_of_a_uniform_start(beta):
    assert phase.mean_maxima(beta) == pytest.approx(RICE[beta], rel=1e-11)


def test_maxima_against_draws():
    """4000 draws of the Gaussian field at three times: within 4 standard errors."""
    for t in (0.0, 2.0, 5.0):
        shares = phase.maxima_shares(9.0, t, 4000, 1)
        counts = np.arange(len(shares))
        mean = shares @ counts
        error = np.sqrt((shares @ counts**2 - mean**2) / 4000)
        assert phase.mean_maxima(9.0, t) == pytest.approx(mean, abs=4 * error + 1e-3)
    assert phase.mean_maxima(9.0, 200.0) == pytest.approx(4, abs=1e-6)


def test_mean_first_time_against_draws():
    """20 000 draws at N = 10⁴: within 4 standard errors."""
    sizes = np.sqrt(np.random.default_rng(2).exponential(size=(20_000, 18)) / 1e4)
    times = phase.first_times(sizes, 9.0)
    assert phase.mean_first_time(9.0, 1e4) == pytest.approx(times.mean(), abs=4 * times.std() / np.sqrt(20_000))


def test_mean_first_time_of_few_tokens():
    """Given that no mode is above c at t = 0, 20 000 draws at N = 800; fewer tokens are refused."""
    sizes = np.sqrt(np.random.default_rng(3).exponential(size=(20_000, 18)) / 800)
    times = phase.first_times(sizes[(sizes < 0.1).all(axis=1)], 9.0)
    assert phase.mean_first_time(9.0, 800.0) == pytest.approx(times.mean(), abs=4 * times.std() / np.sqrt(20_000))
    with pytest.raises(ArgumentError, match="`tokens`"):
        phase.mean_first_time(9.0, 150.0)


def test_first_time_grows_like_half_the_logarithm():
    slope = (phase.mean_first_time(9.0, 1e60) - phase.mean_first_time(9.0, 1e50)) / np.log(1e10)
    assert slope == pytest.approx(1 / (2 * growth_rates(9.0, 2, 4)[-1]), rel=1e-3)


def test_velocity_of_few_modes_at_large_beta():
    """One small mode grows at its rate, though the kernel has many more modes than the moments."""
    m = np.zeros(4, complex)
    m[[0, 3]] = 1, 1e-9
    assert phase.moment_velocity(m, 1e4)[3] / 1e-9 == pytest.approx(growth_rates(1e4, 2, 3, "usa")[-1], rel=1e-12)


def test_slaving_against_the_moment_system():
    """USA, β = 9, k = 4: the ratio 1.17237 after 3.5 e-folds."""
    rate = growth_rates(9.0, 2, 4, "usa")[-1]
    assert phase.slaving_ratio(9.0, 4, 3.5 / rate) == pytest.approx(1.17237, abs=5e-6)
    start = np.zeros(25, complex)
    start[[0, 4]] = 1, 1e-5
    t = 3.5 / rate
    flow = integrate.solve_ivp(
        lambda _, m: phase.moment_velocity(m, 9.0), (0, t), start, method="DOP853", rtol=1e-10, atol=1e-18
    )
    found = (flow.y[8, -1] / flow.y[4, -1] ** 2).real
    assert phase.slaving_ratio(9.0, 4, t) == pytest.approx(found, rel=1e-6)


def test_refusals():
    with pytest.raises(ArgumentError, match="`sizes`"):
        phase.first_times([0.0, 1.0], 9.0)
    with pytest.raises(ArgumentError, match="`k`"):
        phase.slaving_ratio(100.0, 2, 1.0)
