"""Reference values: section 9 of the project's specification 04-metastability-and-modes."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.merging import log_merging_time

TIMES = [
    (4, 2, 0.01, 4.4220497407097, 44.50405881789),
    (9, 1.5, 0.01, 6.2275747400639, 255.87649501499),
    (25, 1, 0.01, 8.6945854540483, 2987.5953679073),
    (81, 1.2, 0.01, 47.406168241992, 1.9373463997431e20),
    (400, 0.8, 0.001, 115.99708223147, 1.1908655565901e50),
]
UNEQUAL = [(4, 2, 24.176103407595), (9, 1.5, 123.36651851162), (25, 1, 1408.5987554868)]


@pytest.mark.parametrize(("beta", "start", "end", "log_usa", "sa"), TIMES)
def test_table(beta, start, end, log_usa, sa):
    assert log_merging_time(beta, start, end) == pytest.approx(log_usa, abs=2e-13 * max(1, log_usa))
    assert log_merging_time(beta, start, end, "sa") == pytest.approx(np.log(sa), abs=1e-12 * max(1, np.log(sa)))


@pytest.mark.parametrize(("beta", "start", "time"), UNEQUAL)
def test_unequal_masses(beta, start, time):
    assert np.exp(log_merging_time(beta, start, 0.01, "sa", (0.2, 0.8))) == pytest.approx(time, rel=1e-11)


def test_against_the_equation():
    """dφ/dt integrated by SciPy to φ = 0.3; equal masses by quadrature as well."""
    beta, masses = 6.0, (0.3, 0.7)

    def speed(t, phi):
        e = np.exp(beta * (np.cos(phi) - 1))
        return -np.sin(phi) * e * (masses[1] / (masses[0] + masses[1] * e) + masses[0] / (masses[1] + masses[0] * e))

    event = lambda t, phi: phi[0] - 0.3  # noqa: E731
    event.terminal = True
    run = solve_ivp(speed, (0, 1e4), [1.4], events=event, rtol=1e-11, atol=1e-12)
    assert np.exp(log_merging_time(beta, 1.4, 0.3, "sa", masses)) == pytest.approx(run.t_events[0][0], rel=1e-8)
    almost = log_merging_time(beta, 1.4, 0.3, "sa", (0.5 - 1e-13, 0.5 + 1e-13))
    assert almost == pytest.approx(log_merging_time(beta, 1.4, 0.3, "sa"), abs=1e-10)


def test_times_beyond_every_float():
    assert log_merging_time(1000.0, 3.0, 0.01) == pytest.approx(
        1000 * (1 - np.cos(3.0)) - np.log(1000 * np.sin(3.0) ** 2), rel=1e-3
    )


@pytest.mark.parametrize("away", [1e-3, 1e-8, 1e-15])
@pytest.mark.parametrize("kind", ["usa", "sa"])
def test_almost_antipodal(away, kind):
    """From π - ε to 1.5 by mpmath in u = ln tan(φ/2), β = 3: grows like ln(1/ε), without end."""
    mpmath.mp.dps = 30
    start, beta, m = np.pi - away, 3, (0.2, 0.8)
    phi = mpmath.mpf(float(start))

    def density(u):
        e = mpmath.exp(-beta * (1 + mpmath.tanh(u)))
        bracket = 1 if kind == "usa" else m[1] / (m[0] + m[1] * e) + m[0] / (m[1] + m[0] * e)
        return 1 / (e * bracket)

    ends = [mpmath.log(mpmath.tan(x / 2)) for x in (mpmath.mpf(1.5), phi)]
    exact = float(mpmath.log(mpmath.quad(density, mpmath.linspace(*ends, 12))))
    assert log_merging_time(beta, start, 1.5, kind, m) == pytest.approx(exact, rel=1e-11)


def test_refusals():
    for arguments, name in (((4.0, 1.0, 2.0), "`end`"), ((4.0, np.pi, 0.1), "`start`"), ((-1.0, 1.0, 0.1), "`beta`")):
        with pytest.raises(ArgumentError, match=name):
            log_merging_time(*arguments)
    with pytest.raises(ArgumentError, match="sum to one"):
        log_merging_time(4.0, 1.0, 0.1, "sa", (0.2, 0.7))
