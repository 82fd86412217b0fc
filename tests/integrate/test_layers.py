"""Stacks of layers against the discrete maps of the equiangular reduction, and against one another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import layers
from pathlines.limit.clustering.schemes import SCHEMES, layer_map
from pathlines.model import SelfAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.schemes import NGPT, MixLN
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.pairs import deficits, u_mean
from pathlines.observable.sphere import magnitude

ALPHA, SWITCH = 0.7, 1.0


def scheme(name):
    return {"mix": MixLN(SWITCH), "ngpt": NGPT(ALPHA)}.get(name, name)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize(
    ("n", "beta", "overlap", "size", "step"), [(6, 2.0, 0.05, 1.3, 0.25), (4, 0.5, -0.3, 0.8, 0.5)]
)
def test_layers_vs_discrete_maps(name, n, beta, overlap, size, step):
    depth = 8
    model = NormalisedAttention(beta, scheme(name), magnitudes=size)
    run = layers(model, Sphere(n).simplex(n, overlap), depth=depth, step=step, record=(deficits, magnitude))
    pairs = run["deficits"].values[:, *np.triu_indices(n, 1)]
    y, r = 1 - overlap, size
    for layer in range(depth + 1):
        np.testing.assert_allclose(pairs[layer], y, rtol=0, atol=1e-14)
        np.testing.assert_allclose(run["magnitude"].values[layer], r, rtol=1e-14)
        y, r = layer_map(name, y, r, n, beta, step, layer * step, ALPHA, SWITCH)


def test_post_ln_vs_self_attention():
    x = Sphere(3).sines(8)
    post = layers(NormalisedAttention(2.0, "post"), x, depth=5, step=0.3)
    plain = layers(SelfAttention(2.0), x, depth=5, step=0.3)
    np.testing.assert_allclose(post["tokens"].values, plain["tokens"].values, rtol=0, atol=1e-15)


def test_one_layer_vs_numpy():
    x, eta, beta = np.asarray(Sphere(3).sines(8)), 0.4, 2.0
    weights = np.exp(beta * x @ x.T)
    y = x + eta * weights @ x / weights.sum(axis=1, keepdims=True)
    run = layers(SelfAttention(beta), x, depth=1, step=eta)
    np.testing.assert_allclose(run["tokens"].values[-1], y / np.linalg.norm(y, axis=1, keepdims=True), atol=1e-15)


def test_every_only_skips_records():
    x = Sphere(3).sines(8)
    dense = layers(SelfAttention(2.0), x, depth=12, step=0.1)
    sparse = layers(SelfAttention(2.0), x, depth=12, step=0.1, every=4)
    np.testing.assert_array_equal(dense["tokens"].values[::4], sparse["tokens"].values)
    np.testing.assert_array_equal(sparse["layer"].values, [0, 4, 8, 12])
    np.testing.assert_allclose(sparse.time, [0.0, 0.4, 0.8, 1.2], rtol=1e-15)
    np.testing.assert_array_equal(sparse.final[1], sparse["tokens"].values[-1])


def test_two_stacks_in_a_row_are_one():
    x = Sphere(3).sines(8)
    whole = layers(SelfAttention(2.0), x, depth=6, step=0.2)["tokens"].values
    first = layers(SelfAttention(2.0), x, depth=3, step=0.2)["tokens"].values
    second = layers(SelfAttention(2.0), first[-1], depth=3, step=0.2)["tokens"].values
    np.testing.assert_array_equal(whole[3:], second)


def test_depth_zero_and_single_precision():
    x = Sphere(3).sines(8)
    np.testing.assert_array_equal(layers(SelfAttention(2.0), x, depth=0)["tokens"].values[0], x)
    single = layers(SelfAttention(2.0), np.asarray(x, np.float32), depth=5, step=0.3)["tokens"].values
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, layers(SelfAttention(2.0), x, depth=5, step=0.3)["tokens"].values, atol=2e-6)


def test_bad_input():
    x = Sphere(3).sines(8)
    with pytest.raises(ArgumentError, match="multiple of `every` = 4"):
        layers(SelfAttention(2.0), x, depth=10, every=4)
    with pytest.raises(ArgumentError, match="`step`"):
        layers(SelfAttention(2.0), x, depth=10, step=-0.1)
    with pytest.raises(ArgumentError, match="`depth`"):
        layers(SelfAttention(2.0), x, depth=-1)
    with pytest.raises(ArgumentError, match="rows of length 1"):
        layers(SelfAttention(2.0), 2 * x, depth=1)
    with pytest.raises(FormError, match="no layer map"):
        layers(CircleAttention(2.0), Sphere(2).sines(4), depth=1, record=u_mean)


def test_the_start_may_be_any_array():
    """The start may be any array: NumPy, JAX, a list."""
    x = Sphere(3).uniform(jax.random.key(1), 4)
    runs = [layers(SelfAttention(1.0), y, depth=2)["tokens"].values for y in (x, np.asarray(x), np.asarray(x).tolist())]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    assert jnp.isfinite(runs[0]).all()
