import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import mean_field as mf
from pathlines.limit.clustering.axis_kernel import axis_velocity, direct_velocity, spectral_velocity
from pathlines.limit.clustering.conformal import poisson_radius
from references import clustering as ref


def tilted(theta):
    return 1 + 0.5 * np.cos(theta)


def grid(d, shift=0.0):
    phi, weights = mf.graded_quadrature(tilted, d, panels=10, points=5)
    return -np.log(np.tan(phi / 2)) - shift, weights


def test_quadrature_integrates_moments():
    phi, weights = mf.graded_quadrature(lambda t: np.ones_like(t), 3)
    assert weights.sum() == pytest.approx(1)
    assert weights @ np.cos(phi) == pytest.approx(0, abs=1e-13)
    assert weights @ np.cos(phi) ** 2 == pytest.approx(1 / 3, rel=1e-13)
    assert phi.min() < 1e-12


@pytest.mark.parametrize("kind", mf.KINDS)
@pytest.mark.parametrize("d", [2, 3, 4, 7])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 4.0])
def test_spectral_vs_direct_velocity(d, beta, kind):
    for shift in (0.0, 4.0):
        xi, weights = grid(d, shift)
        direct = direct_velocity(xi, weights, d, beta, kind)
        np.testing.assert_allclose(spectral_velocity(d, beta, kind)(xi, weights), direct, rtol=1e-10)


@pytest.mark.parametrize("kind", mf.KINDS)
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("beta", [0.0, 1.5, 9.0])
def test_velocity_vs_tokens_spread_over_the_azimuth(d, beta, kind):
    """The weighted tokens in R^d, with no reduction: θ' from the projected attention vector of a token in the plane."""
    xi, weights = grid(d, 1.0)
    theta = 2 * np.arctan(np.exp(xi))
    turn = np.array([0.0, np.pi]) if d == 2 else 2 * np.pi * np.arange(64) / 64
    around = [np.cos(turn)] if d == 2 else [np.cos(turn), np.sin(turn)]
    x = np.stack([np.cos(theta)[:, None] + 0 * turn, *(np.sin(theta)[:, None] * c for c in around)], axis=-1)
    x, w = x.reshape(-1, d), np.repeat(weights / len(turn), len(turn))
    probes = np.arange(0, len(theta), 6)
    at = np.column_stack([np.cos(theta), np.sin(theta), np.zeros((len(theta), d - 2))])[probes]
    tangent = np.column_stack([-np.sin(theta), np.cos(theta), np.zeros((len(theta), d - 2))])[probes]
    kernel = np.exp(beta * (at @ x.T - 1)) * w
    pull = np.einsum("pj,pj->p", tangent, kernel @ x)
    speed = pull / np.sin(theta[probes]) / (kernel.sum(axis=1) if kind == "sa" else 1.0)
    found = axis_velocity(d, beta, kind)(xi, weights)[probes]
    keep = np.sin(theta[probes]) > 1e-3  # nearer the poles the naive projection above loses its digits
    np.testing.assert_allclose(found[keep], speed[keep], rtol=1e-9)


def test_beta_zero_circle_vs_poisson_kernel():
    r0 = 0.2
    times = np.array([0.0, 1.0, 3.0, 6.0, 12.0])
    found = mf.axisymmetric_flow(lambda t: (1 - r0**2) / (1 - 2 * r0 * np.cos(t) + r0**2), times, 2, 0.0)
    r = poisson_radius(times, r0)
    exact = 2 * (1 - r0**2) * np.exp(-times) / ((r0**2 + (1 - r0**2) * np.exp(-times)) * (1 + r))
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_antipodal_symmetry_does_not_move_at_beta_zero():
    w2 = mf.axisymmetric_flow(lambda t: 1 + np.cos(t) ** 2, [0.0, 2.0], 3, 0.0)
    np.testing.assert_allclose(w2, 2.0, rtol=1e-12)


def test_large_beta_uses_the_direct_sum_and_agrees_across_the_limit():
    times = [0.5, 2.0]
    below = mf.axisymmetric_flow(tilted, times, 3, 4.0, panels=8, points=5)
    above = mf.axisymmetric_flow(tilted, times, 3, 4.0 + 1e-9, panels=8, points=5)
    np.testing.assert_allclose(above, below, rtol=1e-7)


def slopes(d, beta, kind, times, points=12):
    return mf.local_slope(times, mf.axisymmetric_flow(tilted, times, d, beta, kind, points=points))


def test_late_slopes_sa():
    times = np.linspace(12, 16, 17)
    assert np.abs(slopes(2, 1.0, "sa", times)[1:-1] - ref.MEAN_FIELD_SLOPES["sa", 2]).max() < 3e-4
    assert np.abs(slopes(3, 1.0, "sa", times)[1:-1] - (-2 + 1 / times[1:-1])).max() < 3e-3
    assert np.abs(slopes(5, 1.0, "sa", times)[1:-1] + 2).max() < 1e-4


@pytest.mark.parametrize("d", [2, 3])
def test_late_slopes_usa(d):
    times = np.linspace(18, 22, 9)
    found = slopes(d, 1.0, "usa", times, points=16)[1:-1]
    assert np.abs(found - ref.MEAN_FIELD_SLOPES["usa", d]).max() < 1e-3
    assert np.abs(found + mf.late_rate(d, 1.0, "usa")).max() < 1e-3


def test_late_rate_values():
    assert [mf.late_rate(d, 2.0) for d in (2, 3, 4, 10)] == [1.0, 2.0, 2.0, 2.0]
    assert mf.late_rate(4, 0.5, "usa") == pytest.approx(3 * np.exp(-0.5))
    # above (d-1) = 2e^{2β} the bulk is the slower one
    assert mf.late_rate(30, 0.5, "usa") == pytest.approx(2 * np.exp(0.5))


def test_local_slope_of_an_exponential():
    t = np.array([0.0, 0.3, 1.0, 1.2])
    np.testing.assert_allclose(mf.local_slope(t, 5 * np.exp(-1.7 * t)), -1.7, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.axisymmetric_flow(tilted, [1.0], 1, 1.0), "`d` must"),
        (lambda: mf.axisymmetric_flow(tilted, [1.0], 51, 1.0), "`d` must be ≤ 50"),
        (lambda: mf.axisymmetric_flow(tilted, [1.0], 2, -1.0), "`beta` must"),
        (lambda: mf.axisymmetric_flow(tilted, [1.0, 0.5], 2, 1.0), "`times` must be increasing"),
        (lambda: mf.axisymmetric_flow(tilted, [1.0], 2, 1.0, "x"), "`kind` must"),
        (lambda: mf.axisymmetric_flow(lambda t: -np.ones_like(t), [1.0], 2, 1.0), "`density` must be non-negative"),
        (lambda: mf.axisymmetric_flow(lambda t: 1.0, [1.0], 2, 1.0), "`density` must be a function"),
        (lambda: mf.late_rate(1, 1.0), "`d` must"),
        (lambda: mf.local_slope([0.0, 1.0], [1.0, 0.5]), "`times` must be 3 or more"),
        (lambda: mf.local_slope([0.0, 1.0, 2.0], [1.0, 0.5, 0.0]), "`w2` must be > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
