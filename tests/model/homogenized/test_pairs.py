"""Two tokens through their overlap: chains without matrices, scalar SDEs, and what is known about both."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.slow_overlap import expected_overlap_power
from pathlines.limit.homogenized.two_tokens import fixed_antipode_probability, fixed_diffusion
from pathlines.limit.homogenized.two_tokens_random import random_covariance, random_diffusion
from pathlines.model.homogenized.low_temperature_pair import LogisticPair, LowTemperaturePair
from pathlines.model.homogenized.overlap_pair import FixedScorePair, RandomScorePair
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.weights import random_values

KEY = jax.random.key(4)
PAIR = LowTemperaturePair(5, 2.0, heads=2, qk_dim=4)
COUNT = 40_000


@eqx.filter_jit
def _layers(model, y, keys):
    return jax.vmap(lambda key: model.random_layer(y, 0, key))(keys)


def layer(model, y, count):
    """``count`` independent layers from the same y."""
    return np.asarray(_layers(model, jnp.asarray(y, float), jax.random.split(KEY, count)))


def steps(model, start, count, runs):
    """y after ``count`` steps of ``runs`` independent paths: a plain loop, cheap to compile."""
    begin = jnp.full(runs, jnp.arctanh(start))

    def step(y, key):
        return jax.vmap(lambda each, k: model.random_layer(each, 0, k))(y, jax.random.split(key, runs)), None

    return np.asarray(jax.jit(lambda keys: jax.lax.scan(step, begin, keys)[0])(jax.random.split(KEY, count)))


def with_matrices(d, qk_dim, eta, heads, overlap, count, rng):
    """The overlap after one layer x ← N(x + (η/H) Σ V Ax/|Ax|) with every matrix drawn."""
    x = np.zeros((2, d))
    x[:, 0], x[1, 1] = (1, overlap), np.sqrt(1 - overlap**2)
    total = np.zeros((count, 2, d))
    for _ in range(heads):
        left, right = rng.normal(size=(2, count, d, qk_dim))
        y = np.einsum("ndp,nep,ie->nid", left, right, x, optimize=True)
        y = y / np.linalg.norm(y, axis=-1, keepdims=True)
        total += np.einsum("nde,nie->nid", rng.normal(size=(count, d, d)) / np.sqrt(d), y)
    z = x + eta / heads * total
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    return np.sum(z[:, 0] * z[:, 1], axis=-1)


@pytest.mark.parametrize("overlap", [0.6, -0.9])
def test_layer_of_the_pair_has_the_law_of_full_matrices(overlap):
    """Four moments of R after one long layer, 4·10⁴ layers each way, within 5 standard errors."""
    slow = with_matrices(5, 4, 2.0, 2, overlap, COUNT, np.random.default_rng(1))
    fast = np.tanh(layer(PAIR, np.arctanh(overlap), COUNT))
    for power in (1, 2, 3, 4):
        error = np.sqrt((slow**power).var() + (fast**power).var()) / np.sqrt(COUNT)
        assert abs((slow**power).mean() - (fast**power).mean()) < 5 * error
    assert PAIR.clocks == pytest.approx({"tau": 2.0, "slow": 0.4})


def test_a_nearly_collapsed_pair_keeps_its_digits():
    """Near R = ±1 a layer multiplies the angle by a factor whose law does not depend on it: y shifts, 1 - R² scales."""
    shifts = [layer(PAIR, y, COUNT)[:200] - y for y in (12.0, 30.0, 200.0)]
    np.testing.assert_allclose(shifts[1], shifts[2], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(shifts[0], shifts[1], atol=500 * np.exp(-12.0))
    far = layer(PAIR, -30.0, COUNT) + 30.0
    assert np.all(np.isfinite(far)) and 0.1 < far.std() < 3


def test_low_temperature_pair_follows_kappa_two():
    """E R² of the chain at slow time ½, d = 32, against the limits κ = 2 (0.394) and κ = 1 (0.470), spec 01 section 13.

    4000 pairs: s.e. 0.0055; the chain is within O(1/d) of its limit (spec 01 reports 0.397 at d = 64).
    """
    d, eta, runs = 32, 0.5, 4000
    y = steps(LowTemperaturePair(d, eta), 0.0, round(0.5 * d / eta**2), runs)
    found = np.mean(np.tanh(y) ** 2)
    kappa_two, kappa_one = (float(expected_overlap_power(0.5, k)) for k in (2.0, 1.0))
    assert (kappa_two, kappa_one) == pytest.approx((0.394294490398, 0.469573891615), abs=1e-9)
    assert abs(found - kappa_two) < 5 * 0.0055
    assert abs(found - kappa_one) > 8 * 0.0055


def test_logistic_pair_with_kappa_one_is_absorbed_at_the_right_end():
    """P(R > 0 at t = 8 | R_0 = ½) = ½ + arcsin(½)/π = 2/3 (spec 01, claim C21); 10⁴ paths, 4 s.e. = 0.019."""
    y = steps(LogisticPair(1.0, 0.1), 0.5, 80, 10_000)
    assert np.mean(y > 0) == pytest.approx(2 / 3, abs=0.019)


def test_platen_steps_have_weak_order_two():
    """E R² at t = 1 for κ = 1 from 2, 4 steps, by Gauss-Hermite quadrature instead of sampling: error ratio near 4."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    weights = weights / weights.sum()
    exact = float(expected_overlap_power(1.0, 1.0, 0.3))
    errors = []
    for count in (2, 4):
        model = LogisticPair(1.0, 1 / count)
        grid = np.linspace(-14, 14, 4001)
        after = np.asarray(jax.jit(jax.vmap(jax.vmap(model.stepped, (None, 0)), (0, None)))(grid, nodes))
        value = np.tanh(grid) ** 2
        for _ in range(count):
            value = np.interp(after, grid, value) @ weights
        errors.append(np.interp(np.arctanh(0.3), grid, value) - exact)
    assert abs(errors[1]) < 3e-3
    assert errors[0] / errors[1] == pytest.approx(4, abs=1.2)


def test_fixed_scores_leave_some_pairs_antipodal():
    """d = 8, β = 3 from R = 0: P(antipodal) = 0.20829 (spec 01, C19). 10⁴ paths of the SDE, 4 s.e. = 0.016."""
    exact = float(fixed_antipode_probability(8, 3.0))
    assert exact == pytest.approx(0.20828696, abs=1e-7)
    y = steps(FixedScorePair(8, 3.0, 0.2), 0.0, 600, 10_000)
    assert np.mean(y < 0) == pytest.approx(exact, abs=0.016)


@pytest.mark.parametrize("overlap", [0.4, -0.8])
def test_random_score_pair_has_the_moments_of_the_overlap(overlap):
    """Drift and variance in y from s_11, s_12 of the limit and Itô's formula; 4·10⁴ draws, 5 s.e.

    R has drift (1/d)[(d-2+R²)s_12 - (d-1)R s_11] and variation q = (2/d)(1-R²)(s_11 - R s_12); y = artanh R.
    """
    d, b, r = 5, 2.0, overlap
    own, cross = random_covariance(r, b)
    drift = ((d - 2 + r * r) * cross - (d - 1) * r * own) / d
    variation = 2 / d * (1 - r * r) * (own - r * cross)
    mean, variance = drift / (1 - r * r) + r * variation / (1 - r * r) ** 2, variation / (1 - r * r) ** 2
    model = RandomScorePair(d, b, 0.01)
    short = layer(model, np.arctanh(r), COUNT) - np.arctanh(r)
    assert short.var() / 0.01 == pytest.approx(variance, rel=5 * np.sqrt(3 / COUNT))
    one = lambda z: jnp.stack(model.averages(jnp.arctanh(r), z[:1], z[1:]))  # noqa: E731
    T, C, Psi = np.asarray(jax.jit(jax.vmap(one))(np.random.default_rng(0).normal(size=(COUNT, 2)))).T
    drifts = ((1 + r) / 2 + (1 - r) / 2 * C + (d - 3) * (1 - T + Psi) / 2) / d
    assert drifts.mean() == pytest.approx(mean, abs=5 * drifts.std() / np.sqrt(COUNT))


def test_random_score_pair_takes_long_steps():
    """E R at τ = 2 from two steps, d = 8, b = 1.5, against the diffusion: 4·10⁴ paths, 5 s.e. = 0.009.

    Euler steps of this length are off by 0.019 (measured with 4·10⁵ paths), these by 0.0015.
    """
    R = np.tanh(steps(RandomScorePair(8, 1.5, 1.0), 0.0, 2, COUNT))
    exact = random_diffusion(8, 1.5).expectation(lambda r: r, 2.0, 0.0)
    assert R.mean() == pytest.approx(exact, abs=5 * R.std() / np.sqrt(COUNT))


def test_random_scores_stay_finite_at_both_ends():
    model = RandomScorePair(5, 50.0, 0.01)
    assert all(np.all(np.isfinite(layer(model, y, COUNT))) for y in (-300.0, 300.0))


def test_chain_with_fixed_scores_follows_its_overlap_diffusion():
    """A RandomTransformer with values random and QK = βI: E R at τ = 2 against the SDE; 4000 runs, 4 s.e. plus O(v)."""
    chain = RandomTransformer(law=random_values(8), beta=3.0, step=0.05**0.5)
    assert chain.clocks["tau"] == pytest.approx(0.05)
    x = jnp.broadcast_to(pl.Sphere(8).simplex(2, -0.5), (4000, 2, 8))
    layers = jax.jit(lambda y, key: jax.vmap(lambda z, k: chain.random_layer(z, 0, k))(y, jax.random.split(key, 4000)))
    for key in jax.random.split(KEY, 40):
        x = layers(x, key)
    overlaps = np.sum(np.prod(np.asarray(x), axis=1), axis=-1)
    exact = fixed_diffusion(8, 3.0).expectation(lambda r: r, 2.0, -0.5)
    assert overlaps.mean() == pytest.approx(exact, abs=4 * overlaps.std() / np.sqrt(4000) + 0.01)


def test_starts_and_observables_of_a_pair():
    model, tokens = FixedScorePair(8, 3.0), pl.Sphere(8).simplex(2, 0.25)
    assert float(model.initial(jnp.asarray(0.25))) == pytest.approx(np.arctanh(0.25))
    assert float(model.initial(tokens)) == pytest.approx(np.arctanh(0.25))
    assert float(model.deficits(jnp.asarray(20.0), jnp.zeros(()))[0, 1]) == pytest.approx(2 * np.exp(-40), rel=1e-12)
    with pytest.raises(ArgumentError, match="overlap"):
        pl.chain(model, 1.0, depth=1, key=KEY)
    with pytest.raises(ArgumentError, match="two tokens"):
        pl.chain(model, pl.Sphere(8).simplex(3), depth=1, key=KEY)
    with pytest.raises(ArgumentError, match="`d`"):
        LowTemperaturePair(3)
    for name in ("low-temperature-pair", "logistic-pair", "fixed-score-pair", "random-score-pair"):
        assert pl.MODELS[name].build().clocks
