"""NumPy's multi-head flow: gradient of its energy, linearisation, response, against plain integration."""

import numpy as np
import pytest

from pathlines.limit.followups import time_dependent as td

RNG = np.random.default_rng(4)
X = RNG.standard_normal((5, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
A = RNG.standard_normal((2, 3, 3))
A = 0.3 * (A + np.swapaxes(A, -1, -2))


def test_field_is_the_gradient_of_the_energy():
    move = RNG.standard_normal(X.shape)
    move -= np.sum(move * X, axis=1, keepdims=True) * X
    change = (td.multi_head_energy(A, X + 1e-5 * move) - td.multi_head_energy(A, X - 1e-5 * move)) / 2e-5
    assert change == pytest.approx(np.sum(td.multi_head_field(A, X) * move) / len(X), rel=1e-7)


def test_speed_dies_at_the_slowest_rate():
    last = td.omega_limit(A, X)
    assert np.abs(td.multi_head_field(A, last)).max() < 1e-9
    slow = td.slowest_rate(A, last)
    near = last + 1e-4 * X
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    path = td.multi_head_path(lambda t: A, near, np.array([3.0, 5.0]) / slow)
    speeds = [np.linalg.norm(td.multi_head_field(A, x)) for x in path]
    rate = np.log(speeds[0] / speeds[1]) * slow / 2
    assert 0.99 * slow < rate < 1.12 * slow  # faster modes, up to 1.1 of the slowest, are left


def test_linear_response_vs_the_path():
    swing, omega, size = A[::-1], 1.3, 1e-4
    last = td.omega_limit(A, X)
    heads = lambda t: A + size * swing * np.cos(omega * t)  # noqa: E731
    period = 2 * np.pi / omega
    times = 15 * period + period * np.arange(16) / 16
    moves = [
        td.multi_head_field(heads(t), x) for t, x in zip(times, td.multi_head_path(heads, last, times), strict=True)
    ]
    found = np.sqrt(np.mean(np.sum(np.square(moves), axis=(1, 2)))) / size
    assert found == pytest.approx(td.linear_response(A, swing, omega, last), rel=0.01)


def test_settling_speeds_follow_the_tokens():
    """From where max|v| is small, the linearisation with its coefficients has SciPy's speeds."""
    rng = np.random.default_rng(3)
    base, swing = (0.4 * (m + np.swapaxes(m, -1, -2)) / 2 + 0.5 * np.eye(2) for m in rng.normal(size=(2, 1, 2, 2)))
    x = rng.normal(size=(3, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    times = np.linspace(0.0, 24.0, 13)
    found = td.multi_head_path(lambda t: base + swing * np.exp(-t), x, times)
    speed = [
        np.linalg.norm(td.multi_head_field(base + swing * np.exp(-t), y), axis=1).max()
        for t, y in zip(times, found, strict=True)
    ]
    k = int(np.flatnonzero(np.array(speed) < 1e-4)[0])
    limit = td.omega_limit(base, found[-1])
    law = td.settling_speeds(base, swing * np.exp(-times[k]), 1.0, found[k], limit, times[k : k + 3] - times[k])
    np.testing.assert_allclose(law, speed[k : k + 3], rtol=0.01)
