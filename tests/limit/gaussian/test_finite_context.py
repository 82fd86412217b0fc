"""Linear response against perturbed laws in the engine; stability constants against random laws; coupling."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pathlines.claim.gaussian import reference_set as R
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.coupling import synchronous_coupling
from pathlines.limit.gaussian.fluctuation import (
    coupling_size,
    line_distance,
    masked_draws,
    masked_size,
    response,
)
from pathlines.limit.gaussian.markers import gaussian_grid, hermite_nodes
from pathlines.limit.gaussian.moments import head
from pathlines.limit.gaussian.stability import KINDS, field_bound, law_constant, stability_bound, token_constant
from pathlines.model import SelfAttention
from pathlines.numerics.quadrature import WeightedNodes
from pathlines.weights import FixedWeights

RNG = np.random.default_rng(2)


def carried(nodes, masses, until, steps):
    """RK4 with the engine's drift."""
    model = SelfAttention(1.0, weights=FixedWeights(R.V, R.A), multiplicities=masses, space="euclidean")
    f = lambda x: np.asarray(model.drift(jnp.asarray(x), jnp.zeros(())))  # noqa: E731
    x, h = nodes, until / steps
    for _ in range(steps):
        a = f(x)
        b = f(x + h / 2 * a)
        c = f(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + f(x + h * c))
    return x


def test_response_is_the_influence_of_an_atom():
    """R(·, y) = d/dε of the path when μ_0 becomes (1 - ε)μ_0 + εδ_y; its mean over y vanishes."""
    nodes, masses = RNG.standard_normal((6, 2)), RNG.dirichlet(np.ones(6))
    found = response(R.A, R.V, nodes, masses, 0.5, steps=5)
    np.testing.assert_allclose(found.nodes, carried(nodes, masses, 0.5, 5), atol=1e-13)
    np.testing.assert_allclose(found.kernels[0] @ masses, 0, atol=1e-13)
    atom, eps = np.eye(6)[2], 1e-4
    ends = [carried(nodes, (1 - e) * masses + e * atom, 0.5, 5) for e in (eps, -eps)]
    np.testing.assert_allclose(found.kernels[0, :, :, 2], (ends[0] - ends[1]) / (2 * eps), atol=1e-7)


def test_masked_response_vs_blocks():
    """Positions in blocks of one law: the influence of an atom of block b on block c > b is that of R(ln(c/b))."""
    nodes, masses = np.array([[-1.0], [0.4], [1.3]]), np.array([0.3, 0.5, 0.2])
    v, a, until, blocks = 0.8, 0.6, 0.5, 200
    found = response([[a]], [[v]], nodes, masses, until, steps=10, orders=6)
    x, h = np.tile(nodes[:, 0], (blocks, 1)), until / 10
    source, atom, eps = 60, 2, 1e-6

    def rate(x):
        kernel = np.exp(a * x[:, :, None, None] * x[None, None])
        weight = np.tile(masses, (blocks, 1))
        weight[source] += eps * (np.eye(3)[atom] - masses)
        heard = np.tril(np.ones((blocks, blocks)))[:, None, :, None] * kernel * weight
        return v * (heard * x).sum(axis=(2, 3)) / heard.sum(axis=(2, 3))

    for _ in range(10):
        x = x + h * rate(x + h / 2 * rate(x))
    delta = (x[-1] - x[source - 1]) / eps  # blocks before the source keep the path of the law
    log = np.log((blocks - 0.5) / (source + 0.5))
    series = sum(found.kernels[k, :, 0, atom] * log**k / np.prod(np.arange(1, k + 1)) for k in range(6))
    np.testing.assert_allclose(blocks * delta, series, rtol=0.03)


def test_sampling_alone():
    """Without time only the samples are off: √n E W_1 → ∫√(2/π)√(F(1 - F))dx, C_n = 0."""
    nodes, masses = gaussian_grid(0.0, 1.0, 0.05)
    found = response([[0.3]], [[1.0]], nodes[:, None], masses, 1e-9, steps=1)
    expected = np.sqrt(2 / np.pi) * quad(lambda x: np.sqrt(norm.cdf(x) * norm.sf(x)), -9, 9)[0]
    assert line_distance(found, masses) == pytest.approx(expected, rel=1e-3)
    assert coupling_size(found, masses) < 1e-8


def test_masked_size_has_converged():
    nodes, masses = hermite_nodes(R.COVARIANCE, 6)
    sizes = [masked_size(response(R.A, R.V, nodes, masses, 1.0, 5, orders), masses) for orders in (5, 8)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-3)


def _kernel(kind, q, k):
    s = q @ k.T
    if kind == "l2":
        s = 2 * s - np.sum(k**2, axis=1)
    if kind in ("softmax", "l2"):
        w = np.exp(s)
        return w / w.sum(axis=1, keepdims=True)
    return (1 / (1 + np.exp(-s)) if kind == "sigmoid" else s) / len(k)


@pytest.mark.parametrize("kind", KINDS)
def test_constants_bound_fields(kind):
    """At random points of the ball and random laws in it: size, change with the token, change with one atom."""
    V, Q, K = 0.6 * RNG.standard_normal((3, 2, 2))
    weights = head(V, query=Q, key=K)
    ball = lambda m: (lambda x: x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True)))(  # noqa: E731
        RNG.standard_normal((m, 2))
    )
    field = lambda x, y: _kernel(kind, x @ Q.T, y @ K.T) @ y @ V.T  # noqa: E731
    length = lambda x: np.linalg.norm(x, axis=1).max()  # noqa: E731
    for _ in range(50):
        x, near, y = ball(9), ball(9), ball(5)
        other = y.copy()
        other[0] = ball(1)
        assert length(field(x, y)) <= field_bound(kind, weights, 1.0)
        ratio = np.linalg.norm(field(x, y) - field(near, y), axis=1) / np.linalg.norm(x - near, axis=1)
        assert ratio.max() <= token_constant(kind, weights, 1.0)
        distance = np.linalg.norm(y[0] - other[0]) / 5
        assert length(field(x, y) - field(x, other)) <= law_constant(kind, weights, 1.0) * distance
    if kind == "linear":
        with pytest.raises(ArgumentError, match="one of"):
            stability_bound(kind, weights, 1.0, 1.0)
    else:
        rate = token_constant(kind, weights, 1.0) + law_constant(kind, weights, 1.0)
        assert np.log(stability_bound(kind, weights, 1.0, 1e-5)) == pytest.approx(1e-5 * rate, rel=1e-3)


def test_coupling_of_a_law_with_itself():
    """Two tokens that are the law: no error; another pair has one, and its copies follow the field of the law."""
    law = WeightedNodes(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]))
    build = partial(SelfAttention, 1.0, weights=FixedWeights([[0.5]], [[0.8]]), space="euclidean")
    samples = np.array([[[1.0], [-1.0]], [[1.0], [0.3]]])
    found = synchronous_coupling(build(), build, law, samples, times=[0.2, 0.4], method="rk4", step=0.1)
    assert found.tokens.shape == found.copies.shape == (2, 2, 2, 1)
    np.testing.assert_allclose(found.errors[0], 0, atol=1e-14)
    assert (found.errors[1] > 1e-3).all()
    np.testing.assert_allclose(found.copies[0], found.run["tokens"].values[:, :2], atol=1e-14)


def test_sampled_masked_errors_vs_response():
    """√i|x_i - x̄_i| of 60 runs against the linear response at weak attention: 5 standard errors; token 1 is Vx."""
    score, i = 0.5 * np.asarray(R.A), np.arange(1, 151)
    squares = masked_draws(score, R.V, R.COVARIANCE, 150, 60, 1.0)
    rows = (i * squares)[:, 30:].mean(axis=1)
    nodes, masses = hermite_nodes(R.COVARIANCE, 8)
    limit = masked_size(response(score, R.V, nodes, masses, 1.0, steps=10, orders=8), masses)
    assert abs(rows.mean() - limit**2) < 5 * rows.std() / np.sqrt(60)
