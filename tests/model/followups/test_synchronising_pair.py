"""Two tokens under common noise: the kernel of the field, the digits of the gap, the martingale, attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.limit.homogenized.perceptron_kernel import by_quadrature, ends, kernel_quotient, perceptron_kernel
from pathlines.model.followups.synchronising_pair import SynchronisingPair, _normalised
from pathlines.model.parts.field_kernel import FieldKernel
from pathlines.numerics.draws import Draws

KEY = jax.random.key(5)
GAPS = np.array([0.0, 1e-9, 1e-3, 0.3, 1.0, 1.7, 2.0])


@pytest.mark.parametrize("activation", ["relu", "erf", "linear", "tanh", "gelu", "silu"])
@pytest.mark.parametrize(("w", "b"), [(1.0, 0.0), (2.0, 0.7)])
def test_kernel_vs_limit(activation, w, b):
    own, apart = FieldKernel(activation, w, b).both(jnp.asarray(GAPS))
    np.testing.assert_allclose(own - apart, perceptron_kernel(1 - GAPS, activation, w, b), atol=5e-12)
    assert float(apart[1]) == pytest.approx(1e-9 * ends(activation, w, b)[1], rel=3e-5)


def test_erf_keeps_its_digits():
    """(k(1) - k(1-u))/u = k'(1) at gaps below the last digit of k(1)."""
    gaps = np.array([1e-300, 1e-18, 1e-16, 1e-14])
    apart = FieldKernel("erf").both(jnp.asarray(gaps))[1]
    np.testing.assert_allclose(apart / gaps, ends("erf")[1], rtol=1e-12)


def test_table_of_a_function_with_a_corner():
    own, apart = FieldKernel(lambda x: x / (1 + abs(x)), 1.2, 0.4).both(jnp.asarray(GAPS[1:]))
    limit = by_quadrature(lambda x: x / (1 + abs(x)))
    np.testing.assert_allclose(apart / GAPS[1:], kernel_quotient(GAPS[1:], limit, 1.2, 0.4), rtol=1e-6)
    assert float(apart[0]) == pytest.approx(1e-9 * ends(limit, 1.2, 0.4)[1], rel=1e-5)
    assert float(own) == pytest.approx(ends(limit, 1.2, 0.4)[0], rel=1e-10)
    with pytest.raises(ArgumentError, match="`sigma_w` must be ≤ 50"):
        FieldKernel("tanh", 1000.0)


def test_a_function_of_ones_own():
    own, apart = FieldKernel(jnp.sin, 1.3).both(jnp.asarray(GAPS))
    s = 1.3**2
    np.testing.assert_allclose(own, np.exp(-s) * np.sinh(s), rtol=1e-12)
    np.testing.assert_allclose(own - apart, np.exp(-s) * np.sinh(s * (1 - GAPS)), atol=1e-12)
    assert ends(by_quadrature(np.sin), 1.3)[1] == pytest.approx(s * np.exp(-s) * np.cosh(s), rel=1e-10)
    with pytest.raises(ArgumentError, match="`activation` must give a finite number"):
        FieldKernel(jnp.log)


@pytest.mark.parametrize("width", [None, 6])
def test_noise_has_the_kernel_as_covariance(width):
    """Variance of B(x), of B(x) - B(y), and their covariance, over 4·10⁴ draws, within 5 standard errors."""
    model = SynchronisingPair("tanh", 1.4, 0.3, width=width)
    u = jnp.asarray(0.6)

    def parts(key):
        return jnp.stack(model._covariance(u, Draws(key, 3 * (width or 0), 0, float)))

    found = np.asarray(jax.jit(jax.vmap(parts))(jax.random.split(KEY, 40_000)))
    top = ends("tanh", 1.4, 0.3)[0]
    away = top - perceptron_kernel(0.4, "tanh", 1.4, 0.3)
    error = np.maximum(found.std(axis=0) / 200, 1e-12)
    assert np.all(np.abs(found.mean(axis=0) - [top, away, 2 * away]) < 5 * error)


def test_gap_keeps_its_digits():
    """N(x) - N(x-Δ) for |Δ| = 1e-20: the projection of Δ over |x|."""
    x, apart = jnp.asarray([1.2, 0.5, -0.3]), 1e-20 * jnp.asarray([0.3, -0.4, 0.8])
    unit = x / jnp.linalg.norm(x)
    exact = (apart - unit * (unit @ apart)) / jnp.linalg.norm(x)
    np.testing.assert_allclose(_normalised(x, apart)[1], exact, rtol=1e-13)
    far = jnp.asarray([2.0, -1.0, 0.5])
    np.testing.assert_allclose(_normalised(x, far)[1], unit - (x - far) / jnp.linalg.norm(x - far), atol=1e-15)


def walked(model, gap, steps, runs, d=4):
    from pathlines.integrate.observe import Observable

    martingale = Observable("martingale", "martingale", "M", lambda snapshot: snapshot.state.martingale)
    start = pl.Sphere(d).simplex(2, 1 - gap)
    run = pl.chain(
        model, start, depth=steps, every=steps, key=KEY, runs=runs, record=["deficits", martingale, "tokens"]
    )
    return run["deficits"].values[:, -1, 0, 1], run["martingale"].values[:, -1], run["tokens"].values[:, -1]


def test_martingale_has_mean_zero_and_explains_the_noise():
    gap, martingale, tokens = walked(SynchronisingPair("relu", time_step=0.002), 0.3, 100, 2000)
    assert abs(martingale.mean()) < 5 * martingale.std() / np.sqrt(2000)
    logs = np.log(gap)
    assert np.var(logs - martingale) < 0.05 * np.var(logs)
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=2), 1, atol=1e-13)
    np.testing.assert_allclose(1 - np.sum(tokens[:, 0] * tokens[:, 1], axis=1), gap, atol=1e-13)


def test_dimension_is_that_of_longer_tokens():
    """Three dimensions inside eight have the law of three; outside nothing moves."""
    model = SynchronisingPair("erf", time_step=0.01, dimension=3)
    start = np.zeros((2, 8))
    start[:, :3] = pl.Sphere(3).simplex(2, 0.2)
    run = pl.chain(model, start, depth=40, every=40, key=KEY, runs=4000, record=["tokens", "deficits"])
    assert not np.any(run["tokens"].values[..., 3:])
    inside = run["deficits"].values[:, -1, 0, 1]
    plain = walked(SynchronisingPair("erf", time_step=0.01), 0.8, 40, 4000, d=3)[0]
    error = np.hypot(inside.std(), plain.std()) / np.sqrt(4000)
    assert abs(inside.mean() - plain.mean()) < 5 * error


def test_attention_alone_is_the_flow():
    """σ = 0 is no noise: layers of attention against the flow of two tokens."""
    model = SynchronisingPair("linear", 1e-150, attention=1.0, beta=3.0, time_step=0.05)
    start = pl.Sphere(4).simplex(2, 0.1)
    run = pl.chain(model, start, depth=20, every=20, key=KEY, record=["tokens"])
    flowed = pl.flow(pl.SelfAttention(3.0), start, times=[1.0], rtol=1e-12)["tokens"].values[-1]
    np.testing.assert_allclose(run["tokens"].values[-1], flowed, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SynchronisingPair("relu", 0.0), "`sigma_w` must be > 0, or `sigma_b`"),
        (lambda: SynchronisingPair("relu", -1.0), "`sigma_w` must be a finite number ≥ 0"),
        (lambda: SynchronisingPair(3), "`activation` must be a name or a function"),
        (lambda: SynchronisingPair(width=0), "`width` must be an integer ≥ 1"),
        (lambda: SynchronisingPair(dimension=1), "`dimension` must be an integer ≥ 2"),
        (lambda: SynchronisingPair().check(np.eye(3)), "`start` must be two tokens"),
        (lambda: SynchronisingPair().check(np.ones((2, 1))), "`start` must be two tokens"),
        (lambda: SynchronisingPair().check(np.eye(3)[[0, 0]]), "two different tokens"),
        (lambda: SynchronisingPair(dimension=2).check(np.eye(3)[1:]), "zero beyond its first 2 entries"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_unknown_activation():
    with pytest.raises(UnknownNameError, match="no activation `swish`"):
        SynchronisingPair("swish")
