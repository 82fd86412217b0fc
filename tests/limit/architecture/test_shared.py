"""One layer applied again: powers of random matrices, every placement with matrices formed, products at two depths."""

import math

import numpy as np
import pytest
from scipy.special import comb, eval_legendre

from pathlines.architecture import Architecture, Deviations
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.perceptron import perceptron_gram, perceptron_products
from pathlines.limit.architecture.predict import cosine_curve, predict
from pathlines.limit.architecture.shared import growth_deviation
from pathlines.limit.architecture.start import start_gram

from .transformer import measured

IDS = np.array([0, 1, 2, 3, 1, 4, 5, 0, 6, 7])
SIZES = {"width": 192, "heads": 4, "mlp_width": 384, "layers": 8, "shared": True}
PLAIN = {"mlp_gate": 0.0, "position": 0.05}
D = Deviations.equal
CASES = {
    "albert": Architecture(
        **SIZES, placement="post", mask="full", embedding_norm=True, types=2, deviations=D(0.05, type=0.05, **PLAIN)
    ),
    "causal": Architecture(**SIZES, placement="post", skip=1.3, deviations=D(0.06, **PLAIN)),
    "pre": Architecture(
        **SIZES, norm="rms", gated=True, activation="silu", positions="rope", kv_heads=2,
        deviations=D(0.05, embedding=0.5),
    ),
    "parallel": Architecture(**SIZES, placement="parallel", deviations=D(0.04, embedding=0.5, **PLAIN)),
    "sandwich": Architecture(
        **SIZES, placement="sandwich", mlp_residual=0.4, attention_residual=0.3,
        deviations=D(0.05, embedding=1.0, **PLAIN),
    ),
    "sharp": Architecture(
        **SIZES, placement="post", mask="full", deviations=D(0.05, query=0.14, key=0.14, **PLAIN)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_placement_vs_formed_matrices(name):
    """Mean cosine within four standard errors and 0.015 (no terms in 1/width) at every layer; RMS within 4%."""
    found = predict(CASES[name], IDS)
    values, rms = measured(CASES[name], IDS, 24)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - found.mean_cosine) < 4 * error + 0.015)
    np.testing.assert_allclose(found.residual_rms, rms, rtol=0.04)
    ratio = found.spread[2:] / values.std(axis=0, ddof=1)[2:]
    assert np.all((ratio > 0.5) & (ratio < 2.0))
    np.testing.assert_allclose(np.cumsum(found.causes.sum(axis=1)), found.mean_cosine, atol=1e-12)
    fresh = predict(CASES[name].changed(shared=False), IDS, spread=False).mean_cosine
    assert np.max(np.abs(fresh - found.mean_cosine)) > 0.02  # the difference is seen


def test_uniform_attention_alone_is_powers_of_a_matrix():
    """Differences stay, the mean is multiplied by (I + W)^ℓ: f_ℓ(a) = Σ C(ℓ,k)² a^k = (1-a)^ℓ P_ℓ((1+a)/(1-a))."""
    case = CASES["albert"].changed(mlp_width=0, deviations={"query": 0.0})
    start, a = start_gram(case, IDS), (192 * 0.05**2) ** 2
    growth = [(1 - a) ** k * eval_legendre(k, (1 + a) / (1 - a)) for k in range(9)]
    common = start.mean()
    want = []
    for factor in growth:
        gram = start - common + factor * common
        root = np.sqrt(np.diag(gram))
        want.append(((gram / np.outer(root, root)).sum() - 10) / 90)
    np.testing.assert_allclose(predict(case, IDS).mean_cosine, want, rtol=1e-12)
    np.testing.assert_allclose(cosine_curve(case, IDS), want, rtol=1e-12)


def test_growth_deviation_vs_powers_of_matrices():
    """s.d. of ln|(I + M)^ℓ x|² over 200 draws at d = 150, whose own error is 5%."""
    rng, d = np.random.default_rng(0), 150
    for v, layers in ((0.02, 10), (0.15, 6)):
        found = []
        for _ in range(200):
            m = np.sqrt(v / d) * rng.standard_normal((d, d))
            y = x = rng.standard_normal(d)
            for _ in range(layers):
                y = y + m @ y
            found.append(np.log(y @ y / (x @ x)))
        want = growth_deviation(comb(layers, np.arange(layers + 1)), v, d)
        assert np.std(found) == pytest.approx(want, rel=0.2)


def two_depths(n, seed=0):
    x = np.random.default_rng(seed).standard_normal((2 * n, 9)) + 0.4
    x[n:] += 0.8 * x[:n]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    gram = x @ x.T
    return gram[:n, n:], gram[:n, :n], gram[n:, n:]


@pytest.mark.parametrize("changes", [{"mask": "full"}, {}, {"qk_norm": True, "logit_multiplier": 0.02}])
def test_heads_at_two_depths_vs_draws(changes):
    """The expansion against drawn heads at b = 0.2: the fourth order, and the error of 64 draws."""
    size = math.sqrt(0.2 / 64)
    deviations = Deviations.equal(0.1, query=size, key=size)
    fields = {"width": 64, "heads": 1, "layers": 1, "positions": "none", **changes}
    attended, given = AttendedGram(Architecture(**fields, deviations=deviations), 5), two_depths(5)
    drawn = [attended.sharp_between(*given) for _ in range(30)]
    error = np.std(drawn, axis=0, ddof=1) / math.sqrt(30)
    assert np.all(np.abs(np.mean(drawn, axis=0) - attended.between(*given)) < 5 * error + 5e-4)
    plain = attended.between(given[1], given[1], given[1])
    np.testing.assert_allclose(plain, attended(given[1]), atol=1e-14)


def test_perceptron_at_two_depths():
    """A block of the Gram matrix of both depths together."""
    products, left, right = two_depths(5)
    for changes in ({}, {"gated": True, "activation": "silu"}):
        case = Architecture(width=64, heads=4, layers=1, mlp_width=8, deviations=D(0.1), **changes)
        whole = perceptron_gram(case, np.block([[left, products], [products.T, right]])).gram
        found = perceptron_products(case, products, np.diag(left), np.diag(right)).gram
        np.testing.assert_allclose(found, whole[:5, 5:], rtol=1e-12)
