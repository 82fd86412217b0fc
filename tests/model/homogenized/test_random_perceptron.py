"""Random perceptrons, blocks and a whole encoder, against kernels, the layer map and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.limit.homogenized.perceptron_collapse import typical_separation_rate
from pathlines.limit.homogenized.perceptron_kernel import perceptron_kernel
from pathlines.model import SelfAttention
from pathlines.model.architecture.random_encoder import RandomEncoder
from pathlines.model.homogenized.random_block import RandomBlock
from pathlines.model.homogenized.random_perceptron import PerceptronNoise, RandomPerceptron
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.numerics.draws import Draws

KEY = jax.random.key(3)


def test_features_have_the_kernel_as_mean_covariance():
    """C Cᵀ averaged over 400 draws of width 64 against κ(K), within 5 standard errors."""
    activation, n, d = "tanh", 3, 5
    noise, x = PerceptronNoise(activation, 1.5, 64), pl.Sphere(d).sines(n)

    def gram(key):
        factor = noise.factor(x, Draws(key, (min(n, d) + 1) * 64, 0, x.dtype))
        return factor @ factor.T

    grams = np.asarray(jax.jit(jax.vmap(gram))(jax.random.split(KEY, 400)))
    exact = perceptron_kernel(np.clip(np.asarray(x @ x.T), -1, 1), activation, 1.5)
    assert np.all(np.abs(grams.mean(axis=0) - exact) < 5 * grams.std(axis=0) / np.sqrt(400))


def test_outputs_have_that_covariance_in_every_direction():
    """E u_i u_jᵀ = κ(K_ij) I/d at infinite width; 2·10⁴ draws, 5 standard errors."""
    noise, x, count = PerceptronNoise("erf", 2.0), pl.Sphere(3).sines(2), 20_000
    u = np.asarray(jax.jit(jax.vmap(lambda key: noise.output(x, key)))(jax.random.split(KEY, count)))
    products = np.einsum("sia,sjb->sijab", u, u)
    exact = np.einsum("ij,ab->ijab", perceptron_kernel(np.clip(np.asarray(x @ x.T), -1, 1), "erf", 2.0), np.eye(3) / 3)
    assert np.all(np.abs(products.mean(axis=0) - exact) < 5 * products.std(axis=0) / np.sqrt(count))


def test_nearby_tokens_synchronise_at_the_derived_rate():
    """relu noise alone, d = 5: log(1-R) drifts by -2κ(1)/d = -0.2 per unit of time while 1 - R is small.

    Finite-width features keep the digits that a kernel matrix would lose. 4000 pairs for time 2: s.e. 0.01.
    """
    d, delta, count, runs = 5, 0.02, 100, 4000
    assert typical_separation_rate(d) == pytest.approx(-0.2)
    model = RandomPerceptron("relu", width=32, time_step=delta)
    x = pl.Sphere(d).normalise([[1.0, 0, 0, 0, 0], [1.0, 1e-6, 0, 0, 0]])

    def gap(key):
        end = jax.lax.scan(lambda y, k: (model.random_layer(y, 0, k), None), x, jax.random.split(key, count))[0]
        return jnp.log(0.5 * jnp.sum((end[0] - end[1]) ** 2))

    slopes = (np.asarray(jax.jit(jax.vmap(gap))(jax.random.split(KEY, runs))) - np.log(0.5e-12)) / (count * delta)
    assert slopes.mean() == pytest.approx(-0.2, abs=5 * slopes.std() / np.sqrt(runs))


def test_attention_moves_tokens_by_its_flow():
    """With σ = 0 a step is the flow of self-attention over δ = 0.2, to the error (δ/2)⁵ of its two halves."""
    x, inner = pl.Sphere(3).sines(4), SelfAttention(2.0)
    model = RandomPerceptron("relu", strength=0.0, attention=inner, time_step=0.2)
    step = jax.jit(lambda: model.random_layer(x, 0, KEY))()
    flowed = pl.flow(inner, x, times=[0.2], method="dop853", rtol=1e-12, form="tokens")["tokens"].values[-1]
    np.testing.assert_allclose(step, flowed, atol=2e-5)


def mean_overlaps(model, directions, depth, every, runs=6):
    """Mean overlaps of ``runs`` runs at layers ``every``, 2·``every``, …: a plain loop over random layers."""
    start = model.initial(directions)
    states = jnp.broadcast_to(start, (runs, *start.shape))
    layer, found, n = jax.jit(jax.vmap(lambda x, key: model.random_layer(x, 0, key))), [], directions.shape[0]
    for number, key in enumerate(jax.random.split(KEY, depth), start=1):
        states = layer(states, jax.random.split(key, runs))
        if number % every == 0:
            x = np.asarray(states) / np.linalg.norm(states, axis=-1, keepdims=True)
            found.append((np.sum(x.sum(axis=1) ** 2, axis=-1) - n) / (n * (n - 1)))
    return np.mean(found, axis=1), np.std(found, axis=1) / np.sqrt(runs)


def test_block_follows_the_layer_map_and_does_not_collapse():
    """erf, σ_w = 3, η_m = 0.8, v = 0.16, n = 48, d = 128, p = 16 (spec 01, section 7 and claim C18).

    The map predicts 0.183 at layer 30 and rests at 0.525; the spec saw 0.176 ± 0.014 there and below 0.5 at layer 60.
    """
    attention = RandomTransformer(128, step=0.4, logit_scale=1.0, qk_dim=16)
    block = RandomBlock(attention, RandomPerceptron("erf", sigma_w=3.0, strength=0.8))
    assert block.derived["perceptron_power"] == pytest.approx(0.64)
    posed, name, _ = block.sampler_for((48, 128), False)
    assert name == "low-rank"
    mean, error = mean_overlaps(posed, pl.Sphere(128).simplex(48), 60, 30)
    assert mean[0] == pytest.approx(0.183, abs=3 * error[0] + 0.03)
    assert mean[1] < 0.5 + 3 * error[1]


def test_encoder_follows_the_layer_map():
    """n = 64, d = 128, 8 heads, s = 0.4, post: the map with p = 16 and its 1/d factor gives 0.034/0.128/0.335/0.622 at
    layers 8/16/24/32 (spec 01, section 7, claim C14: within 3 s.e. + 0.05).
    """
    model = RandomEncoder(128, 8, residual=0.4)
    assert model.derived["attention_power"] == pytest.approx(0.16)
    assert model.derived["logit_scale"] == pytest.approx(1.0) and model.derived["qk_dim"] == 16
    mean, error = mean_overlaps(model, pl.Sphere(128).simplex(64), 32, 8)
    assert np.all(np.abs(mean - [0.034, 0.128, 0.335, 0.622]) < 3 * error + 0.05)


def test_encoder_layer_by_hand():
    """One causal pre-norm layer with a perceptron, in NumPy from the same normals."""
    n, d, heads, width = 3, 4, 2, 5
    model = RandomEncoder(d, heads, placement="pre", residual=0.7, mask="causal", width=width, sigma_q=0.9, sigma_v=0.3)
    h = np.random.default_rng(0).normal(size=(n, d))

    @jax.jit
    def layer(state):
        draws = Draws(KEY, 4 * d * d + 2 * d * width, 0, state.dtype)
        return model.random_layer(state, 0, KEY), draws.normal(4, d, d), draws.normal(d, width), draws.normal(width, d)

    found, (q, k, v, o), inner, outer = (np.asarray(a) for a in layer(jnp.asarray(h)))
    rms = lambda y: y / np.sqrt(np.mean(y * y, axis=1, keepdims=True))  # noqa: E731
    x, out = rms(h), []
    for part in (slice(0, 2), slice(2, 4)):
        scores = (0.9 * x @ q[:, part]) @ (d**-0.5 * x @ k[:, part]).T / np.sqrt(2)
        weights = np.tril(np.exp(scores))
        out.append(weights / weights.sum(axis=1, keepdims=True) @ (0.3 * x @ v[:, part]))
    h = h + 0.7 * np.concatenate(out, axis=1) @ o / np.sqrt(d)
    hidden = np.asarray(jax.lax.erf(rms(h) @ inner / np.sqrt(d)))
    np.testing.assert_allclose(found, h + hidden @ outer / np.sqrt(width), atol=1e-13)


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="width"):
        PerceptronNoise("tanh", width=0)
    with pytest.raises(UnknownNameError, match="swish"):
        PerceptronNoise("swish")
    with pytest.raises(ArgumentError, match="divide"):
        RandomEncoder(10, 3)
    with pytest.raises(ArgumentError, match="placement"):
        RandomEncoder(8, 2, placement="sandwich")
    block = pl.MODELS["random-block"].build(d=16)
    with pytest.raises(ArgumentError, match="ambient"):
        pl.chain(block, pl.Sphere(16).simplex(4), depth=1, key=KEY, record="mean_overlap", sampler="gram")
    assert pl.MODELS["random-perceptron"].build().clocks == {"t": 0.02}
    assert pl.MODELS["random-encoder"].build().derived["perceptron_power"] == 0
