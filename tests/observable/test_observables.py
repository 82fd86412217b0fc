"""Observables against plain NumPy, and what is read off curves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate.observe import OBSERVABLES
from pathlines.model.base import Snapshot
from pathlines.observable.analysis import crossing_time, decay_rate, hull_shrink
from pathlines.observable.limit_report import limit_report

TOKENS = pl.Sphere(3).sines(9)
GRAM = np.asarray(TOKENS) @ np.asarray(TOKENS).T
OFF = ~np.eye(9, dtype=bool)


def look(name, model=None, tokens=TOKENS, t=0.5, **parameters):
    model = pl.SelfAttention(2.0) if model is None else model
    state = model.initial(tokens)
    entry = OBSERVABLES[name]
    return np.asarray((entry.at(**parameters) if parameters else entry)(Snapshot(model, state, jnp.asarray(t), state)))


def test_pairs():
    np.testing.assert_allclose(look("overlaps"), GRAM, atol=1e-14)
    assert look("mean_overlap") == pytest.approx(GRAM[OFF].mean())
    assert look("u_max") == pytest.approx((1 - GRAM).max())
    assert look("diameter") == pytest.approx(np.sqrt(2 * (1 - GRAM).max()))
    assert look("variance") == pytest.approx(1 - np.linalg.norm(np.asarray(TOKENS).mean(0)) ** 2)
    assert look("p_clustered", delta=0.5) == pytest.approx(((1 - GRAM)[OFF] <= 0.5).mean())


def test_histograms_exclude_the_diagonal():
    upper = GRAM[np.triu_indices(9, 1)]
    expected = np.histogram(upper, np.linspace(-1, 1, 51))[0] / len(upper)
    np.testing.assert_allclose(look("pair_histogram"), expected)
    assert look("deficit_histogram").sum() == pytest.approx(1)


def test_energy_of_the_papers_definition():
    assert look("energy") == pytest.approx(np.exp(2 * GRAM).mean() / 4, rel=1e-13)
    assert look("energy_fraction") == pytest.approx(np.exp(2 * (GRAM - 1)).mean(), rel=1e-13)
    mean = np.asarray(TOKENS).mean(0)
    assert look("energy", pl.SelfAttention(0.0)) == pytest.approx(mean @ mean / 2, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-3, 0.1, 0.3, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_connected_components(delta, seed):
    tokens = pl.Sphere(3).uniform(jax.random.key(seed), 40)
    u = 1 - np.asarray(tokens) @ np.asarray(tokens).T
    count, labels = connected_components(u <= delta)
    assert look("cluster_count", tokens=tokens, delta=delta) == count
    sizes = look("cluster_sizes", tokens=tokens, delta=delta)
    assert sorted(sizes[sizes > 0]) == sorted(np.bincount(labels))


def test_attention_matrix_observables():
    weights = np.exp(2 * GRAM) / np.exp(2 * GRAM).sum(1, keepdims=True)
    np.testing.assert_allclose(look("attention_matrix"), weights, rtol=1e-13)
    assert look("attention_rank") == np.sum(np.linalg.svd(weights)[1] > 1e-6)
    np.testing.assert_allclose(look("in_degree"), weights.sum(0))
    assert look("booleanness") == pytest.approx(np.minimum(weights, 1 - weights).max())
    vectors = weights @ np.asarray(TOKENS)
    np.testing.assert_allclose(look("alignment"), (vectors * np.asarray(TOKENS)).sum(1), atol=1e-14)
    np.testing.assert_allclose(look("attention_length"), np.linalg.norm(vectors, axis=1), atol=1e-14)


def test_covariance_law():
    x = np.asarray(TOKENS)
    model = pl.SelfAttention(1.0, space="euclidean")
    expected = np.linalg.eigvalsh(2 * 0.5 * np.cov(x.T, bias=True))
    np.testing.assert_allclose(look("cov_law", model), expected, atol=1e-14)


def test_magnitudes_need_a_scheme():
    assert np.all(look("magnitude", pl.model.clustering.NormalisedAttention(1.0, "pre", magnitudes=1.5)) == 1.5)
    with pytest.raises(FormError, match="NormalisedAttention"):
        look("magnitude")


def test_parameters_are_checked():
    with pytest.raises(ArgumentError, match="no parameter `epsilon`"):
        OBSERVABLES["p_clustered"].at(epsilon=1)


def test_curves():
    t = np.linspace(0, 20, 201)
    assert decay_rate(t, np.exp(-1.7 * t)) == pytest.approx(1.7)
    assert crossing_time(t, t**2, 4.0) == pytest.approx(2.0, abs=1e-3)
    assert np.isnan(crossing_time(t, t, 99.0))
    with pytest.raises(ArgumentError, match="record more times"):
        decay_rate(t, np.ones_like(t))
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
    assert hull_shrink([square, 0.5 * square]) == pytest.approx(-0.5)
    assert hull_shrink([square, 1.5 * square]) == pytest.approx(0.5)


def test_limit_report_says_not_converged_on_a_plateau_and_counts_when_done():
    start = pl.Sphere(3).uniform(jax.random.key(3), 24)
    early = limit_report(pl.flow(pl.SelfAttention(4.0), start, times=[2.0]))
    assert early.clusters is None
    late = limit_report(pl.flow(pl.SelfAttention(1.0), start, times=[40.0]))
    assert late.clusters == 1


def test_limit_report_in_euclidean_space():
    start = pl.Euclidean(2).sines(10, 2.0)
    report = limit_report(pl.flow(pl.model.clustering.RescaledAttention(np.eye(2)), start, times=[12.0], rtol=1e-10))
    assert report.clusters == 4
    assert report.booleanness < 1e-12
    assert "polytope" in report.statement
    assert report.attention_rank == len(report.leaders) == 4


def test_one_token_has_no_mean_overlap():
    with pytest.raises(FormError, match="two tokens"):
        pl.flow(pl.SelfAttention(1.0), pl.Sphere(3).sines(1), times=[0.0, 1.0], record="mean_overlap")
