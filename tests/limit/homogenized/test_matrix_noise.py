"""Chain and SDE of one matrix Brownian motion, and schemes on a tree, against the engine and against each other."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.cubature import sde_expectation
from pathlines.limit.homogenized.finite_law import FiniteLawSDE
from pathlines.limit.homogenized.matrix_noise import MatrixNoise
from pathlines.limit.homogenized.scheme_tree import scheme_expectation
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.weights import GaussianHeads
from pathlines.weights.heads import Heads

RNG = np.random.default_rng(4)
VALUE, SCORE = RNG.normal(size=(2, 3, 3))
X = RNG.normal(size=(4, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)


def test_layer_and_step_vs_the_engine():
    """The same ΔW: N heads N_h of the chain with √η mean_h N_h = ΔW/√H, and one head of a step with √δ N = ΔW."""
    eta, heads, delta, sigma, beta = 0.3, 2, 0.1, 0.5, 1.2
    own = MatrixNoise(VALUE, SCORE, sigma, beta, eta, heads)
    law = GaussianHeads(3, sigma, 0.0, None, VALUE, SCORE)
    chain = RandomTransformer(law=law, beta=beta, step=eta, heads=heads)
    sde = HomogenizedSDE(law, beta, step=eta, heads=heads, time_step=delta)
    normals = RNG.normal(size=(2, 3, 3))
    pair = Heads(jnp.asarray([SCORE, SCORE]), None, jnp.asarray(VALUE + sigma * normals))
    one = Heads(jnp.asarray(SCORE[None]), None, jnp.asarray(VALUE + sigma * normals[:1]))
    look = eqx.filter_jit(lambda: (chain.carried(jnp.asarray(X), pair), sde.stepped(jnp.asarray(X), one, jnp.ones(1))))
    layer, step = look()
    change = np.sqrt(eta / heads) * normals.sum(axis=0)
    np.testing.assert_allclose(own.layer(X[..., None], change[..., None])[..., 0], layer, atol=1e-13)
    change = np.sqrt(delta) * normals[0]
    np.testing.assert_allclose(own.advanced(X[..., None], change[..., None], delta)[..., 0], step, atol=1e-13)


def test_chain_and_sde_stay_together():
    """Path by path they differ by O(η^{3/2}): noise √η frozen over a layer of time η. Ratio 2.83 to 15 %."""
    root = []
    for eta, depth in ((0.2, 3), (0.1, 6)):
        ends = MatrixNoise(np.eye(3), SCORE, 0.5, 1.0, eta).ends(X, depth, 2, 500, 1)
        assert ends.chain.shape == ends.sde.shape == (500, 4, 3)
        root.append(np.sqrt(np.mean((ends.chain - ends.sde) ** 2)))
    assert root[0] / root[1] == pytest.approx(2**1.5, rel=0.15)
    with pytest.raises(ArgumentError, match="start"):
        MatrixNoise(np.eye(3), SCORE, 0.5, 1.0, 0.1).ends(np.eye(2), 1, 1, 1, 0)


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.3, 0.7)])
def test_schemes_tend_to_the_sde(chances):
    """Euler's error of E x_1 halves with δ (to a fifth); that of split steps is smaller by 20 and more at ε² = 0.05."""
    values, scores = np.random.default_rng(9).normal(size=(2, 2, 3, 3)) / np.sqrt(3)
    law = FiniteLawSDE(values=values, scores=scores, probabilities=np.array(chances), beta=1.0, step=0.1, heads=2)
    first = lambda x: x[:, 0, 0]  # noqa: E731
    exact = sde_expectation(law, X, 1.0, first).value
    error = {m: [scheme_expectation(law, X, 1.0, first, k, m) - exact for k in (3, 6)] for m in ("split", "euler")}
    assert error["euler"][0] / error["euler"][1] == pytest.approx(2, rel=0.2)
    assert all(abs(a) < abs(b) / 20 for a, b in zip(error["split"], error["euler"], strict=True))
