"""Masked attention of every kind against dense sums in NumPy: all masks, both precisions, fields and gradients."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathlines as pl
from pathlines.attention import (
    ATTENTIONS,
    AlibiMask,
    Attention,
    MatrixMask,
    PlacedMask,
    StridedMask,
    UnnormalisedAttention,
    WindowMask,
)
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import flow
from pathlines.integrate.checked import cast
from pathlines.kernels import attend, attention_weights
from pathlines.kernels.choice import Sums, choose_summation
from pathlines.kernels.portable import portable_attend
from pathlines.kernels.spectral import spectral_attend
from pathlines.model import SelfAttention
from pathlines.model.causal.decoder import CausalDecoder
from pathlines.weights import FixedWeights

N, D, BETA = 11, 3, 0.9
RNG = np.random.default_rng(7)
V, Q, K = 0.6 * RNG.standard_normal((3, 2, D, D))
X, E = RNG.standard_normal((2, N, D))
COUNTS = np.array([2, 1, 0, 3, 1, 1, 0, 1, 2, 1, 1.0])
PLACES = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5.0])
TRIANGLE = np.tril(np.random.default_rng(2).uniform(0.1, 1, (N, N)))
TRIANGLE[4, 1] = 0.0
LOWER = np.tril(TRIANGLE, -1)
STOCHASTIC = TRIANGLE / TRIANGLE.sum(axis=1, keepdims=True)
STRICTLY = np.vstack([np.zeros(N), LOWER[1:] / LOWER[1:].sum(axis=1, keepdims=True)])
ZERO = jnp.zeros(())


class Cubed(Attention):
    """A kind that nobody registered: a_ij = m_j s_ij³."""

    def normalise(self, scores, masses):
        return masses * scores**3, jnp.zeros(scores.shape[:-1], scores.dtype)


def as_is(f):
    """Σ_j m_ij f(s_ij) v_j, over Σ_j m_ij for means."""

    def weights(scores, masses, mean):
        total = masses.sum(axis=1, keepdims=True)
        return masses * f(scores) / (np.where(total > 0, total, 1) if mean else 1)

    return weights


def normalised(scores, masses, mean):
    top = np.max(np.where(masses > 0, scores, -np.inf), axis=1, initial=-1e300, keepdims=True)
    raw = masses * np.exp(np.where(masses > 0, scores - top, -np.inf))
    total = raw.sum(axis=1, keepdims=True)
    return raw / np.where(total > 0, total, 1)


def hardest(scores, masses, mean):
    top = np.max(np.where(masses > 0, scores, -np.inf), axis=1, initial=-1e300, keepdims=True)
    raw = np.where((masses > 0) & (scores >= top - 1e-12), masses, 0.0)
    total = raw.sum(axis=1, keepdims=True)
    return raw / np.where(total > 0, total, 1)


KINDS = {
    "softmax": (ATTENTIONS["softmax"](), normalised),
    "l2": (ATTENTIONS["l2"](), normalised),
    "hardmax": (ATTENTIONS["hardmax"](), hardest),
    "unnormalised": (UnnormalisedAttention(0.3), as_is(lambda s: np.exp(s - 0.3))),
    "sigmoid": (ATTENTIONS["sigmoid"](0.2), as_is(lambda s: 1 / (1 + np.exp(-s - 0.2)))),
    "linear": (ATTENTIONS["linear"](), as_is(lambda s: s)),
    "affine": (ATTENTIONS["affine"](), as_is(lambda s: 1 + s)),
    "cubed": (Cubed(), as_is(lambda s: s**3)),
}


def weights_by(rule, n=N):
    """q_jk, pair by pair."""
    return np.array([[rule(j, k, n) if k <= j else 0.0 for k in range(n)] for j in range(n)])


def alibi(slope, strict):
    return lambda j, k, n: np.exp(-slope * (j - k) / n) * (k < j or not strict)


def window(width, sinks, slope, strict):
    near = lambda j, k: (k < j or not strict) and (j - k < width + strict or k < sinks)  # noqa: E731
    return lambda j, k, n: np.exp(-slope * (j - k) / n) * near(j, k)


def strided(stride, width, strict):
    return lambda j, k, n: float((k < j or not strict) and (j - k < width + strict or (j - k) % stride == 0))


def placed(places, decay, strict):
    inside = (places[None] < places[:, None]) if strict else (places[None] <= places[:, None])
    return np.where(inside, np.exp(-decay * (places[:, None] - places[None])), 0.0)


MASKS = {
    "causal": (AlibiMask(strict=False), weights_by(alibi(0, False))),
    "causal, summed": (AlibiMask(strict=False, reduce="sum"), weights_by(alibi(0, False))),
    "strict": (AlibiMask(), weights_by(alibi(0, True))),
    "alibi": (AlibiMask(2.0, strict=False), weights_by(alibi(2, False))),
    "alibi, strict, summed": (AlibiMask(3.0, reduce="sum"), weights_by(alibi(3, True))),
    "alibi to the past": (AlibiMask(-4.0, strict=False), weights_by(alibi(-4, False))),
    "window": (WindowMask(3, strict=False), weights_by(window(3, 0, 0, False))),
    "window, sinks, slope": (WindowMask(3, sinks=2, slope=1.5), weights_by(window(3, 2, 1.5, True))),
    "strided": (StridedMask(3, 2, strict=False), weights_by(strided(3, 2, False))),
    "strided, strict": (StridedMask(2, 2, reduce="sum"), weights_by(strided(2, 2, True))),
    "places": (PlacedMask(PLACES), placed(PLACES, 0, False)),
    "places, summed, strict": (PlacedMask(PLACES, strict=True, reduce="sum"), placed(PLACES, 0, True)),
    "decay over places": (PlacedMask(PLACES, decay=0.4), placed(PLACES, 0.4, False)),
    "decay in order": (PlacedMask(np.arange(N) ** 1.5, decay=0.3), placed(np.arange(N) ** 1.5, 0.3, False)),
    "matrix": (MatrixMask(STOCHASTIC), STOCHASTIC),
    "strict matrix": (MatrixMask(STRICTLY), STRICTLY),
}


def dense(kind, x, masses, q, mean, beta=BETA, heads=(V, Q, K)):
    """Σ_h Σ_j a_ij V_h x_j in NumPy, with row masses q_ij m_j."""
    total = np.zeros_like(x)
    for value, query, key in zip(*heads, strict=True):
        a, b = x @ query.T, x @ key.T
        scores = -beta * np.sum((a[:, None] - b[None]) ** 2, axis=2) if kind == "l2" else beta * a @ b.T
        total += KINDS[kind][1](scores, q * masses / masses.sum(), mean) @ x @ value.T
    return total


def made(kind, mask, masses=COUNTS):
    weights = FixedWeights(V, Q, K)
    options = {"space": "euclidean", "multiplicities": masses, "weights": weights}
    return SelfAttention(BETA, attention=KINDS[kind][0], mask=mask, **options)


@eqx.filter_jit
def both(model, x, e):
    """The field, and the gradient of Σ e·field in the tokens."""
    field, back = jax.vjp(lambda y: model.drift(y, ZERO), x)
    return field, back(e)[0]


velocity = eqx.filter_jit(lambda model, x: model.drift(x, ZERO))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MASKS)
def test_every_kind_and_mask_vs_pairs(kind, name):
    """float64 to rounding and to differences of order four; float32 to its own rounding."""
    mask, q = MASKS[name]
    mean, h = mask.reduce == "mean", 1e-6 if kind == "hardmax" else 1e-3  # hard-max jumps, and is linear between
    exact = dense(kind, X, COUNTS, q, mean)
    turn = np.random.default_rng(5).standard_normal((N, D))
    at = lambda s: np.sum(E * dense(kind, X + s * h * turn, COUNTS, q, mean))  # noqa: E731
    slope = (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)
    for dtype, rounding, differences in (("float64", 1e-13, 1e-8), ("float32", 2e-5, 1e-4)):
        field, gradient = both(cast(made(kind, mask), dtype), *(jnp.asarray(a, dtype) for a in (X, E)))
        assert field.dtype == dtype
        size = 1 + np.abs(exact).max()
        np.testing.assert_allclose(field, exact, rtol=0, atol=rounding * size)
        gradient = np.asarray(gradient, float)
        assert np.sum(gradient * turn) == pytest.approx(slope, abs=differences * (1 + np.linalg.norm(gradient)))


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("name", MASKS)
def test_weights_sum_to_the_field(kind, name):
    model = SelfAttention(
        BETA,
        attention=KINDS[kind][0],
        weights=FixedWeights(V[0], Q[0], K[0]),
        space="euclidean",
        mask=MASKS[name][0],
    )
    weights = np.asarray(model.attention_matrix(jnp.asarray(X), ZERO))
    np.testing.assert_allclose(weights @ X @ V[0].T, model.drift(jnp.asarray(X), ZERO), atol=1e-12)
    assert not np.triu(weights, 1).any() or isinstance(model.mask, PlacedMask)


@cache
def long_mask(name, n):
    places = np.sort(np.random.default_rng(3).uniform(0, 9, n))
    return {
        "alibi": lambda: (AlibiMask(5.0, strict=False), weights_by(alibi(5, False), n)),
        "strict": lambda: (AlibiMask(), weights_by(alibi(0, True), n)),
        "alibi, strict, summed": lambda: (AlibiMask(-2.0, reduce="sum"), weights_by(alibi(-2, True), n)),
        "window": lambda: (WindowMask(40, sinks=3, slope=4.0), weights_by(window(40, 3, 4, True), n)),
        "decay": lambda: (PlacedMask(places, decay=1.1), placed(places, 1.1, False)),
    }[name]()


@pytest.mark.parametrize("kind", ["softmax", "l2", "unnormalised", "sigmoid", "linear", "affine"])
@pytest.mark.parametrize("name", ["alibi", "strict", "alibi, strict, summed", "window", "decay"])
def test_many_tokens(kind, name):
    """Blocks of rows, bands of windows, blocks of running sums: 300 tokens, the usual path and the portable one."""
    n, rng = 300, np.random.default_rng(1)
    x, masses = 0.7 * rng.standard_normal((n, D)), rng.integers(0, 3, n) + np.eye(n)[0]
    mask, q = long_mask(name, n)
    exact = dense(kind, x, masses, q, mask.reduce == "mean")
    slack = 1e-11 * (1 + np.abs(exact).max())
    np.testing.assert_allclose(made(kind, mask, masses).drift(jnp.asarray(x), ZERO), exact, atol=slack)
    if kind != "l2":
        rows = (BETA * x @ Q[0].T, x @ K[0].T, x @ V[0].T, masses / masses.sum())
        portable = portable_attend(KINDS[kind][0], *map(jnp.asarray, rows), mask)[0]
        one = dense(kind, x, masses, q, mask.reduce == "mean", heads=(V[:1], Q[:1], K[:1]))
        np.testing.assert_allclose(portable, one, atol=slack)


@pytest.mark.parametrize("kind", ["softmax", "unnormalised"])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    "mask", [AlibiMask(strict=False), AlibiMask(), AlibiMask(6.0, reduce="sum"), AlibiMask(-6.0, strict=False)]
)
def test_prefix_sums_of_harmonics(kind, d, mask):
    n, beta = 300, 2.0
    x = np.asarray(pl.Sphere(d).uniform(jax.random.key(d), n))
    masses = np.random.default_rng(0).dirichlet(np.ones(n))
    attention = ATTENTIONS[kind]()
    found = spectral_attend(attention, jnp.asarray(x), jnp.asarray(x), beta, jnp.asarray(masses), 1e-14, mask)
    exact = attend(attention, jnp.asarray(x), jnp.asarray(x), jnp.asarray(x), jnp.asarray(masses), mask, beta=beta)
    for ours, theirs in zip(found, exact, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.exp(beta))


@pytest.mark.parametrize(("kind", "d", "mask"), [("softmax", 2, AlibiMask(6.0)), ("unnormalised", 3, AlibiMask(-6.0))])
def test_gradients_of_prefix_sums_of_harmonics(kind, d, mask):
    """Against those of pairs, along the sphere: harmonics know unit vectors only."""
    n, beta, attention = 150, 2.0, ATTENTIONS[kind]()
    x, masses = pl.Sphere(d).uniform(jax.random.key(d), n), jnp.full(n, 1 / n)
    by_modes = lambda x: spectral_attend(attention, x, x, beta, masses, 1e-14, mask)[0]  # noqa: E731
    by_pairs = lambda x: attend(attention, x, x, x, masses, mask, beta=beta)[0]  # noqa: E731
    slopes = [jax.jit(jax.grad(lambda x, f=f: jnp.sum(jnp.sin(f(x)))))(x) for f in (by_modes, by_pairs)]
    ours, theirs = (g - jnp.sum(g * x, axis=1, keepdims=True) * x for g in slopes)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(MASKS)), st.integers(0, N - 2), st.integers(0, 2**31))
def test_no_token_hears_a_later_one(kind, name, j, seed):
    """The field of tokens up to j, whatever those after them are; those of one position are not later."""
    mask = MASKS[name][0]
    last = j if not isinstance(mask, PlacedMask) else int(np.asarray(mask.counts(N))[j]) - (not mask.strict)
    last = max(last, j)
    other = X.copy()
    other[last + 1 :] += np.random.default_rng(seed).standard_normal((N - last - 1, D))
    one, two = (np.asarray(velocity(made(kind, mask), jnp.asarray(x))) for x in (X, other))
    np.testing.assert_allclose(one[: j + 1], two[: j + 1], atol=1e-12 * (1 + np.abs(one).max()))


@pytest.mark.parametrize("mask", [AlibiMask(1.5), WindowMask(2, sinks=1), MatrixMask(STRICTLY[:6, :6])])
@pytest.mark.parametrize("softmax", [False, True])
def test_positional_attention_on_the_circle_is_the_decoder(mask, softmax):
    """x_j' = P Σ p_jk e^{β<x_j,x_k>} x_k is the decoder, β times slower without a softmax; the first token rests."""
    beta, angles = 1.3, (2.399963229728653 * np.arange(1, 7)) % (2 * np.pi)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    kind = ATTENTIONS["softmax"]() if softmax else UnnormalisedAttention()
    found = np.asarray(SelfAttention(beta, attention=kind, mask=mask).drift(jnp.asarray(x), ZERO))
    along = np.sum(found * np.stack([-x[:, 1], x[:, 0]], axis=1), axis=1)
    exact = CausalDecoder(beta, mask, softmax=softmax).drift(jnp.asarray(angles), 0.0)
    np.testing.assert_allclose(along, exact if softmax else exact / beta, atol=1e-13)
    np.testing.assert_array_equal(found[0], 0.0)


def test_causal_attention_on_the_sphere():
    """Reference values at T = 2 (twelve digits, another program): V = I and V = diag(1, .5, -.5)."""
    k = np.arange(5)
    x = np.stack([np.cos(k + 1), np.sin(2 * k), np.cos(3 * k + 0.5)], axis=1)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for value, last in (
        (np.eye(3), (0.11981732357, 0.48163370211, 0.86814329806)),
        (np.diag([1, 0.5, -0.5]), (0.26905958386, 0.8941130932, 0.35800658779)),
    ):
        model = SelfAttention(1.0, weights=FixedWeights(value), mask="causal")
        run = flow(model, x, times=[2.0], record="tokens", rtol=1e-11)
        np.testing.assert_allclose(run["tokens"].values[-1][4], last, atol=2e-10)


def test_frozen_tokens_are_heard_and_rest():
    """Two frozen tokens of multiplicity 3 and 2, four that move: the field written out; layers keep them too."""
    beta, masses = 4.0, np.array([3, 2, 1, 1, 1, 1.0])
    x = np.asarray(pl.Sphere(3).uniform(jax.random.key(4), 6))
    model = SelfAttention(beta, multiplicities=masses, mask="causal", frozen=2)
    w = np.tril(masses * np.exp(beta * x @ x.T))
    pull = w @ x / w.sum(axis=1, keepdims=True)
    exact = pull - np.sum(pull * x, axis=1, keepdims=True) * x
    exact[:2] = 0
    np.testing.assert_allclose(model.drift(jnp.asarray(x), ZERO), exact, atol=1e-14)
    run = flow(model, x, times=[1.0, 50.0], record="tokens")
    np.testing.assert_array_equal(run["tokens"].values[:, :2], np.broadcast_to(x[:2], (2, 2, 3)))
    moved = np.asarray(model.layer(jnp.asarray(x), ZERO, jnp.asarray(0.1)))
    np.testing.assert_allclose(moved[:2], x[:2], atol=1e-15)
    assert np.abs(moved[2:] - x[2:]).max() > 1e-3
    assert "frozen" in SelfAttention(1.0, frozen=1).energy_identity()


def test_slope_and_decay_have_gradients():
    """dΣ/dλ of ALiBi and of decay against differences."""
    x, h = jnp.asarray(X), 1e-5
    for build in (lambda s: AlibiMask(s, strict=False), lambda s: PlacedMask(np.arange(N) / N, decay=s)):
        one = lambda s, build=build: jnp.sum(jnp.asarray(E) * made("softmax", build(s)).drift(x, ZERO))  # noqa: E731
        found = jax.jit(jax.grad(one))(1.2)
        assert found == pytest.approx(float(one(1.2 + h) - one(1.2 - h)) / (2 * h), abs=1e-8)


def test_the_choice_knows_masks():
    """Prefix sums of harmonics for ALiBi on the circle, bands for windows, all rows for a matrix; a run says so."""
    soft = ATTENTIONS["softmax"]()
    pick = lambda mask, n=10**5, **o: choose_summation(Sums(soft, n, 2, 1.0, mask=mask, **o))  # noqa: E731
    fast = pick(AlibiMask(2.0, strict=False))
    assert fast.method == "spectral" and "AlibiMask: prefix sums" in fast.reason
    assert pick(AlibiMask(2.0, strict=False), 2 * 10**5).cost == pytest.approx(2 * fast.cost, rel=0.1)
    band, rows = pick(WindowMask(64)), pick(StridedMask(8))
    assert band.method == rows.method == "portable"
    assert "130 keys about a token" in band.reason
    assert band.cost < 0.01 * rows.cost and "StridedMask is no mask of prefixes" in rows.reason
    assert "range of float32" in pick(AlibiMask(300.0), dtype="float32").reason
    tokens = pl.Sphere(2).uniform(jax.random.key(0), 2000)
    run = flow(SelfAttention(1.0, mask="alibi:2"), tokens, until=0.01, record="mean_overlap")
    assert any("AlibiMask" in form.reason for form in run.forms)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: SelfAttention(1.0, mask="windw:3"), "There is no mask `windw:3`"),
        (lambda: SelfAttention(1.0, mask="window:0.5"), "`width` must be an integer ≥ 1"),
        (lambda: SelfAttention(1.0, mask=True), "`mask` must be a mask, its word"),
        (lambda: SelfAttention(1.0, mask=[[1.0], [0.5, 0.5]]), "`mask` must be a mask, its word"),
        (lambda: SelfAttention(1.0, mask=[1, 0]), "do not decrease"),
        (lambda: SelfAttention(1.0, mask=[[1.0, 0.0], [np.nan, 1.0]]), r"finite, but entry \(2, 1\) is nan"),
        (lambda: SelfAttention(1.0, mask=[[1.0, 0.0], [-0.5, 1.5]]), r"nonnegative, but entry \(2, 1\) is -0.5"),
        (lambda: SelfAttention(1.0, mask=[[0.5, 0.5], [0.5, 0.5]]), r"triangular, but entry \(1, 2\) is 0.5"),
        (lambda: SelfAttention(1.0, mask=[[1.0, 0.0], [0.5, 0.6]]), "row 2 sums to 1.1"),
        (lambda: SelfAttention(1.0, frozen=-1), "`frozen` must be an integer ≥ 0"),
        (lambda: SelfAttention(1.0, frozen=5).check(np.eye(3)), "`frozen` must be at most"),
        (lambda: SelfAttention(1.0, mask=np.eye(4)).check(np.eye(3)), "of 4 positions, but there are 3 tokens"),
        (lambda: SelfAttention(1.0, mask=[0, 1]).check(np.eye(3)), r"one position a token \(3\), not 2"),
        (
            lambda: SelfAttention(1.0, mask="window:1:self", multiplicities=[1, 0, 1]).check(np.eye(3)),
            "leaves row 2 of 3 empty: all that it sees has multiplicity 0",
        ),
        (lambda: AlibiMask(1.0, reduce="all"), "`reduce` must be one of"),
        (lambda: PlacedMask([0, 1], decay=np.inf), "`decay`"),
    ],
)
def test_bad_masks_in_one_line(build, says):
    with pytest.raises(ArgumentError, match=says) as error:
        build()
    assert "\n" not in str(error.value)


def test_an_empty_row_is_named():
    class Gap(MatrixMask):
        """A mask of one's own that forgets a position."""

        def seen(self, rows, columns, n):
            return super().seen(rows, columns, n) * (rows != 2)[:, None]

    with pytest.raises(ArgumentError, match="leaves row 3 of 4 empty"):
        Gap(np.eye(4)).check(4)
    with pytest.raises(FormError, match="no masked Sinkhorn"):
        SelfAttention(1.0, attention="sinkhorn", mask="causal")
    with pytest.raises(ArgumentError, match="as many queries as keys"):
        attention_weights(ATTENTIONS["softmax"](), jnp.eye(2), jnp.eye(3)[:, :2], jnp.ones(3) / 3, AlibiMask())
