"""Derivatives, jit and vmap through flow, layers and chain.

Differences are of fourth order with ε = 10⁻³: their error is 10⁻¹² times a fifth derivative of order one, and the
rounding of runs that are right to 10⁻¹² or better enters as 10⁻⁹; derivatives of adaptive runs are right to about their
tolerance. 10⁻⁶ is what is promised.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate.traced import TracedRun
from pathlines.limit.clustering.equiangular import overlap_at

X = pl.Sphere(3).sines(6)
RNG = np.random.default_rng(0)
PROMISED = 1e-6


def difference(f, x, e=1e-3):
    return float((f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * e))


def last(run, name="mean_overlap"):
    """The last record of a run, labelled or traced."""
    return jnp.asarray(run[name].values if not isinstance(run, TracedRun) else run[name])[..., -1]


def final_energy(beta):
    return last(pl.flow(pl.SelfAttention(beta), X, times=[1.0, 2.0], record="energy", rtol=1e-12), "energy")


def test_the_final_energy_in_beta():
    slope = jax.grad(final_energy)(2.0)
    np.testing.assert_allclose(slope, difference(final_energy, 2.0), rtol=PROMISED)
    np.testing.assert_allclose(jax.jvp(final_energy, (2.0,), (1.0,))[1], slope, rtol=1e-9)


def test_the_overlap_of_equiangular_tokens_against_its_closed_form():
    n, time = 4, 0.7

    def overlap(beta):
        start = pl.Sphere(n).simplex(n)
        return pl.flow(pl.SelfAttention(beta), start, times=[time], record="mean_overlap", rtol=1e-11)["mean_overlap"][
            -1
        ]

    exact = difference(lambda beta: overlap_at(time, n, beta), 3.0)
    np.testing.assert_allclose(jax.grad(overlap)(3.0), exact, rtol=PROMISED)


@pytest.mark.parametrize("summation", ["dense", "spectral"])
def test_a_cluster_observable_in_the_tokens(summation):
    """1/Σ m_i m_j e^{β(<x_i,x_j>-1)} counts clusters, smoothly."""
    x, model = pl.Sphere(2).sines(7), pl.SelfAttention(4.0, summation=summation)
    along = RNG.standard_normal(x.shape)
    name = "energy_fraction"

    def clusters(s):
        start = pl.Sphere(2).normalise(x + s * along)
        if summation == "spectral":  # one sum to compile instead of six
            return 1 / last(pl.layers(model, start, depth=5, step=0.3, record=name), name)
        return 1 / last(pl.flow(model, start, times=[1.5], record=name, rtol=1e-11), name)

    np.testing.assert_allclose(jax.grad(clusters)(0.0), difference(clusters, 0.0), rtol=PROMISED)


def test_every_float_of_a_model_and_the_tokens_at_once():
    value, query, key = RNG.standard_normal((3, 2, 3, 3)) / 2
    outer, inner = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 3))
    perceptron = pl.model.parts.Perceptron(outer, inner, activation="tanh")
    model = pl.SelfAttention(
        1.5, weights=pl.weights.FixedWeights(value, query, key), perceptron=perceptron, mask="causal"
    )

    def overlap(model, x):
        return last(pl.flow(model, x, times=[0.8], record="mean_overlap", rtol=1e-11))

    slopes, by_tokens = eqx.filter_grad(lambda both: overlap(*both))((model, X))
    parts = jax.tree.leaves((slopes.beta, slopes.weights, slopes.perceptron, by_tokens))
    assert len(parts) == 8 and all(float(jnp.abs(p).max()) > 0 for p in parts)
    numbers, rest = eqx.partition(model, eqx.is_inexact_array)
    along = jax.tree.map(lambda a: jnp.asarray(RNG.standard_normal(a.shape)), numbers)
    shifted = lambda s: eqx.combine(jax.tree.map(lambda a, b: a + s * b, numbers, along), rest)  # noqa: E731
    total = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(slopes), jax.tree.leaves(along), strict=True))
    np.testing.assert_allclose(total, difference(lambda s: overlap(shifted(s), X), 0.0), rtol=PROMISED)


def test_the_last_time_and_the_step_of_a_method():
    model, now = pl.SelfAttention(2.0), jnp.zeros(())
    at = lambda t: pl.flow(model, X, times=[t], rtol=1e-11)["tokens"][-1]  # noqa: E731
    np.testing.assert_allclose(jax.jacfwd(at)(0.5), model.drift(at(0.5).values, now), atol=1e-9)
    euler = lambda h: last(pl.flow(model, X, times=[1.0], method="euler", step=h, record="mean_overlap"))  # noqa: E731
    np.testing.assert_allclose(jax.grad(euler)(0.15), difference(euler, 0.15), rtol=PROMISED)


def test_layers_in_their_step():
    deep = lambda eta: last(pl.layers(pl.SelfAttention(3.0), X, depth=12, every=3, step=eta, record="energy"), "energy")  # noqa: E731
    np.testing.assert_allclose(jax.grad(deep)(0.2), difference(deep, 0.2), rtol=PROMISED)
    np.testing.assert_allclose(jax.jit(deep)(0.2), deep(0.2), rtol=1e-13)


def chained(eta, **options):
    net = pl.RandomTransformer(8, heads=2, step=eta, logit_scale=1.0)
    run = pl.chain(
        net, pl.Sphere(8).sines(5), depth=6, every=2, runs=3, key=jax.random.key(1), record="mean_overlap", **options
    )
    return last(run, "mean_overlap").mean()


def test_the_mean_overlap_of_a_chain_in_its_step():
    known = lambda eta: chained(eta, sampler="naive")  # noqa: E731
    np.testing.assert_allclose(jax.grad(chained)(0.3), difference(known, 0.3), rtol=PROMISED)
    np.testing.assert_allclose(jax.vmap(chained)(jnp.array([0.2, 0.3]))[1], known(0.3), rtol=1e-12)


def test_a_chain_over_keys():
    net, x = pl.RandomTransformer(8, step=0.3, logit_scale=1.0), pl.Sphere(8).sines(4)
    keys = jax.random.split(jax.random.key(0), 3)
    one = lambda key: pl.chain(net, x, depth=3, key=key, record="mean_overlap", sampler="naive")["mean_overlap"]  # noqa: E731
    np.testing.assert_allclose(jax.vmap(one)(keys)[2], one(keys[2]).values, rtol=1e-12)


def test_many_betas_at_once_are_the_runs_of_each():
    betas = jnp.array([0.5, 2.0, 6.0])
    found = jax.jit(jax.vmap(final_energy))(betas)
    np.testing.assert_allclose(found, [final_energy(float(b)) for b in betas], rtol=1e-11)


def test_a_jitted_function_may_return_the_run():
    values = RNG.standard_normal((2, 3, 3))
    pieces = lambda scale: pl.SelfAttention(1.0, weights=pl.weights.PiecewiseWeights([0.7], scale * values))  # noqa: E731
    run = jax.jit(lambda scale: pl.flow(pieces(scale), X, until=1.5, record=["mean_overlap", "tokens"]))(1.0)
    known = pl.flow(pieces(1.0), X, until=1.5, record=["mean_overlap", "tokens"])
    assert isinstance(run, TracedRun) and bool(run.finished) and run.forms[0].name == "tokens"
    assert "traced" in run.forms[0].reason and "'mean_overlap': (101,)" in repr(run)
    np.testing.assert_allclose(run["mean_overlap"], known["mean_overlap"].values, rtol=1e-12)
    np.testing.assert_allclose(run.final.state, known["tokens"].values[-1], rtol=1e-12)
    np.testing.assert_array_equal(run.time, known.time)


def test_records_that_were_not_reached_are_nan():
    run = jax.jit(lambda b: pl.flow(pl.SelfAttention(b), X, times=[0.01, 50.0], record="mean_overlap", max_steps=9))(
        2.0
    )
    assert not run.finished
    assert np.isfinite(run["mean_overlap"][0]) and np.isnan(run["mean_overlap"][1])


def kept(f, x):
    """Bytes that a compiled gradient works with."""
    return jax.jit(jax.grad(f)).lower(x).compile().memory_analysis().temp_size_in_bytes


def test_reverse_mode_keeps_few_states():
    """10⁴ layers, or steps: a loop that kept a state each would hold 10⁴ of them."""
    x, model = pl.Sphere(3).sines(64), pl.SelfAttention(1.0)
    overlap = {"record": "mean_overlap"}
    deep = lambda eta: last(pl.layers(model, x, depth=10_000, every=10_000, step=eta, **overlap))  # noqa: E731
    long = lambda eta: last(  # noqa: E731
        pl.flow(model, x, times=[1.0], method="euler", step=eta, max_steps=10_000, **overlap)
    )
    for f in (deep, long):
        assert kept(f, 1e-4) < 0.1 * 10_000 * x.size * 8


def test_what_a_traced_run_refuses():
    refused = lambda **k: jax.grad(lambda b: pl.flow(pl.SelfAttention(b), X, until=1.0, **k)["tokens"].sum())(1.0)  # noqa: E731
    with pytest.raises(FormError, match="the form is 'tokens'"):
        refused(form="span")
    with pytest.raises(ArgumentError, match="`checkpoint` must be None in a traced function"):
        refused(checkpoint=print)
    with pytest.raises(ArgumentError, match=r"`tokens` must have shape \(n, d\)"):
        jax.grad(lambda x: pl.flow(pl.SelfAttention(1.0), x, until=1.0)["tokens"].sum())(jnp.zeros(3))
