"""Runs that share their noise: two numbers of tokens, two starts, chain and SDE, listeners of a mean field."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.model.homogenized.circle_measure import CircleMeasure
from pathlines.model.homogenized.shared_noise import shared_heads, summed_heads
from pathlines.model.homogenized.transported_measure import TransportedMeasure, von_mises_distribution, von_mises_nodes
from pathlines.numerics.quadrature import WeightedNodes

KEY = jax.random.key(7)
PLANE = pl.RandomTransformer(2, step=0.2, logit_scale=2.0)
FIXED = pl.GaussianHeads(3, sigma_a=0.0, value_mean=0.5, score_mean=np.diag([1.0, -0.5, 0.3]))
TOKENS = pl.Sphere(3).sines(4)


def on_plane(multiplicities):
    return TransportedMeasure(pl.RandomTransformer(2, step=0.2, logit_scale=2.0, multiplicities=multiplicities))


def test_the_heads_are_those_of_the_chain():
    """Two starts of different size: each run is the chain with full matrices and the same key."""
    starts = [von_mises_nodes(5, 0.8), von_mises_nodes(9, 2.0)]
    found = pl.integrate.coupled_chains([PLANE, TransportedMeasure(PLANE)], starts, depth=3, key=KEY, runs=2)
    for run, start in zip(found, starts, strict=True):
        alone = pl.chain(PLANE, start, depth=3, key=KEY, runs=2, sampler="naive", record="tokens")
        np.testing.assert_allclose(run["tokens"].values, alone["tokens"].values, rtol=0, atol=1e-13)


def test_a_token_is_moved_as_it_was_among_the_same_others():
    """Six tokens, and the same six as markers with copies of themselves that listen: token and copy stay together."""
    law = WeightedNodes(np.asarray(von_mises_nodes(6, 0.8)), np.full(6, 1 / 6))
    start = lambda key: jnp.asarray(law.tokens)  # noqa: E731
    found = pl.integrate.synchronous_coupling(PLANE, on_plane, law, start, depth=4, key=KEY, runs=3)
    assert found.tokens.shape == found.copies.shape == (3, 5, 6, 2)
    assert found.squares.max() < 1e-28
    assert np.ptp(found.tokens[:, -1, 0], axis=0).max() > 1e-3


def test_random_starts_are_copied():
    law = WeightedNodes(np.asarray(von_mises_nodes(32, 0.8)), np.full(32, 1 / 32))
    found = pl.integrate.synchronous_coupling(
        PLANE, on_plane, law, partial(pl.Sphere(2).uniform, n=3), depth=2, key=KEY, runs=4
    )
    assert found.squares[:, 0].max() == 0 < found.squares[:, -1].min()
    assert np.ptp(found.tokens[:, 0, 0], axis=0).min() > 0.01


def test_nodes_and_grid_share_their_heads():
    grid = CircleMeasure(PLANE, 256)
    starts = [von_mises_nodes(128, 0.8), grid.masses_of(lambda angle: von_mises_distribution(angle, 0.8))]
    nodes, cells = pl.integrate.coupled_chains([TransportedMeasure(PLANE), grid], starts, depth=3, key=KEY)
    assert cells.certificate("folds").passed
    mean = grid.mean(jnp.asarray(cells["state"].values[-1]))
    np.testing.assert_allclose(nodes["tokens"].values[-1].mean(axis=0), mean, atol=1e-5)
    assert np.abs(mean - grid.mean(starts[1])).max() > 1e-3


def test_parts_add_up_to_the_heads_of_a_layer():
    """k^{-1/2} Σ_j N_j of k = 4 parts is one normal matrix: mean, variance, and the drift V̄ untouched."""
    chain = pl.RandomTransformer(law=FIXED, beta=1.0, heads=2)
    draw = jax.jit(jax.vmap(lambda k: summed_heads(chain, shared_heads(chain, 4, k, float)).value))
    values = np.asarray(draw(jax.random.split(KEY, 4000))).reshape(-1, 3, 3)
    error = 3**-0.5 / np.sqrt(len(values))
    assert np.abs(values.mean(axis=0) - 0.5 * np.eye(3)).max() < 5 * error
    assert np.abs(values.var(axis=0) - 1 / 3).max() < 5 * np.sqrt(2 / len(values)) / 3


def gap(step, parts, corrector="full"):
    deep = pl.RandomTransformer(law=FIXED, beta=1.0, step=step, heads=2)
    limit = pl.model.homogenized.HomogenizedSDE(
        FIXED, 1.0, step=step, heads=2, noise_heads=2, time_step=step / parts, corrector=corrector
    )
    runs = pl.integrate.coupled_chains([deep, limit], [TOKENS] * 2, depth=round(0.8 / step), key=KEY, runs=200)
    ends = [run["tokens"].values[:, -1] for run in runs]
    assert [run.time[-1] for run in runs] == pytest.approx([0.8, 0.8])
    return np.sqrt(np.mean((ends[0] - ends[1]) ** 2)), np.sqrt(np.mean((ends[0] - np.asarray(TOKENS)) ** 2))


@pytest.mark.parametrize("parts", [1, 2])
def test_chain_and_sde_on_one_brownian_motion(parts):
    """Their distance falls at least like η, and is much smaller than the way that the tokens went."""
    (far, way), (near, _) = gap(0.2, parts), gap(0.05, parts)
    assert far < 0.1 * way
    assert far > 3.5 * near  # fourfold at order one, less what 200 runs leave open


def test_what_cannot_be_shared_is_refused():
    other = pl.RandomTransformer(2, step=0.2, logit_scale=2.0, sigma_v=0.3)
    random = pl.GaussianHeads(2, value_mean=1.0)
    uneven = pl.model.homogenized.HomogenizedSDE(FIXED, 1.0, step=0.2, time_step=0.15)
    fine = pl.model.homogenized.HomogenizedSDE(random, logit_scale=1.0, step=0.2, time_step=0.1, tolerance=0.05)
    deep = pl.RandomTransformer(law=random, logit_scale=1.0, step=0.2)
    for models, message in (
        ([PLANE, other], "the same law of heads"),
        ([PLANE, pl.model.homogenized.RandomPerceptron()], "but holds RandomPerceptron"),
        ([pl.RandomTransformer(law=FIXED, beta=1.0, step=0.2), uneven], "must be η/k"),
        ([deep, fine], "unless values are Gaussian and scores fixed"),
        ([], "one start per model"),
    ):
        with pytest.raises(ArgumentError, match=message):
            pl.integrate.coupled_chains(models, [von_mises_nodes(3, 1.0)] * len(models), depth=1, key=KEY)
    with pytest.raises(ArgumentError, match="be a law"):
        pl.integrate.synchronous_coupling(
            PLANE, on_plane, WeightedNodes(np.eye(2), np.ones(2) / 2), np.eye(2)[None], key=KEY, depth=1
        )
