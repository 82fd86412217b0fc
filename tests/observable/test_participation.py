"""Estimates of f and g from drawn heads against the quadratures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.limit.homogenized.participation import mean_participation as quadrature
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.observable.participation import participation, shared_attention

N, D, B = 6, 16, 1.5


def looks(model, tokens, observable, count=400):
    state = model.initial(jnp.asarray(tokens))
    times = jnp.arange(count, dtype=float)
    return np.asarray(jax.vmap(lambda t: observable(Snapshot(model, state, t, state)))(times))


@pytest.mark.parametrize("sampler", ["naive", "low-rank", "gram"])
@pytest.mark.parametrize("which", [0, 1])
def test_means_over_heads_are_f_and_g(sampler, which):
    """400 layers of 8 heads: the mean within 4.5 standard errors of f (g), for every sampler."""
    chain = RandomTransformer(D, heads=8, logit_scale=B, qk_dim=D)
    model = chain.sampler_for((N, D), False, sampler)[0]
    found = looks(model, Sphere(D).simplex(N, 0.3), (participation, shared_attention)[which])
    assert abs(found.mean() - quadrature(N, B, 0.3, p=D)[which]) < 4.5 * found.std(ddof=1) / np.sqrt(len(found))


def test_known_attention():
    """β = 0 attends to all keys alike; a fixed model has one head."""
    tokens = Sphere(D).simplex(N, 0.0)
    uniform = RandomTransformer(D, beta=0.0).sampler_for((N, D), False, "uniform")[0]
    assert looks(uniform, tokens, participation, 1)[0] == pytest.approx(1 / N)
    weights = np.exp(2.0 * np.eye(N))
    weights /= weights.sum(axis=1, keepdims=True)
    fixed = SelfAttention(2.0)
    assert looks(fixed, tokens, participation, 1)[0] == pytest.approx(np.sum(weights[0] ** 2))
    assert looks(fixed, tokens, shared_attention, 1)[0] == pytest.approx(np.sum(weights[0] * weights[1]))
