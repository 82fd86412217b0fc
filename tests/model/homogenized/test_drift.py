"""The homogenized drift against chains whose expectations are finite sums."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning
from pathlines.model.homogenized.drift import HomogenizedODE, homogenized_drift
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.weights import GaussianHeads, MixtureHeads, fixed_heads
from pathlines.weights.frozen import frozen
from pathlines.weights.heads import Heads
from pathlines.weights.offsets import drawn_points, tensor_points

STEPS = (0.1, 0.05, 0.025, 0.0125)
KEY = jax.random.key(0)


def matrices(*shape):
    return np.random.default_rng(1).normal(size=(*shape, 3, 3))


@eqx.filter_jit
def layer(chain, x):
    return chain.random_layer(x, 0, KEY)


@eqx.filter_jit
def evaluated(field, x):
    """(D, b_ρ, ∇_b b, E[⟨x,ξ⟩Pξ], sampling error): one program for all of them."""
    return field(x), field.mean_field(x), field.transport(x), field.radial(x)[1], field.sampling_error(x)


def chain_path(law, eta, update, start):
    chain, path = RandomTransformer(law=law, beta=1.0, step=eta, update=update), [start]
    for _ in range(round(1 / eta)):
        path.append(layer(chain, path[-1]))
    return np.asarray(path[1:])


@pytest.mark.parametrize(
    ("update", "corrector", "order"),
    [("ambient", "paper", 1), ("ambient", "full", 2), ("tangent", "full", 2)],
)
def test_order_of_the_flow_against_a_chain_with_fixed_heads(update, corrector, order):
    """Spec 01, claim C01: slopes 2 ± 0.1 (full), 1 ± 0.15 (paper); at grid times, until t = 1."""
    law, start = fixed_heads(*matrices(2)), pl.Sphere(3).sines(4)
    errors = []
    for eta in STEPS:
        path = chain_path(law, eta, update, start)
        model = HomogenizedODE(law, 1.0, step=eta, corrector=corrector, update=update)
        run = pl.flow(model, start, times=eta * np.arange(1, len(path) + 1), method="rk4", step=eta / 2)
        errors.append(np.abs(path - run["tokens"].values).max())
    slope = np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.1 if order == 2 else 0.15)


def test_one_token_is_a_power_iteration():
    """N(x + ηVx) iterates I + ηV, so the exact drift is P(V - ηV²/2 + …)x; D must be its first two terms."""
    value, eta, x = matrices(), 0.3, pl.Sphere(3).sines(1)
    drift, *_ = evaluated(
        homogenized_drift(RandomTransformer(law=fixed_heads(value, np.eye(3)), beta=1.0, step=eta)), x
    )
    point = np.asarray(x[0])
    ambient = (value - eta / 2 * value @ value) @ point
    np.testing.assert_allclose(drift[0], ambient - point * (point @ ambient), atol=1e-13)


def log_map(x, y):
    """Tangent vectors at x that reach y along great circles."""
    cosine = np.sum(x * y, axis=-1, keepdims=True)
    side = y - cosine * x
    sine = np.linalg.norm(side, axis=-1, keepdims=True)
    return np.arctan2(sine, cosine) / sine * side


@eqx.filter_jit
def attended(chain, x, heads):
    return chain.attended(x, heads)


def mean_log_step(law, eta, heads, update, x):
    """E log_x(x after one layer), by enumeration of all choices of heads."""
    chain, total = RandomTransformer(law=law, beta=1.0, step=eta, heads=heads, update=update), 0.0
    for choice in itertools.product(range(len(law.probabilities)), repeat=heads):
        chosen = np.array(choice)
        drawn = Heads(law.scores[chosen], None, law.values[chosen])
        step = eta / heads * np.asarray(attended(chain, x, drawn))
        if update == "tangent":
            step = step - np.sum(x * step, axis=-1, keepdims=True) * x
        y = x + step
        chance = np.prod(np.asarray(law.probabilities)[chosen])
        total = total + chance * log_map(x, y / np.linalg.norm(y, axis=-1, keepdims=True))
    return total


@pytest.mark.parametrize(("heads", "update"), [(2, "ambient"), (1, "tangent")])
def test_drift_is_the_mean_of_one_random_layer_to_third_order(heads, update):
    """E log(one layer) = ηD + ½η²∇_b b + O(η³): the residual falls eightfold when η is halved.

    With the printed drift b - (η/2)∇_b b what is left is E log - ηb, which falls fourfold for the ambient update.
    """
    law = MixtureHeads(matrices(3), matrices(3, 1)[:, 0][::-1], [0.2, 0.5, 0.3])
    x = np.asarray(pl.Sphere(3).sines(3))
    full, paper = [], []
    for eta in (0.02, 0.01):
        exact = mean_log_step(law, eta, heads, update, x)
        chain = RandomTransformer(law=law, beta=1.0, step=eta, heads=heads, update=update)
        drift, mean, transport, *_ = evaluated(homogenized_drift(chain), x)
        b = mean - np.sum(x * mean, axis=-1, keepdims=True) * x
        full.append(np.abs(exact - eta * drift - eta**2 / 2 * transport).max())
        paper.append(np.abs(exact - eta * b).max())
    assert full[0] / full[1] == pytest.approx(8, abs=0.7)
    if update == "ambient":
        assert paper[0] / paper[1] == pytest.approx(4, abs=0.4)
    else:
        np.testing.assert_allclose(paper, full, rtol=1e-6)


def test_rotation_head_lags_between_grid_times_and_slows_by_eta_squared():
    """V = J on the circle: b = Jx, no correction at this order; a layer turns by arctan η (spec 01, C02)."""
    eta, x = 0.2, jnp.asarray([[1.0, 0.0]])
    law = fixed_heads([[0.0, -1.0], [1.0, 0.0]], np.eye(2))
    after = np.asarray(layer(RandomTransformer(law=law, beta=1.0, step=eta), x))[0]
    assert np.arctan2(after[1], after[0]) == pytest.approx(np.arctan(eta), abs=1e-14)
    np.testing.assert_allclose(evaluated(HomogenizedODE(law, 1.0, step=eta).field, x)[0], [[0.0, 1.0]], atol=1e-14)


def test_average_over_gaussian_heads_vs_plain_monte_carlo():
    """The (d+1)-dimensional quasi-random averages against 2·10⁵ full matrices A, within 5 standard errors."""
    value, mean, count, rng = matrices(), 0.5 * matrices(2)[1], 200_000, np.random.default_rng(2)
    law = GaussianHeads(3, 0.7, None, 2, value_mean=value, score_mean=mean)
    chain = RandomTransformer(law=law, logit_scale=1.5)
    x = np.asarray(pl.Sphere(3).sines(4))
    left, right = float(law.sigma_a) * rng.normal(size=(2, count, 3, 2))
    scores = mean + left @ np.swapaxes(right, 1, 2)
    weights = np.exp(float(chain.beta) * (x @ np.swapaxes(scores, 1, 2)) @ x.T)
    samples = weights / weights.sum(axis=-1, keepdims=True) @ x @ value.T
    _, found, _, radial, error = (np.asarray(a) for a in evaluated(homogenized_drift(chain, tolerance=1e-4), x))
    spread = samples.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(samples.mean(axis=0) - found) < 5 * spread + 5 * error)
    assert 1e-7 < error < 1e-3
    xi = samples - samples.mean(axis=0)
    along = np.sum(x * xi, axis=-1, keepdims=True)
    products = along * (xi - along * x)
    allowed = 5 * products.std(axis=0) / np.sqrt(count) + 1e-3
    assert np.all(np.abs(products.mean(axis=0) - radial) < allowed)


@pytest.mark.parametrize(("qk_dim", "kurtosis"), [(4, 3 * (1 + 2 / 4)), (np.inf, 3.0)])
def test_offsets_have_the_moments_of_gaussian_products(qk_dim, kurtosis):
    """⟨(A-Ā)z, y⟩ has mean 0, variance σ_A⁴p (one at p = ∞) and kurtosis 3(1 + 2/p), being χ_p times a normal.

    A Gauss rule of order 4 has them exactly, 2¹³ quasi-random points approximately.
    """
    law = GaussianHeads(3, None, None, qk_dim, 1.0, 1.0)
    for (q, w, *_), second, fourth in (
        (tensor_points(law, 4), 1e-12, 1e-12),
        (drawn_points(law, 1 << 13, 0), 0.01, 0.05),
    ):
        np.testing.assert_allclose(w @ q, 0, atol=1e-12)
        np.testing.assert_allclose((w * q.T) @ q, np.eye(3), atol=second)
        np.testing.assert_allclose(w @ q**4, kurtosis, rtol=fourth)


@pytest.mark.parametrize(("d", "qk_dim", "rule"), [(2, np.inf, "order"), (2, 3, "order"), (6, np.inf, "blocks")])
def test_averages_reach_the_tolerance_asked_for(d, qk_dim, rule):
    """Against an average a hundred times as accurate, at other tokens than those it was tried at: within 4 tolerances.

    A smaller tolerance takes more terms, and no more than it needs.
    """
    law = GaussianHeads(d, None, None, qk_dim, 1.0, 0.7)
    chain, x = RandomTransformer(law=law, logit_scale=1.5), pl.Sphere(d).uniform(jax.random.key(8), 5)
    rough, fine = (homogenized_drift(chain, tolerance=t) for t in ((1e-2, 1e-3) if d > 2 else (1e-3, 1e-5)))
    assert getattr(rough.heads, rule) > 0 and rough.heads.count < fine.heads.count
    values = [np.asarray(jax.jit(lambda y, f=f: f.mean_drift(y))(x)) for f in (rough, fine)]
    tolerance = 1e-2 if d > 2 else 1e-3
    assert 0 < np.linalg.norm(values[0] - values[1], axis=-1).max() < 4 * tolerance
    assert rough.heads.error <= tolerance and not rough.heads.exact


def test_an_average_out_of_reach_says_so():
    law = GaussianHeads(8, None, None, np.inf, 1.0, 1.0)
    with pytest.warns(PathlinesWarning, match="more than 32768 terms"):
        heads = frozen(law, 1.0, 1e-6)
    assert heads.error > 1e-6


def test_frozen_heads_are_exact_for_atoms_and_for_fixed_scores():
    law = MixtureHeads(matrices(2), matrices(2), [0.25, 0.75])
    assert frozen(law).exact and frozen(law).count == 2
    fixed = frozen(GaussianHeads(3, 1.0, 0.0, None, 2.0, 1.0))
    assert fixed.count == 1 and fixed.exact
    np.testing.assert_allclose(fixed.values[0], 2 * np.eye(3))


def test_many_heads_and_tokens_are_averaged_in_batches(monkeypatch):
    law = GaussianHeads(3, None, None, None, 1.0, 1.0)
    field = homogenized_drift(RandomTransformer(law=law, beta=1.0), tolerance=0.05)
    x = pl.Sphere(3).sines(5)
    whole = jax.jit(lambda y: field.mean_field(y))(x)
    monkeypatch.setattr("pathlines.model.homogenized.drift.WEIGHTS_AT_A_TIME", 250)
    np.testing.assert_allclose(jax.jit(lambda y: field.mean_field(y))(x), whole, atol=1e-14)


def test_arguments_are_checked():
    law = fixed_heads(np.eye(3), np.eye(3))
    with pytest.raises(ArgumentError, match="corrector"):
        HomogenizedODE(law, 1.0, corrector="second")
    with pytest.raises(ArgumentError, match="update"):
        HomogenizedODE(law, 1.0, update="geodesic")
    with pytest.raises(ArgumentError, match="shape"):
        pl.flow(HomogenizedODE(law, 1.0), pl.Sphere(4).sines(3), until=1.0)
    with pytest.raises(FormError, match="random layers"):
        pl.chain(HomogenizedODE(law, 1.0), pl.Sphere(3).sines(2), depth=1, key=KEY)
    assert pl.MODELS["homogenized-ode"].build(value=2.0).derived["exact_average"]
