"""Reference values: sections 6, 8 and 9 of the project's specification 04-metastability-and-modes, unless said."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.clusters import antipodal_escape_rate
from pathlines.limit.metastability import slow_laws
from pathlines.limit.metastability.merging import log_merging_time

POLYGONS = [
    (2, 4, {1: (3.35462627903e-4, 6.70700260933e-4)}),
    (3, 5, {1: (0.00235060857313, 0.00704403382936)}),
    (4, 9, {1: (5.5535173338e-4, 0.00222085874821), 2: (0.00111068823678, 0.00444165659153)}),
    (5, 9, {1: (0.00431110814147, 0.0214700202495), 2: (0.0112860890191, 0.0562065603151)}),
    (7, 25, {1: (1.2878833563e-4, 9.01371109312e-4), 3: (6.50241658773e-4, 0.00455094820834)}),
]


@pytest.mark.parametrize(("k", "beta", "modes"), POLYGONS)
def test_polygon_rates(k, beta, modes):
    for mode, (usa, sa) in modes.items():
        assert slow_laws.polygon_rates(k, beta, "usa")[mode] == pytest.approx(usa, rel=2e-11)
        assert slow_laws.polygon_rates(k, beta)[mode] == pytest.approx(sa, rel=2e-11)


def test_polygon_rates_by_finite_differences():
    k, beta, mode = 5, 12.0, 2
    corners = 2 * np.pi * np.arange(k) / k
    wave = np.cos(mode * corners)

    def drift(angles):
        turn = angles[None] - angles[:, None]
        return (np.exp(beta * (np.cos(turn) - 1)) * np.sin(turn)).mean(axis=1)

    slope = (drift(corners + 1e-5 * wave) - drift(corners - 1e-5 * wave)) / 2e-5
    assert slow_laws.polygon_rates(k, beta, "usa")[mode] == pytest.approx(slope @ wave / (wave @ wave), rel=1e-7)


def test_life_of_the_first_pattern():
    assert slow_laws.lifetime_ratio(1600.0) == pytest.approx(165.3, abs=0.05)
    assert slow_laws.lifetime_ratio(1600.0, "usa") == pytest.approx(93.96, abs=0.005)
    assert slow_laws.lifetime_ratio_limit() == pytest.approx(189.8, abs=0.05)
    assert slow_laws.lifetime_ratio_limit("usa") == pytest.approx(107.1, abs=0.05)
    # k* = 400 = √(2β) exactly; what is left is of the order 1/β^{1/2}
    assert slow_laws.lifetime_ratio(8e4) == pytest.approx(slow_laws.lifetime_ratio_limit(), rel=0.01)
    with pytest.raises(ArgumentError, match="k\\* ≥ 2"):
        slow_laws.lifetime_ratio(0.5)


def test_unequal_masses_at_large_beta():
    """The neglected terms are e^{-βw} of the end of the way, where the time is short."""
    for masses in ((0.5, 0.5), (0.2, 0.8), (0.05, 0.95)):
        exact = log_merging_time(150.0, 1.3, 0.01, "sa", masses)
        assert slow_laws.log_merging_time_large_beta(150.0, 1.3, 0.01, masses) == pytest.approx(exact, abs=1e-6)


def test_antipodal_rate():
    assert slow_laws.log_antipodal_rate(400.0) == -800.0
    for sizes in ((1, 1), (2, 7)):
        wanted = np.log(antipodal_escape_rate(3.0, *sizes))
        assert slow_laws.log_antipodal_rate(3.0, "sa", sizes) == pytest.approx(wanted, rel=1e-12)


def test_jump_time():
    for beta, value in ((1e2, 0.35258), (1e6, 0.41138), (1e12, 0.44315)):
        assert slow_laws.jump_time(beta, 1.0) == pytest.approx(value, abs=6e-6)
    end = np.sqrt(np.log(50) / 50)
    reached = lambda t, u: u[0] - end  # noqa: E731
    reached.terminal = True
    rhs = lambda t, u: -0.7 * np.log(50) * np.sin(u)  # noqa: E731
    solved = solve_ivp(rhs, (0, 10), [2.0], events=reached, rtol=1e-10, atol=1e-12)
    assert slow_laws.jump_time(50.0, 2.0, 0.7) == pytest.approx(solved.t_events[0][0], rel=1e-8)
    assert slow_laws.jump_time(50.0, np.pi) == np.inf
    with pytest.raises(ArgumentError, match="`start`"):
        slow_laws.jump_time(50.0, 0.1)


@pytest.mark.parametrize("kind", ["usa", "sa"])
def test_contraction_by_finite_differences(kind):
    angles, masses, beta = np.array([0.0, 0.8, 2.0]), np.array([0.5, 0.2, 0.3]), 6.0

    def velocity(theta):
        w = masses * np.exp(beta * (np.cos(angles - theta) - 1))
        pull = np.sum(w * np.sin(angles - theta))
        return pull / w.sum() if kind == "sa" else pull

    slope = (velocity(1e-5) - velocity(-1e-5)) / 2e-5
    assert slow_laws.contraction_rate(angles, masses, 0, beta, kind) == pytest.approx(-slope, rel=1e-8)


@pytest.mark.parametrize("kind", ["usa", "sa"])
def test_mean_contraction_of_tracers(kind):
    """Two massless neighbours in the field of two approaching clusters, by direct integration."""
    masses, beta, until = np.array([0.3, 0.7]), 5.0, 2.0

    def motion(t, y):
        turn = y[:2][None, :] - y[:, None]
        w = masses * np.exp(beta * (np.cos(turn) - 1))
        pull = np.sum(w * np.sin(turn), axis=1)
        return pull / w.sum(axis=1) if kind == "sa" else pull

    solved = solve_ivp(motion, (0, until), [0.0, 1.2, 1e-4, -1e-4], "DOP853", rtol=1e-11, atol=1e-14)
    width = solved.y[2, -1] - solved.y[3, -1]
    rate = -np.log(width / 2e-4) / until
    assert slow_laws.mean_contraction_rate(1.2, (0.3, 0.7), beta, until, kind) == pytest.approx(rate, rel=1e-5)
