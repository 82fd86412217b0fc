"""Heads (Q, K, V): products inside the native call or outside, against sums written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import AlibiMask, SoftmaxAttention, UnnormalisedAttention
from pathlines.kernels import attend_heads

N, HEARD, BETA, SHIFT = 37, 29, 1.7, 0.3
KINDS = {"softmax": SoftmaxAttention(), "unnormalised": UnnormalisedAttention(SHIFT)}
GIVEN = [(True, True), (True, False), (False, True), (False, False)]


def problem(d, p, heads, query, key, heard=N, dtype="float64"):
    rng = np.random.default_rng([d, p, heads])
    x, masses = rng.standard_normal((N, d)), rng.uniform(0.5, 1.5, heard)
    drawn = (rng.standard_normal((heads, rows, d)) / d for rows in (p, p, d))
    matrices = tuple(m if given else None for m, given in zip(drawn, (query, key, True), strict=True))
    return jax.tree.map(lambda a: jnp.asarray(a, dtype), (matrices, x, masses / masses.sum()))


def written_out(kind, matrices, x, masses, causal):
    """Σ_j a_ij V x_j head by head in float64 NumPy, with the n × n weights."""
    matrices, x, masses = jax.tree.map(lambda a: np.asarray(a, np.float64), (matrices, x, masses))
    outs, scales = [], []
    for h in range(len(matrices[2])):
        q, k, v = (x if m is None else x @ m[h].T for m in matrices)
        scores = BETA * q @ k[: len(masses)].T
        if causal:
            scores = np.where(np.arange(len(masses)) <= np.arange(N)[:, None], scores, -np.inf)
        raw = masses * np.exp(scores)
        scale = np.log(raw.sum(1)) if kind == "softmax" else np.full(N, SHIFT)
        outs.append((raw * np.exp(-scale)[:, None]) @ v[: len(masses)])
        scales.append(scale)
    return np.stack(outs), np.stack(scales)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query, key", GIVEN)
@pytest.mark.parametrize("d, heads", [(2, 1), (3, 2), (4, 1), (5, 3), (8, 2), (9, 2), (41, 2)])
def test_heads_are_the_sums_written_out(d, heads, query, key, kind):
    """Scores are below 20 and sums have 37 terms: a thousand ε is more than rounding."""
    for causal, heard in ((False, N), (False, HEARD), (True, N)):
        given = problem(d, d, heads, query, key, heard)
        found = attend_heads(KINDS[kind], *given, AlibiMask(strict=False, reduce="sum") if causal else None, beta=BETA)
        for ours, exact in zip(found, written_out(kind, *given, causal), strict=True):
            np.testing.assert_allclose(ours, exact, rtol=0, atol=1000 * np.finfo(float).eps * np.abs(exact).max())


@pytest.mark.parametrize("p", [1, 3, 7])
def test_queries_may_be_narrower_or_wider_than_tokens(p):
    given = problem(4, p, 2, True, True, dtype="float32")
    found = attend_heads(SoftmaxAttention(), *given, beta=BETA)
    assert found[0].dtype == found[1].dtype == jnp.float32
    for ours, exact in zip(found, written_out("softmax", *given, False), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=0, atol=1000 * np.finfo(np.float32).eps * np.abs(exact).max())


@pytest.mark.parametrize("d", [3, 41])
def test_batches_are_bitwise_the_single_systems(d):
    """Tokens in a batch share their matrices, and matrices in a batch share their tokens."""
    matrices, x, masses = problem(d, d, 2, True, True)
    factors = jnp.linspace(0.5, 1.5, 20)
    one = lambda y, m: attend_heads(SoftmaxAttention(), m, y, masses, beta=BETA)[0]  # noqa: E731
    tokens, turned = jax.vmap(jnp.multiply, (None, 0))(x, factors), jax.tree.map(lambda m: jnp.stack([m, -m]), matrices)
    together = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(tokens, turned)
    for i, k in ((0, 1), (11, 0), (19, 1)):
        assert jnp.array_equal(together[i, k], one(tokens[i], jax.tree.map(lambda m, k=k: m[k], turned)))


@pytest.mark.parametrize("p", [23, 64])
def test_large_systems_share_their_products(p):
    """500 tokens are worth two threads; three products of 64 terms and a sum of 500 stay within a thousand ε."""
    rng = np.random.default_rng(p)
    x, masses = rng.standard_normal((500, 64)), np.full(500, 1 / 500)
    query, key, value = (rng.standard_normal((1, rows, 64)) / 64 for rows in (p, p, 64))
    found, _ = attend_heads(SoftmaxAttention(), *jax.tree.map(jnp.asarray, ((query, key, value), x, masses)), beta=BETA)
    weights = np.exp(BETA * (x @ query[0].T) @ (x @ key[0].T).T)
    exact = weights @ (x @ value[0].T) / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(found[0], exact, rtol=0, atol=1000 * np.finfo(float).eps * np.abs(exact).max())


@pytest.mark.parametrize("d", [3, 9])
def test_derivatives_are_differences(d):
    """Central differences of step 1e-5 are off by 1e-10 times third derivatives, rounding by 1e-11."""
    matrices, x, masses = problem(d, d, 2, True, True)
    value = lambda m, y: jnp.sum(jnp.sin(attend_heads(SoftmaxAttention(), m, y, masses, beta=BETA)[0]))  # noqa: E731
    turn = jax.tree.map(lambda a: jnp.asarray(np.random.default_rng(1).standard_normal(a.shape)), (matrices, x))
    slopes = jax.grad(value, argnums=(0, 1))(matrices, x)
    along = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(slopes), jax.tree.leaves(turn), strict=True))
    ahead, behind = (value(*jax.tree.map(lambda a, b, h=h: a + h * b, (matrices, x), turn)) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(along, (ahead - behind) / 2e-5, rtol=1e-6)
