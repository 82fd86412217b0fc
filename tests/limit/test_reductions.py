"""Limits that take models: the same numbers as the formulas with their parameters typed by hand."""

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.limit.homogenized.attended import sampled_attention
from pathlines.limit.homogenized.gram import gram_layers
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.limit.homogenized.regimes import regime
from pathlines.model.gaussian.closure import gaussian_closure
from pathlines.model.homogenized.drift import HomogenizedODE
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.weights import FixedWeights, GaussianHeads

N, D, H, ETA, B = 6, 32, 4, 0.4, 1.5
V = ETA**2 / H  # (η²/H) d σ_V² with σ_V² = 1/d
RNG = np.random.default_rng(0)


def net():
    return pl.RandomTransformer(D, heads=H, step=ETA, logit_scale=B)


def run(model, seed, **more):
    chosen = {"depth": 12, "every": 4, "runs": 16, "record": "mean_overlap", **more}
    return pl.chain(model, pl.Sphere(D).simplex(N), key=jax.random.key(seed), **chosen)


def test_simplex_vs_formulas():
    curve = pl.simplex(net(), n=N)
    np.testing.assert_allclose(curve.layers(9), layer_map_curve(9, N, B, V, d=D, p=D).overlap, rtol=1e-12)
    np.testing.assert_allclose(curve.flow([0.0, 0.7]), overlap_curve([0.0, 0.7], N, B, d=D, p=D), rtol=1e-12)


def test_gram_vs_formulas():
    tokens = RNG.standard_normal((N, D))
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    found = pl.gram(net(), tokens, samples=64).layers(3)
    draw = lambda k: sampled_attention(k, B, p=D, samples=64, seed=0).mean  # noqa: E731
    np.testing.assert_allclose(found, gram_layers(found[0], draw, 3, V, d=D), rtol=1e-13)
    np.testing.assert_allclose(found[0], tokens @ tokens.T, atol=1e-15)
    np.testing.assert_array_equal(pl.gram(net(), found[0], samples=64).start, found[0])


def test_regime_vs_numbers():
    alpha = ETA * (D - 1) / D / H
    for depth in (3, 100):
        found, typed = pl.regime(net(), layers=depth), regime(ETA, alpha, depth, centred=True)
        assert (found.label, found.conditions) == (typed.label, typed.conditions)
        assert found.numbers == pytest.approx(typed.numbers, rel=1e-14)


def test_homogenize_vs_typed_parameters():
    law = GaussianHeads(D, value_mean=0.2 * np.eye(D))
    drifting = pl.RandomTransformer(law=law, heads=H, step=ETA, beta=0.5, update="tangent")
    typed = {"step": ETA, "heads": H, "update": "tangent"}
    for limit, wanted in (
        (pl.homogenize(drifting, time_step=0.2), HomogenizedSDE(law, 0.5, time_step=0.2, **typed)),
        (pl.homogenize(drifting, noise=False), HomogenizedODE(law, 0.5, **typed)),
    ):
        assert jax.tree.structure(limit) == jax.tree.structure(wanted)
        for one, other in zip(jax.tree.leaves(limit), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "beta", "options"),
    [
        ("softmax", 0.7, {}),
        ("linear", 0.7, {}),
        ("affine", 0.7, {}),
        ("l2", 0.7, {}),
        ("unnormalised", 0.2, {}),
        ("sigmoid", 0.7, {"bias": 0.3}),
        ("sinkhorn", 0.7, {"eps": 0.8, "prefactor": "1"}),
    ],
)
def test_gaussian_closure_vs_field_of_many_tokens(kind, beta, options):
    """Mean and covariance of the cloud move as E v and E v(x-α)ᵀ of its tokens: n of them are off by n^{-1/2}."""
    value, query, key = RNG.standard_normal((3, 2, 2)) / 2
    n = 4000
    tokens = np.array([0.3, -0.2]) + RNG.standard_normal((n, 2)) @ np.array([[0.6, 0.1], [0.0, 0.4]])
    attention = pl.attention.ATTENTIONS[kind](**options)
    model = pl.SelfAttention(beta, attention=attention, weights=FixedWeights(value, query, key), space="euclidean")
    closed = pl.gaussian_closure(model)
    velocity = np.asarray(model.drift(jax.numpy.asarray(tokens), 0.0))
    state = closed.initial(jax.numpy.asarray(tokens))
    rate = closed.drift(state, 0.0)
    error = 5 * velocity.std(axis=0) / np.sqrt(n)
    np.testing.assert_array_less(np.abs(velocity.mean(axis=0) - rate.mean), error + 1e-9)
    turned = velocity[:, :, None] * (tokens - tokens.mean(axis=0))[:, None]
    error = 5 * turned.std(axis=0) / np.sqrt(n)
    np.testing.assert_array_less(np.abs(turned.mean(axis=0) - rate.factor @ state.factor.T), error)


def test_gaussian_closure_of_a_model_is_that_of_its_parameters():
    value, query = RNG.standard_normal((2, 3, 3))
    model = pl.SelfAttention(0.7, weights=FixedWeights(value, query), space="euclidean")
    one, other = pl.gaussian_closure(model), gaussian_closure("softmax", value, query, scale=0.7)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ArgumentError, match="euclidean"):
        pl.gaussian_closure(pl.SelfAttention(1.0))


def test_mean_field_is_read_off_the_model():
    scaled = pl.attention.UnnormalisedAttention(shift=9.0)
    circle = pl.mean_field(pl.SelfAttention(9.0, attention=scaled))
    assert (float(circle.beta), float(circle.shift), circle.unnormalised) == (9.0, 9.0, True)
    zonal = pl.mean_field(pl.SelfAttention(4.0), d=5, nodes=40)
    assert (zonal.d, float(zonal.beta)) == (5, 4.0)
    assert pl.mean_field(net()).chain.heads == H
    for other in (pl.SelfAttention(1.0, mask="causal"), pl.SelfAttention(1.0, space="euclidean"), 5):
        with pytest.raises(PathlinesError, match="needs particles"):
            pl.mean_field(other)


def test_compare_by_layers_by_time_and_with_a_limit():
    measured, curve = run(net(), 0), pl.simplex(net(), n=N)
    found = pl.compare(measured, curve)
    mean = measured["mean_overlap"].mean("run").values
    np.testing.assert_allclose(found.predicted, curve.layers(12)[::4], rtol=1e-14)
    assert found.distance == pytest.approx(np.abs(mean - found.predicted).max())
    assert found.distance < 5 * found.error and found.figure.axes
    theory = pl.homogenize(net(), time_step=ETA / 2)
    half = run(theory, 1, depth=24, every=8)
    np.testing.assert_allclose(pl.compare(half, curve).predicted, curve.flow(half.data["tau"].values), rtol=1e-12)
    both = pl.compare(measured, half)
    assert both.clock == "tau" and both.distance < 5 * both.error
    again = pl.compare(net(), curve, start=pl.Sphere(D).simplex(N), depth=12, every=4, runs=16, key=jax.random.key(0))
    assert again.distance == found.distance


def test_compare_says_what_is_missing():
    with pytest.raises(ArgumentError, match="`theory` must be a run"):
        pl.compare(run(net(), 0), 5)
    with pytest.raises(ArgumentError, match="no record `energy`"):
        pl.compare(run(net(), 0), pl.simplex(net(), n=N), "energy")
    with pytest.raises(ArgumentError, match="centred Gaussian heads"):
        pl.simplex(pl.RandomTransformer(law=GaussianHeads(4, value_mean=np.eye(4)), beta=1.0), n=3)


def test_how_it_feels(tmp_path):
    """The two scripts of the design: a run of tokens, and a network, its regime, its limit and its reduction."""
    key = jax.random.key(0)
    tokens = pl.Sphere(3).uniform(key, n=20)
    seen = pl.flow(pl.SelfAttention(beta=9.0), tokens, until=0.5, record=[pl.energy, pl.cluster_count, pl.tokens])
    assert seen.plot().axes
    seen.animate(tmp_path / "film.gif")
    assert (tmp_path / "film.gif").stat().st_size > 0
    deep = pl.RandomTransformer(D, heads=8, step=0.3, beta=1.0)
    assert pl.regime(deep, layers=40).label == "sde"
    assert isinstance(pl.homogenize(deep), pl.Model)
    start = pl.Sphere(D).simplex(N)
    simulated = pl.chain(deep, start, depth=12, every=4, runs=8, key=key, record=pl.mean_overlap)
    assert "mean_overlap" in repr(pl.compare(simulated, pl.simplex(deep, n=N)))
