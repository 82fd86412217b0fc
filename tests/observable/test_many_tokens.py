"""Observables of many tokens: the same numbers as those of few, without n × n of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import pathlines as pl
from pathlines.foundation.errors import FormError
from pathlines.integrate import certify
from pathlines.integrate.observe import OBSERVABLES
from pathlines.model import base
from pathlines.model.base import Snapshot
from pathlines.observable import clusters
from pathlines.observable.linkage import linked_by_cells, linked_labels

N = 21
PAIRS = (
    "mean_overlap", "u_max", "u_mean", "diameter", "variance", "p_clustered", "pair_histogram", "deficit_histogram",
    "cross_ratios", "mean_square", "overlap_deviation", "smallest_overlap", "effective_rank", "antipodal_pairs",
    "energy", "energy_fraction", "cluster_count", "cluster_labels", "cluster_sizes", "slow_manifold_distance",
)  # fmt: skip
EVERYWHERE = ("u_max", "u_mean", "diameter", "p_clustered", "deficit_histogram", "cluster_count", "cluster_labels")


def grouped(d: int, spread: float = 0.03) -> jax.Array:
    """Tokens in a few groups and some alone, so that clusters of every kind are there."""
    centres = jax.random.normal(jax.random.key(d), (6, d))
    sizes, size = np.array([8, 6, 4, 1, 1, 1]), N
    assert sizes.sum() == size
    return pl.Sphere(d).clusters(jax.random.key(1), centres, sizes, spread)


def look(names: tuple[str, ...], model, tokens) -> dict[str, jax.Array]:
    def all_of(tokens):
        state = model.initial(tokens)
        return {name: OBSERVABLES[name](Snapshot(model, state, jnp.asarray(0.0), state)) for name in names}

    return jax.jit(all_of)(tokens)


@pytest.mark.parametrize(
    ("model", "d", "names"),
    [
        (pl.SelfAttention(2.0), 3, PAIRS),
        (pl.SelfAttention(2.0, multiplicities=np.arange(1.0, N + 1)), 5, PAIRS),
        (pl.model.metastability.CircleAttention(2.0), 2, PAIRS),
        (pl.SelfAttention(0.0), 3, ("energy", "energy_fraction")),
        (pl.SelfAttention(2.0, attention="l2"), 3, ("energy", "energy_fraction")),
        (pl.SelfAttention(1.0, space="euclidean"), 4, EVERYWHERE),
    ],
    ids=["sphere", "masses", "circle", "flat", "l2", "euclidean"],
)
def test_blocks_give_what_the_matrix_gives(monkeypatch, model, d, names):
    tokens = grouped(d)
    whole = look(names, model, tokens)
    monkeypatch.setattr(base, "MANY_TOKENS", 4)
    monkeypatch.setattr(base, "BLOCK_PAIRS", 4 * N)  # five blocks of four rows and one of one
    monkeypatch.setattr(Snapshot, "deficits", property(lambda self: pytest.fail("asked for n × n numbers")))
    for name, value in look(names, model, tokens).items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("name", [*PAIRS, "mean_norm", "alignment"])
def test_a_hundred_thousand_tokens_make_no_matrix(name):
    """No array of the traced program has more than n · 10³ entries: 10⁵ tokens take less than a gigabyte."""
    n, model = 100_000, pl.SelfAttention(2.0)
    tokens = jax.ShapeDtypeStruct((n, 3), float)
    traced = jax.make_jaxpr(lambda x: OBSERVABLES[name](Snapshot(model, x, jnp.asarray(0.0), x)))(tokens)
    assert _largest(traced.jaxpr) <= 1000 * n


def _largest(jaxpr) -> int:
    sizes = [np.prod(v.aval.shape, dtype=float) for e in jaxpr.eqns for v in e.outvars]
    return int(max([0, *sizes, *_inner(jaxpr)]))


def _inner(jaxpr) -> list[int]:
    found = []
    for equation in jaxpr.eqns:
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")):
            sub = getattr(value, "jaxpr", value)
            if hasattr(sub, "eqns"):
                found.append(_largest(sub))
    return found


@pytest.mark.parametrize("name", ["attention_matrix", "in_degree", "overlaps", "attention_entropy"])
def test_matrices_that_do_not_fit_are_refused_with_their_size(name, monkeypatch):
    model, tokens = pl.SelfAttention(2.0), jax.ShapeDtypeStruct((100_000, 3), float)
    monkeypatch.setattr(base, "physical_memory", lambda: 2e9)
    with pytest.raises(FormError, match="n = 100000 tokens takes 80 GB, and this machine has 2 GB"):
        jax.eval_shape(lambda x: OBSERVABLES[name](Snapshot(model, x, jnp.asarray(0.0), x)), tokens)


def test_linkage_by_cells_vs_connected_components():
    rng = np.random.default_rng(0)
    for _ in range(60):
        d, n, k = rng.integers(1, 4), rng.integers(1, 120), rng.integers(1, 12)
        x = rng.standard_normal((k, d))[rng.integers(0, k, n)]
        x += rng.choice([0, 1e-3, 0.05, 0.3]) * rng.standard_normal((n, d))
        delta = rng.choice([0.0, 1e-8, 1e-3, 0.02, 0.1, 0.5])
        labels = connected_components(0.5 * ((x[:, None] - x) ** 2).sum(-1) <= delta)[1]
        first = np.unique(labels, return_index=True)[1]
        np.testing.assert_array_equal(linked_by_cells(x, delta), first[labels])


def test_crowded_cells_are_compared_by_a_tree():
    """Two cells of many points, some of which touch across the wall; then moved apart."""
    rng = np.random.default_rng(1)
    one, other = 1e-3 * rng.standard_normal((2, 1500, 3))
    reach = np.sqrt(2e-3)
    for gap, count in ((reach - 1e-3, 1), (reach + 1e-2, 2)):
        found = linked_by_cells(np.concatenate([one, other + np.array([gap, 0, 0])]), 1e-3)
        assert len(np.unique(found)) == count


def test_deficits_of_ones_own_are_not_replaced_by_rows_of_others(monkeypatch):
    class Doubled(pl.SelfAttention):
        def deficits(self, state, t):
            return 2 * super().deficits(state, t)

    monkeypatch.setattr(base, "MANY_TOKENS", 4)
    one, two = (look(("u_max", "u_mean"), kind(2.0), grouped(3)) for kind in (pl.SelfAttention, Doubled))
    for name, value in one.items():
        assert 2 * float(value) == pytest.approx(float(two[name]))


def test_certificates_look_at_the_deficits_of_the_first_tokens_only():
    model, x, t = pl.SelfAttention(0.0), pl.Sphere(3).sines(80), jnp.zeros(())
    first = certify._first_deficits(model, x, t)
    assert first.shape == (certify.QUADRUPLES + 3,) * 2
    np.testing.assert_allclose(first, model.deficits(x, t)[: len(first), : len(first)], rtol=1e-14)
    assert certify._worst_drift(first, 2 * first) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("d", [3, 5])
def test_linkage_at_an_angle(monkeypatch, d):
    tokens = grouped(d)
    whole = clusters.linked(tokens, 0.3)
    monkeypatch.setattr(clusters, "MANY_TOKENS", 4)
    np.testing.assert_array_equal(clusters.linked(tokens, 0.3), whole)


def test_linked_labels_inside_a_program():
    x = grouped(3)
    np.testing.assert_array_equal(jax.jit(linked_labels)(x, 1e-2), linked_by_cells(np.asarray(x), 1e-2))
