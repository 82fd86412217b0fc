"""Expectations over all heads: against enumeration in NumPy, sampling, and reference numbers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import pathlines as pl
from pathlines.claim.homogenized.direct import attended
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate import head_tree
from pathlines.weights.mixture import fixed_heads
from pathlines.weights.shares import binomial_rule, head_shares
from references import finite_heads as two


def observed(x):
    return jnp.stack(two.observed(x))


def network(p, eta, heads=1, update="ambient"):
    m = len(p)
    law = pl.weights.MixtureHeads(two.VALUES[:m], two.SCORES[:m], p)
    return pl.RandomTransformer(law=law, beta=two.BETA, step=eta, heads=heads, update=update)


def enumerated(p, eta, heads, update, depth):
    """Every product of heads, one after the other, in NumPy."""
    total = 0.0
    choices = list(itertools.product(range(len(p)), repeat=heads))
    for path in itertools.product(choices, repeat=depth):
        x, weight = two.start(), np.prod([p[a] for layer in path for a in layer])
        for layer in path:
            step = eta / heads * sum(attended(x, two.VALUES[a], two.SCORES[a], two.BETA) for a in layer)
            if update == "tangent":
                step = step - np.sum(x * step, axis=1, keepdims=True) * x
            x = (x + step) / np.linalg.norm(x + step, axis=1, keepdims=True)
        total += weight * np.array(two.observed(x))
    return total


@pytest.mark.parametrize(("p", "layers"), [(0.5, 12), (0.2, 12), pytest.param(0.5, 20, marks=pytest.mark.slow)])
def test_reference_values(p, layers):
    net = network([p, 1 - p], two.UNTIL / layers)
    found = pl.integrate.expectation_over_heads(net, two.start(), depth=layers, function=observed)
    assert found == pytest.approx(two.CHAIN[p, layers], abs=1e-9)


@pytest.mark.parametrize(
    ("p", "heads", "update", "depth"),
    [
        ([0.3, 0.7], 1, "tangent", 4),
        ([0.3, 0.7], 2, "ambient", 3),
        ([0.2, 0.3, 0.5], 1, "ambient", 3),
        ([0.2, 0.3, 0.5], 2, "tangent", 2),
    ],
)
def test_enumeration(p, heads, update, depth):
    net = network(p, 0.4, heads, update)
    found = pl.integrate.expectation_over_heads(net, two.start(), depth=depth, function=observed)
    assert found == pytest.approx(enumerated(p, 0.4, heads, update, depth), abs=1e-14)


def test_blocks_change_nothing(monkeypatch):
    net = network([0.3, 0.7], 0.2)
    whole = pl.integrate.expectation_over_heads(net, two.start(), depth=7, function=observed)
    monkeypatch.setattr(head_tree, "BLOCK", 5)
    cut = pl.integrate.expectation_over_heads(net, two.start(), depth=7, function=observed)
    assert cut == pytest.approx(whole, abs=1e-15)


def test_sampling():
    """4000 runs of the chain, five standard errors."""
    net = network([0.3, 0.7], 0.3, heads=3)
    tokens = pl.chain(net, two.start(), depth=4, key=jax.random.key(1), runs=4000, record="tokens")["tokens"]
    values = np.array(two.observed(tokens.values[:, -1]))
    exact = pl.integrate.expectation_over_heads(net, two.start(), depth=4, function=observed, nodes=4)
    assert np.all(np.abs(values.mean(axis=1) - exact) < 5 * values.std(axis=1) / np.sqrt(4000))


def test_three_nodes_for_many_heads():
    """H = 6, four layers: all seven outcomes against three nodes; a layer errs by (η²/H)³ = 3e-7 at η = 0.2."""
    net = network([0.2, 0.8], 0.2, heads=6)
    few, all_of_them, two_nodes = (
        pl.integrate.expectation_over_heads(net, two.start(), depth=4, function=observed, nodes=q) for q in (3, 7, 2)
    )
    assert np.abs(few - all_of_them).max() < 4 * (0.2**2 / 6) ** 3
    assert np.abs(two_nodes - all_of_them).max() > np.abs(few - all_of_them).max()


def test_infinitely_many_heads():
    """With one score matrix the mean layer is a fixed head."""
    law = pl.weights.MixtureHeads(two.VALUES[:2], two.SCORES[[0, 0]], [0.3, 0.7])
    net = pl.RandomTransformer(law=law, beta=two.BETA, step=0.2, heads=5)
    found = pl.integrate.expectation_over_heads(net, two.start(), depth=6, function=observed, nodes=1)
    mean = fixed_heads(0.3 * two.VALUES[0] + 0.7 * two.VALUES[1], two.SCORES[0])
    run = pl.chain(pl.RandomTransformer(law=mean, beta=two.BETA, step=0.2), two.start(), depth=6, key=jax.random.key(0))
    assert found == pytest.approx(np.array(two.observed(run["tokens"].values[-1])), abs=1e-14)


@pytest.mark.parametrize(("heads", "p"), [(1, 0.3), (2, 0.5), (7, 0.2), (400, 0.9)])
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_binomial_rule_has_the_moments(heads, p, nodes):
    points, weights = binomial_rule(heads, p, nodes)
    counts = np.arange(heads + 1)
    scale = np.sqrt(heads * p * (1 - p))
    for power in range(2 * len(points)):
        exact = binom.pmf(counts, heads, p) @ ((counts - heads * p) / scale) ** power
        assert weights @ ((points - heads * p) / scale) ** power == pytest.approx(exact, abs=1e-10)
    if nodes > heads:
        assert points == pytest.approx(counts, abs=1e-12)


def test_shares_are_a_law():
    for p, heads in (([0.2, 0.8], 3), ([0.2, 0.3, 0.5], 4), ([1.0], 2), ([0.0, 1.0], 2)):
        shares, chances = head_shares(p, heads)
        assert shares.sum(axis=1) == pytest.approx(1)
        assert chances.sum() == pytest.approx(1)
        assert chances @ shares == pytest.approx(np.array(p))


def test_no_layers_and_no_density():
    net = network([0.5, 0.5], 0.1)
    found = pl.integrate.expectation_over_heads(net, two.start(), depth=0, function=observed)
    assert found == pytest.approx(np.array(two.observed(two.start())))
    with pytest.raises(ArgumentError, match="finite law of heads"):
        pl.integrate.expectation_over_heads(pl.RandomTransformer(3), two.start(), depth=1, function=observed)
