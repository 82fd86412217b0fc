"""Fine-tuning: the corrected derivative, and what it is offered for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.transport.relu import hinge_slope
from pathlines.transport.euclid.affine import rotation_schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.training import Weights, corrected_log_prob, finetune

RNG = np.random.default_rng(3)


def pieces(count, d, size=1.0):
    w, a = RNG.standard_normal((2, count, d)) / np.sqrt(d)
    return EuclideanSchedule(size * w, a, RNG.standard_normal(count), np.ones(count))


def test_value_vs_schedule():
    flow, y = pieces(12, 3), RNG.standard_normal((50, 3))
    found = corrected_log_prob(Weights(*(jnp.asarray(v) for v in (flow.w, flow.a, flow.b))), jnp.asarray(y))
    np.testing.assert_allclose(found, flow.log_prob(y), rtol=1e-10)  # the correction is zero; both in double precision


@pytest.mark.parametrize(("b", "w"), [(0.3, 0.7), (-1.2, -0.4), (0.0, 1.5)])
def test_hinge_slope_vs_quadrature(b, w):
    """The closed form against a difference of the exact mean log-density."""

    def mean(bias):
        flow = EuclideanSchedule([[w]], [[1.0]], [bias], [1.0])
        density = lambda y: np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi) * flow.log_prob([[y]])[0]  # noqa: E731
        return sum(quad(density, *ends, epsabs=1e-13)[0] for ends in ((-12, -bias), (-bias, 12)))

    step = 1e-4
    np.testing.assert_allclose(hinge_slope(b, w).whole, (mean(b + step) - mean(b - step)) / (2 * step), atol=1e-7)


def test_gradient_vs_differences_of_a_large_sample():
    """Every derivative of the mean log-density of 10⁶ points, by differences wide enough for the jumps to be many."""
    flow, y = pieces(4, 2, 0.5), np.random.default_rng(1).standard_normal((1_000_000, 2))
    start = np.concatenate([v.ravel() for v in (flow.w, flow.a, flow.b)])

    def unpacked(flat):
        w, a, b = np.split(np.asarray(flat), [8, 16])
        return w.reshape(4, 2), a.reshape(4, 2), b

    def value(flat):
        return EuclideanSchedule(*unpacked(flat), np.ones(4)).log_prob(y).mean()

    step = 0.02
    steps = step * np.eye(20)
    wanted = np.array([(value(start + e) - value(start - e)) / (2 * step) for e in steps])
    weights = Weights(*(jnp.asarray(v) for v in unpacked(start)))
    slope = jax.grad(lambda w: corrected_log_prob(w, jnp.asarray(y), 0.02).mean())(weights)
    found = np.concatenate([np.asarray(v).ravel() for v in slope])
    # jumps of order one, met by √(2·step·10⁶) points: noise of 0.004 in each difference; step and width add 0.001
    np.testing.assert_allclose(found, wanted, atol=0.02)
    plain = jax.grad(lambda w: corrected_log_prob(w, jnp.asarray(y), 1e9).mean())(weights)
    assert np.abs(np.concatenate([np.asarray(v).ravel() for v in plain]) - wanted).max() > 0.05


def test_finetuning_helps_and_never_harms():
    law = pl.transport.GaussianMixture([0.5, 0.5], [[-1.5, 0.0], [1.5, 0.5]], [0.3 * np.eye(2)] * 2)
    samples, fresh = law.sample(1500, seed=1), law.sample(20_000, seed=2)
    flows = [pl.RidgeFlow(layers=4, knots=8, finetune=steps).fit(samples) for steps in (0, 40)]
    built, tuned = (float(np.mean(law.log_prob(fresh) - f.log_prob(fresh))) for f in flows)
    assert tuned < 0.9 * built
    assert flows[1].report_.round_trip < 1e-9
    assert flows[1].report_.kl is not None and abs(flows[1].report_.kl - tuned) < 5 * flows[1].report_.kl_error
    white = (samples - samples.mean(0)) / samples.std(0)
    perfect = finetune(rotation_schedule(0.3), RNG.standard_normal((400, 2)), 20, rate=1.0)  # each step overshoots
    assert perfect == rotation_schedule(0.3)
    assert finetune(rotation_schedule(0.3), white, 20) != rotation_schedule(0.3)


def test_what_cannot_be_finetuned():
    data = RNG.standard_normal((100, 2))
    steep = pl.TriangularFlow(bins=4, knots=4).fit(data).schedule_
    for flow, samples, words in (
        (steep, data, "no ramps of a stack"),
        (EuclideanSchedule.empty(2), data, "but has none"),
        (rotation_schedule(0.3), 100 * data, "unit spread"),
        (rotation_schedule(0.3), np.ones((100, 3)), "must have 2 columns"),
        ("flow", data, "must be a EuclideanSchedule"),
    ):
        with pytest.raises(ArgumentError, match=words):
            finetune(flow, samples)
