"""Parameters that are functions of depth-time."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.equiangular import overlap_rate
from pathlines.weights import VaryingWeights

X = pl.Sphere(3).sines(6)
RNG = np.random.default_rng(0)


def warm(t):
    return 2 + t


def final(model, x=X, until=1.0, rtol=1e-11, **options):
    return pl.flow(model, x, times=[until], rtol=rtol, **options)["tokens"].values[-1]


def test_a_value_that_grows_is_a_change_of_the_clock():
    """V(t) = (1 + t)V: x(t) is the run with V at the time t + t²/2."""
    value = RNG.standard_normal((2, 3, 3))
    growing = pl.SelfAttention(2.0, weights=VaryingWeights(lambda t: (1 + t) * value))
    steady = pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(value))
    np.testing.assert_allclose(final(growing, until=0.8), final(steady, until=0.8 + 0.8**2 / 2), atol=1e-9)


def test_a_temperature_that_falls_against_the_equiangular_equation():
    """The overlap of equiangular tokens obeys ρ' = rate(ρ, n, β(t)); SciPy integrates it to 10⁻¹²."""
    n, times = 5, np.array([0.5, 1.0, 1.5])
    run = pl.flow(pl.SelfAttention(warm), pl.Sphere(n).simplex(n), times=times, record="mean_overlap", rtol=1e-11)
    rate = lambda t, rho: overlap_rate(rho, n, warm(t))  # noqa: E731
    exact = solve_ivp(rate, (0, 1.5), [0.0], t_eval=times, rtol=1e-12, atol=1e-14, method="DOP853").y[0]
    np.testing.assert_allclose(run["mean_overlap"].values, exact, atol=1e-9)


def test_pieces_tend_to_the_function():
    """Constant pieces at midpoints are of second order: twice as many are four times as close."""
    base, turn = RNG.standard_normal((2, 3, 3))

    def value(t):
        return base + jnp.sin(3 * t) * turn

    smooth = final(pl.SelfAttention(1.0, weights=VaryingWeights(value)))
    errors = []
    for count in (8, 16):
        middle = (np.arange(count) + 0.5) / count
        pieces = pl.weights.PiecewiseWeights(np.arange(1, count) / count, np.stack([value(t) for t in middle]))
        errors.append(np.abs(final(pl.SelfAttention(1.0, weights=pieces)) - smooth).max())
    np.testing.assert_allclose(errors[0] / errors[1], 4.0, rtol=0.05)


def test_layers_have_the_beta_of_their_depth():
    run = pl.layers(pl.SelfAttention(warm), X, depth=3, step=0.5)
    x = X
    for number in range(3):
        x = pl.layers(pl.SelfAttention(warm(0.5 * number)), x, depth=1, step=0.5)["tokens"].values[-1]
    np.testing.assert_allclose(run["tokens"].values[-1], x, rtol=1e-13)


def test_observables_see_the_beta_of_their_time():
    run = pl.flow(
        pl.model.clustering.NormalisedAttention(warm, "pre"), X, times=[0.5, 2.0], record=["tokens", "energy"]
    )
    for k, t in enumerate(run.time):
        still = pl.flow(pl.SelfAttention(warm(t)), run["tokens"].values[k], times=[0.0], record="energy")
        np.testing.assert_allclose(run["energy"].values[k], still["energy"].values[0], rtol=1e-13)
    assert "dissipation_residual" not in run.data


def test_fast_forms_are_those_that_still_hold():
    circle = pl.flow(pl.SelfAttention(warm), pl.Sphere(2).sines(130), until=0.1, record="mean_overlap")
    wide = pl.flow(pl.SelfAttention(warm), pl.Sphere(9).sines(3), until=0.1, record="mean_overlap")
    assert [run.forms[0].name for run in (circle, wide)] == ["tokens", "span"]
    with pytest.raises(ArgumentError, match="`summation` must be 'dense'"):
        pl.flow(pl.SelfAttention(warm, summation="spectral"), X, until=1.0)


def test_a_description_holds_no_memory_address():
    run = pl.flow(pl.SelfAttention(lambda t: 1 + t, weights=VaryingWeights(lambda t: t * np.eye(3))), X, times=[0.1])
    text = json.dumps(run.setting)
    assert "0x" not in text and "<lambda>" in text


class Line(eqx.Module):
    slope: jax.Array

    def __call__(self, t):
        return 1 + self.slope * t


def test_derivatives_in_the_numbers_of_a_schedule():
    def overlap(beta):
        return pl.flow(pl.SelfAttention(beta), X, times=[1.0], record="mean_overlap", rtol=1e-11)["mean_overlap"][-1]

    closed, tree = lambda a: overlap(lambda t: 1 + a * t), lambda a: overlap(Line(jnp.asarray(a)))
    e = 1e-3
    values = [float(tree(0.5 + k * e)) for k in (-2, -1, 1, 2)]
    slope = np.dot([1, -8, 8, -1], values) / (12 * e)
    np.testing.assert_allclose([jax.grad(f)(0.5) for f in (closed, tree)], slope, rtol=1e-6)


def test_what_is_refused():
    with pytest.raises(ArgumentError, match=r"`beta\(0\)` must be a finite number ≥ 0"):
        pl.SelfAttention(lambda t: t - 1)
    with pytest.raises(ArgumentError, match="square matrices"):
        VaryingWeights(lambda t: np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="`over` must name a numeric field"):
        pl.ensemble(pl.SelfAttention(warm), lambda k: X, runs=1, key=jax.random.key(0), until=1.0, over={"beta": [1.0]})
