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
