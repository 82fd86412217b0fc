"""Gradients by hand against differences; escape rates and influences against sampling."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups.wide_training import (
    descent_losses,
    escape_rate,
    features_of,
    flow_losses,
    loss_and_velocity,
    loss_fluctuation,
)
from pathlines.numerics.teachers import head_teacher, tanh_teacher

NEURONS, HEADS = tanh_teacher(12), head_teacher(9, length=4, d=2)


@pytest.mark.parametrize(("data", "size"), [(NEURONS, 5), (HEADS, 8)])
def test_velocity_vs_differences(data, size):
    (x, y), rng = data, np.random.default_rng(0)
    theta, masses = rng.standard_normal((3, size)), np.array([0.2, 0.5, 0.3])
    loss = lambda p: loss_and_velocity(features_of(x), y, p, masses)[0]  # noqa: E731
    velocity = loss_and_velocity(features_of(x), y, theta, masses)[1]
    for i, j in np.ndindex(3, size):
        moved = np.zeros_like(theta)
        moved[i, j] = 1e-5
        slope = (loss(theta + moved) - loss(theta - moved)) / 2e-5
        assert -masses[i] * velocity[i, j] == pytest.approx(slope, abs=1e-8)


def test_escape_rate_vs_the_first_steps():
    """-dL/dt of 20,000 probes beside an atom, by a difference; the error of the mean is below 1 %."""
    (x, y), share = NEURONS, 0.3
    rows = np.zeros((20_001, 5))
    rows[1:, 2:] = np.random.default_rng(1).standard_normal((20_000, 3))
    masses = np.array([1 - share, *np.full(20_000, share / 20_000)])
    losses = descent_losses(x, y, rows, 1e-4, 1, masses)
    assert (losses[0] - losses[1]) / 1e-4 / share == pytest.approx(escape_rate(x, y), rel=0.04)


def test_escape_rate_of_steep_neurons():
    """Inputs five times as large: tanh is nearly a sign, and 120 Gauss-Hermite nodes miss by 0.2 %."""
    x, y = NEURONS
    z = np.concatenate([5 * x, np.ones((len(x), 1))], axis=1)
    sampled = np.sum((np.tanh(np.random.default_rng(5).standard_normal((200_000, 3)) @ z.T) @ y / 12) ** 2, axis=1)
    assert escape_rate(5 * x, y) == pytest.approx(2.0624264, rel=1e-5)  # 1001 nodes up to 7
    assert abs(escape_rate(5 * x, y) - sampled.mean()) < 5 * sampled.std() / np.sqrt(200_000)


def test_fluctuation_vs_many_students():
    """4000 students of 64 neurons: 1.2 % of noise, some 2 % of finite width."""
    (x, y), rng = NEURONS, np.random.default_rng(2)
    early = descent_losses(x, y, rng.standard_normal((4000, 64, 5)), 0.5, 3)[-1]
    expected = loss_fluctuation(x, y, rng.standard_normal((20_000, 5)), 0.5, 3)
    assert 8 * early.std() == pytest.approx(expected, rel=0.07)


def test_short_steps_follow_the_flow():
    (x, y), start = HEADS, np.random.default_rng(3).standard_normal((4, 8))
    exact = flow_losses(x, y, start, [1.0])[0]
    errors = [abs(descent_losses(x, y, start, 1 / n, n)[-1] / exact - 1) for n in (100, 200)]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)


def test_reference_values():
    """Two neurons are stuck above a teacher of three, four are not, and an atom stays (spec 06, section 10)."""
    (x, y), rng = tanh_teacher(60), np.random.default_rng(4)
    two, four = (np.median(descent_losses(x, y, rng.standard_normal((6, m, 5)), 0.2, 3000)[-1]) for m in (2, 4))
    assert two > 5e-3
    assert four < 5e-4
    assert descent_losses(x, y, np.zeros((1, 5)), 0.2, 5) == pytest.approx(0.5 * np.mean(np.sum(y**2, axis=1)))


def test_contexts_have_no_closed_rate():
    with pytest.raises(ArgumentError, match="two axes"):
        escape_rate(*HEADS)
