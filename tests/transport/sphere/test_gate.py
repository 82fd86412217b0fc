"""The gate: reference values, the flow against its equation, hitting times and Jacobians against the flow."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.gate import (
    Gate,
    antiderivative,
    finite_hitting_time,
    gate,
    gate_flow,
    gate_flow_and_jacobian,
    hitting_time,
    meridian,
)

REFERENCE = Gate(np.array([0.0, 0.0, 1.0]), -0.2, np.array([0.6, 0.0, 0.8]), 1.5)
STARTS = np.array([[0.48, 0.64, 0.6], [2 / 3, -2 / 3, 1 / 3], [0.8, 0.6, 0.0]])


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_reference_flow_and_jacobian():
    """RV4 of the derivation, to its twelve digits."""
    moved, logdet = gate_flow_and_jacobian(REFERENCE, STARTS)
    ends = [[0.574331760091, 0.340382315803, 0.744501785384], [0.695134777406, -0.531917772075, 0.483581559812]]
    np.testing.assert_allclose(moved[:2], ends, rtol=0, atol=6e-13)
    np.testing.assert_allclose(logdet[:2], [-0.954390790256, 0.303044997793], rtol=0, atol=6e-13)
    assert np.array_equal(moved[2], STARTS[2])
    assert logdet[2] == 0


def test_reference_hitting_time():
    m = meridian(STARTS[:1], REFERENCE.a, REFERENCE.omega)
    np.testing.assert_allclose([m.angle[0], m.along, m.across[0]], [0.695083854330, 0.8, -0.022484196353], atol=6e-13)
    np.testing.assert_allclose(hitting_time(REFERENCE, STARTS[:1], 0.1), 3.673442267131, atol=6e-13)


@pytest.mark.parametrize("seed", range(12))
def test_flow_vs_equation(seed):
    rng = np.random.default_rng(seed)
    d = 3 + seed % 3
    a, omega = rng.standard_normal((2, d))
    piece, x = Gate(a, float(rng.uniform(-1, 1)), omega, float(rng.uniform(0.2, 3))), unit(rng, 7, d)

    def rate(_, flat):
        y = flat.reshape(x.shape)
        push = np.maximum(y @ a + piece.tau, 0)[:, None] * omega
        return (push - np.sum(push * y, axis=1, keepdims=True) * y).ravel()

    end = solve_ivp(rate, (0, piece.duration), x.ravel(), "DOP853", rtol=1e-13, atol=1e-14).y[:, -1].reshape(x.shape)
    np.testing.assert_allclose(gate_flow(piece, x), end, atol=2e-11)  # error of the adaptive method over the run


@pytest.mark.parametrize("near", [1.0, 1e-3, 1e-6, 1e-9, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_hitting_time_brings_the_flow_to_its_angle_also_near_the_degenerate_cases(near, sign):
    """τ ± A → 0, where the logarithms of the closed form cancel."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, omega = rng.standard_normal((2, 4))
        omega /= np.linalg.norm(omega)
        piece = Gate(a, float(sign * (a @ omega)) + near, omega, 0.0)
        x = unit(rng, 30, 4)
        x = x[piece.opening(x) > 0.05]
        angle = meridian(x, a, omega).angle
        for point, start in zip(x, angle, strict=True):
            time = hitting_time(piece, point[None], 0.7 * start)[0]
            if time < 100:
                end = gate_flow(piece._replace(duration=time), point[None])
                # an angle is blurred by the rounding of A and B over the time of the flow
                np.testing.assert_allclose(meridian(end, a, omega).angle, 0.7 * start, atol=1e-11)


def test_antiderivative_vs_quadrature_in_all_cases():
    cases = [(0.4, 0.3, 0.1), (0.2, 0.1, 1.0), (0.5, 0.3, 0.5), (0.5, 0.0, 0.5), (0.3, 0.4, 0.5), (0.0, 0.0, 1.0)]
    for A, B, tau in cases:  # Δ > 0, Δ < 0, q = 0, q = B = 0, Δ = 0, no gate
        y = np.array([-0.4, 0.3])
        (low, high), _ = antiderivative(y, A, np.full(2, B), tau)
        value = quad(lambda v, A=A, B=B, t=tau: 1 / (B / np.cosh(v) - A * np.tanh(v) + t), *y, epsrel=1e-13)[0]
        np.testing.assert_allclose(high - low, value, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_jacobian_vs_differences(seed):
    rng = np.random.default_rng(seed)
    a, omega = rng.standard_normal((2, 3))
    piece = Gate(a, 0.4, omega, 0.8)
    x = unit(rng, 1, 3)
    frame = np.linalg.svd(x)[2][1:]
    h = 1e-5
    columns = []
    for e in frame:
        ends = [gate_flow(piece, (x + s * h * e) / np.linalg.norm(x + s * h * e))[0] for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    moved, logdet = gate_flow_and_jacobian(piece, x)
    there = np.linalg.svd(moved)[2][1:]
    area = abs(np.linalg.det(np.array(columns) @ there.T))
    np.testing.assert_allclose(logdet[0], np.log(area), atol=1e-7)  # a central difference, step², and rounding/step


def test_poles_and_ungated_flow():
    """At ±o nothing moves and the area changes like e^{∓(d-1)|ω|gt}; without a gate tan(φ/2) shrinks like e^{-|ω|t}."""
    o = np.array([0.0, 0.0, 1.0])
    piece = Gate(np.zeros(3), 1.0, 2 * o, 0.7)
    moved, logdet = gate_flow_and_jacobian(piece, np.array([o, -o, [0.6, 0.0, 0.8]]))
    np.testing.assert_allclose(moved[:2], [o, -o], atol=0)
    np.testing.assert_allclose(logdet[:2], [-2.8, 2.8], rtol=1e-14)
    before, after = (meridian(x, piece.a, o).angle[0] for x in (np.array([[0.6, 0.0, 0.8]]), moved[2:]))
    np.testing.assert_allclose(np.tan(after / 2), np.exp(-1.4) * np.tan(before / 2), rtol=1e-13)


def test_gates_are_checked_and_diverging_times_refused():
    with pytest.raises(ArgumentError, match="omega"):
        gate([0, 0, 1], 0.0, [0, 0, 0], 1.0)
    with pytest.raises(ArgumentError, match="duration"):
        gate([0, 0, 1], 0.0, [0, 1, 0], -1.0)
    closed = Gate(np.array([0.0, 0.0, 1.0]), -0.9, np.array([1.0, 0.0, 0.0]), 1.0)
    with pytest.raises(ArgumentError, match="hitting time diverges"):
        finite_hitting_time(closed, np.array([0.0, 0.1, np.sqrt(0.99)]), 0.1)


def test_times_next_to_the_rim_are_found_without_a_warning():
    """A billionth from the rim the logarithms cancel; the flow over the time found ends at the angle."""
    angle = 0.35 - 1e-9
    x = np.array([[np.cos(angle), 0.0, np.sin(angle)]])
    omega = np.array([np.cos(0.25), np.sin(0.25), 0.0])
    piece = Gate(np.eye(3)[0], -np.cos(0.35), omega, 0.0)
    time = hitting_time(piece, x, 0.025)[0]
    end = gate_flow(piece._replace(duration=time), x)
    np.testing.assert_allclose(meridian(end, piece.a, omega).angle, 0.025, rtol=1e-4)
