"""Low temperature: reference values, the flow at zero temperature, and sphere laws that contain those of the circle."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups import separatrix as law

V, RHO = np.diag([1.0, 0.3]), law.von_mises(1.0, np.pi / 4)


def test_reference_values():
    known = law.misassignment(RHO, 1e8, V)
    assert known.first * 1e8 == pytest.approx(0.1600756522, rel=1e-9)
    assert known.plateau == pytest.approx(2 * np.sqrt(known.mass), rel=1e-12)
    for beta, measured in ((16, 0.01015), (32, 0.005025), (64, 0.0025), (128, 0.001225)):
        assert law.misassignment(RHO, beta, V).mass == pytest.approx(measured, rel=0.025)


def test_rotated_values_and_densities_go_together():
    turn = 0.7
    r = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    turned = law.misassignment(lambda a: RHO(a - turn), 20, r @ V @ r.T)
    assert turned.mass == pytest.approx(law.misassignment(RHO, 20, V).mass, rel=1e-8)
    assert 5 * law.misassignment(lambda a: 5 * RHO(a), 20, V).mass == pytest.approx(5 * turned.mass, rel=1e-8)


def test_symmetric_starts_have_none():
    for density in (law.von_mises(0.0), law.von_mises(2.0, np.pi / 2), lambda a: 2 + np.cos(2 * a)):
        assert law.misassignment(density, 10, V).mass < 1e-12


def test_plateau_is_particle_wise_and_w2_is_of_the_net_mass():
    """ρ₀ ∝ 1 + ½ sin 2θ: as much goes to one pole as to the other, so that W₂ has no plateau."""
    known = law.misassignment(lambda a: 1 + 0.5 * np.sin(2 * a), 64, V)
    assert known.plateau == pytest.approx(0.1197, abs=1e-4) and known.w2 < 1e-6
    mises = law.misassignment(RHO, 64, V)
    assert mises.net == pytest.approx(mises.mass, rel=1e-12)  # tokens climb towards e_1, where the density is
    assert law.misassignment(law.von_mises(1.0, 3 * np.pi / 4), 64, V).net == pytest.approx(-mises.mass, rel=1e-12)
    density = lambda x: (1 + 0.5 * x[:, 0] * x[:, 1] + 0.2 * x[:, 0]) / (4 * np.pi)  # noqa: E731
    ball = law.sphere_misassignment(density, 30, np.diag([1.5, 0.4, -0.8]))
    # sums of 2·10⁶ points of (½cos φ + 1/5)(cos²φ/1.1 + sin²φ/2.3), with and without sign
    assert (ball.mass, ball.net) == pytest.approx((0.0031325871954, 0.0016798418972), rel=1e-5)
    assert ball.plateau == pytest.approx(0.1119, abs=1e-4) and ball.w2 == pytest.approx(0.0820, abs=1e-4)


def test_what_is_left_out_does_not_cancel():
    """At φ = 21° second orders of the two ends cancel in the sum; at β = 8 poles add an eighth (0.136 simulated)."""
    assert law.misassignment(law.von_mises(1.0, np.deg2rad(21)), 3, V).relative > 0.08
    eight = law.misassignment(RHO, 8, V)
    assert 0.136 < eight.far < 1 and not eight.reliable and law.misassignment(RHO, 16, V).far < 0.005
    assert not law.misassignment(RHO, 1e-3, V).reliable
    assert not law.misassignment(RHO, 64, np.diag([1.0, 0.999999])).reliable
    for angle in (90, 270, 450):  # rounding over rounding is no second order
        assert law.misassignment(law.von_mises(1.0, np.deg2rad(angle)), 64, V).relative == 0


def test_small_values_keep_their_digits():
    assert law.misassignment(RHO, 64, 1e-12 * V).mass == pytest.approx(law.misassignment(RHO, 64, V).mass, rel=1e-12)


def brute_force(beta, lam, rho, shift, n):
    """The velocity of weighted particles and of listeners at π/2 + shift, every pair summed; and where they start."""
    half = np.concatenate([[0.0], np.geomspace(2e-4, np.pi / 2, n // 4)])
    side = np.concatenate([-half[:0:-1], half])
    edges = np.concatenate([np.pi / 2 + side, 3 * np.pi / 2 + side[1:]])
    theta, mass = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    mass = mass * rho(theta)
    theta = np.append(theta, np.pi / 2 + shift)
    mass = np.append(mass, np.zeros(np.size(shift))) / mass.sum()

    def velocity(t, a):
        x, y = np.cos(a), np.sin(a)
        w = np.exp(beta * (np.outer(x, x) + np.outer(y, y) - 1)) * mass
        z = w.sum(axis=1)
        return lam[1] * x * (w @ y) / z - lam[0] * y * (w @ x) / z

    return velocity, theta


def test_second_order_vs_brute_force():
    """Listeners at π/2 + shift·(1 ± 5 %) part at β = 16, on either side."""
    beta, lam = 16.0, (1.0, 0.3)
    shift = law.misassignment(RHO, beta, V).shifts[0]
    tries = shift * np.array([0.95, 1.05])
    velocity, theta = brute_force(beta, lam, RHO, tries, 400)
    a, h = theta, 0.1
    for _ in range(70):
        k1 = velocity(0, a)
        k2 = velocity(0, a + h / 2 * k1)
        k3 = velocity(0, a + h / 2 * k2)
        a = a + h / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(0, a + h * k3))
    ends = np.cos(a[-2:])
    assert ends[0] * ends[1] < 0


def test_sphere_of_two_dimensions_is_the_circle():
    on_circle = law.normalised(RHO)
    on_sphere = law.sphere_misassignment(lambda x: on_circle(np.arctan2(x[:, 1], x[:, 0])), 50, V)
    assert on_sphere.mass == pytest.approx(law.misassignment(RHO, 50, V).first, rel=1e-6)


def test_sphere_displacement_solves_its_equation():
    """h' = (λ₁ - q)h + (λ₁/β)g with g' = -(λ₁ - q)g along ω' = P_ωVω: from h(0) = ``shifts`` it stays bounded."""
    lam, slope, beta = np.array([1.0, 0.4, -0.5]), 0.8, 30.0
    known = law.sphere_misassignment(lambda x: np.exp(slope * x[:, 0]), beta, np.diag(lam))
    points, _ = law.equator(3)
    start = points[40]

    def motion(t, y):
        w, h, g = y[:2], y[2], y[3]
        q = w @ (lam[1:] * w)
        return np.array([*(lam[1:] * w - q * w), (lam[0] - q) * h + lam[0] / beta * g, -(lam[0] - q) * g])

    run = solve_ivp(motion, (0, 8), [*start, known.shifts[40], slope], rtol=1e-11, atol=1e-13)
    assert abs(run.y[2, -1]) < 0.02 * abs(known.shifts[40])
    wrong = solve_ivp(motion, (0, 8), [*start, 1.02 * known.shifts[40], slope], rtol=1e-11, atol=1e-13)
    assert abs(wrong.y[2, -1]) > 0.5 * abs(known.shifts[40])


def test_more_dimensions_of_equal_eigenvalues():
    """λ_2 = … = λ_d: mis = λ₁/(2(λ₁-λ₂)β) ∫|∂_hρ|, here with ∂_hρ = ρ₀ s constant on the great sphere."""
    for d, area in ((3, 2 * np.pi), (4, 4 * np.pi), (5, 2 * np.pi**2)):
        found = law.sphere_misassignment(lambda x: np.exp(0.5 * x[:, 0]), 10, np.diag([1.0] + [0.2] * (d - 1)))
        assert found.mass == pytest.approx(area * 0.5 / (2 * 0.8 * 10), rel=1e-5)


def test_zero_temperature_vs_integrator():
    value = np.array([[0.5, 0.3, 0.0], [0.3, -0.2, 0.1], [0.0, 0.1, 0.9]])
    x = np.random.default_rng(0).normal(size=(4, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)

    def motion(t, y):
        p = y.reshape(4, 3)
        moved = p @ value
        return (moved - np.sum(p * moved, axis=1, keepdims=True) * p).ravel()

    run = solve_ivp(motion, (0, 3), x.ravel(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(law.zero_temperature(x, [3.0], value)[0], run.y[:, -1].reshape(4, 3), atol=1e-9)
    np.testing.assert_allclose(law.zero_temperature(x, [300.0], value)[0], law.projection(x, value), atol=1e-12)


def test_distances_vs_sum():
    theta = 2 * np.pi * (np.arange(200_000) + 0.5) / 200_000
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    weights = law.normalised(RHO)(theta) * 2 * np.pi / len(theta)
    paths = law.zero_temperature(x, [0.0, 1.0, 4.0], V)
    known = np.sqrt(np.sum((paths - law.projection(x, V)) ** 2, axis=-1) @ weights)
    np.testing.assert_allclose(law.distances(RHO, np.inf, V, [0.0, 1.0, 4.0]), known, rtol=1e-5)
    late = law.distances(RHO, 40, V, [60.0])[0]
    assert late == pytest.approx(law.misassignment(RHO, 40, V).plateau, rel=5e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: law.misassignment(RHO, 9, [[1.0, 0.5], [0.0, 0.3]]), "`value` must be symmetric"),
        (lambda: law.misassignment(RHO, 9, -np.eye(2)), "`value` must have a positive eigenvalue"),
        (lambda: law.misassignment(RHO, 9, np.eye(2)), "`value` must have a largest eigenvalue that is simple"),
        (lambda: law.misassignment(RHO, 9, np.diag([1.0, 0, 0])), "`value` must be 2 × 2"),
        (lambda: law.misassignment(np.cos, 9, V), "`density` must be a positive finite function"),
        (lambda: law.von_mises(450.0), "`kappa` must be a finite number"),
        (lambda: law.misassignment(RHO, 0, V), "`beta` must be a finite number > 0"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
