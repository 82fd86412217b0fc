import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import conformal as cf
from references import clustering as ref

from .particles import integrate_field, sa_field, tangent


def deficits(x):
    return 0.5 * ((x[..., :, None, :] - x[..., None, :, :]) ** 2).sum(axis=-1)


def tokens(n=7, d=4, seed=3):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_poisson_table():
    times = sorted(ref.POISSON_RADII)
    np.testing.assert_allclose(cf.poisson_radius(times, 0.2), [ref.POISSON_RADII[t] for t in times], atol=6e-9)


def test_poisson_radius_vs_its_ode():
    run = solve_ivp(lambda t, r: 0.5 * r * (1 - r * r), (0, 5), [0.3], rtol=1e-12, atol=1e-14, t_eval=[1.0, 5.0])
    np.testing.assert_allclose(cf.poisson_radius([1.0, 5.0], 0.3), run.y[0], rtol=1e-10)


def test_poisson_radius_is_the_mean_of_the_flow():
    """4000 equal-mass quantiles of the kernel on the circle under the β = 0 particle flow."""
    r0, n = 0.4, 4000
    level = (np.arange(n) + 0.5) / n
    angle = 2 * np.arctan((1 - r0) / (1 + r0) * np.tan(np.pi * (level - 0.5)))
    run = solve_ivp(
        lambda t, a: np.cos(a) * np.sin(a).mean() - np.sin(a) * np.cos(a).mean(), (0, 2), angle, rtol=1e-9, atol=1e-9
    )
    assert np.cos(run.y[:, -1]).mean() == pytest.approx(cf.poisson_radius(2.0, r0), abs=1e-7)


def test_poisson_radius_limits():
    np.testing.assert_array_equal(cf.poisson_radius([0.0, 9.0], 0.0), [0.0, 0.0])
    assert cf.poisson_radius(1e4, 1e-3) == 1.0
    assert cf.poisson_radius(-1e4, 0.5) == 0.0


def test_cross_ratios_are_conserved_at_beta_zero():
    x = tokens()
    states = integrate_field(lambda t, y: sa_field(y, 0.0), x, [0.0, 1.0, 6.0])
    ratios = cf.deficit_cross_ratios(deficits(states))
    assert ratios.shape == (3, 2 * 35)
    np.testing.assert_allclose(ratios, np.broadcast_to(ratios[0], ratios.shape), rtol=1e-8)


def test_cross_ratios_are_conserved_for_any_common_pull():
    pull = lambda t: np.array([np.sin(t), np.cos(3 * t), -0.4, t])  # noqa: E731
    x = tokens()
    end = integrate_field(lambda t, y: tangent(y, np.tile(pull(t), (len(y), 1))), x, [2.0])[0]
    np.testing.assert_allclose(cf.deficit_cross_ratios(deficits(end)), cf.deficit_cross_ratios(deficits(x)), rtol=1e-9)


def test_cross_ratios_change_at_positive_beta():
    x = tokens()
    end = integrate_field(lambda t, y: sa_field(y, 1.0), x, [1.0])[0]
    assert np.abs(np.log(cf.deficit_cross_ratios(deficits(end)) / cf.deficit_cross_ratios(deficits(x)))).max() > 0.01


def test_chosen_quadruples_and_tiny_deficits():
    u = deficits(tokens())
    rows = [[0, 1, 2, 3], [4, 2, 6, 0]]
    expected = [u[0, 1] * u[2, 3] / (u[0, 2] * u[1, 3]), u[4, 2] * u[6, 0] / (u[4, 6] * u[2, 0])]
    np.testing.assert_allclose(cf.deficit_cross_ratios(u, rows), expected, rtol=1e-14)
    np.testing.assert_allclose(cf.deficit_cross_ratios(u * 1e-200, rows), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cf.poisson_radius(1.0, 1.5), "`start` must"),
        (lambda: cf.poisson_radius(np.inf, 0.5), "`times` must be finite"),
        (lambda: cf.deficit_cross_ratios(np.ones((4, 5))), "`deficits` must hold square"),
        (lambda: cf.deficit_cross_ratios(np.ones((3, 3))), "`n` must be an integer ≥ 4"),
        (lambda: cf.deficit_cross_ratios(np.zeros((4, 4))), "`deficits` must be positive"),
        (
            lambda: cf.deficit_cross_ratios(np.ones((4, 4)), [[0, 1, 2, 4]]),
            "`quadruples` must hold indices from 0 to 3",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_quantile_mean_vs_the_sum(n):
    roots = np.exp(2j * np.pi * (np.arange(n) + 0.5) / n)
    for r in (0.1, 0.6, 0.99):
        assert cf.quantile_mean(r, n) == pytest.approx(np.mean((roots + r) / (1 + r * roots)).real, abs=1e-14)


def test_quantiles_vs_particles():
    """Few quantiles, where the mean-field law is far off: x_i' = P x̄ itself, solved for the tokens."""
    roots = np.exp(2j * np.pi * (np.arange(6) + 0.5) / 6)
    start = np.angle((roots + 0.6) / (1 + 0.6 * roots))
    field = lambda t, a: -np.mean(np.sin(a[:, None] - a[None, :]), axis=1)  # noqa: E731
    run = solve_ivp(field, (0, 3), start, rtol=1e-12, atol=1e-13, t_eval=[1.0, 3.0])
    lengths = np.abs(np.exp(1j * run.y).mean(axis=0))
    np.testing.assert_allclose(cf.quantile_radius([1.0, 3.0], 0.6, 6), lengths, atol=1e-10)
    assert abs(lengths[1] - cf.poisson_radius(3.0, 0.6)) > 1e-2
