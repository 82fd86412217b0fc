"""Laws that every registered kind of attention obeys, with heads, weights, masks and both spaces, and one kind more."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import (
    ATTENTIONS,
    AlibiMask,
    Attention,
    SigmoidAttention,
    SinkhornAttention,
    UnnormalisedAttention,
)
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import flow
from pathlines.kernels import attention_weights
from pathlines.model import MODELS, SelfAttention
from pathlines.model.attention_kinds import builder
from pathlines.model.clustering.normalised import NormalisedAttention, Polar
from pathlines.weights import FixedWeights


class SquaredReLU(Attention):
    """The eighth kind: a_ij = m_j max(s_ij, 0)²."""

    gain: float = 1.0

    def normalise(self, scores, masses):
        return self.gain * masses * jnp.maximum(scores, 0.0) ** 2, jnp.zeros(scores.shape[:-1])


KINDS = {
    **{name: ATTENTIONS[name]() for name in ATTENTIONS},
    "sinkhorn, 3 half-steps": SinkhornAttention(0.8, iterations=3),
    "sinkhorn, 4 half-steps": SinkhornAttention(0.8, iterations=4),
    "eighth": SquaredReLU(),
}
PLAIN = {name: kind for name, kind in KINDS.items() if "half" not in name}
MASKED = [name for name, kind in KINDS.items() if not kind.unmaskable]
N, D = 8, 3
RNG = np.random.default_rng(3)
V, Q, K = 0.6 * RNG.standard_normal((3, 2, D, D))
X = RNG.standard_normal((N, D))
ZERO = jnp.zeros(())

velocity = eqx.filter_jit(lambda model, x: model.drift(x, ZERO))
change = eqx.filter_jit(lambda model, x, e: jax.jvp(lambda y: model.drift(y, ZERO), (x,), (e,))[1])


def made(kind, masses=None, space="euclidean", **options):
    masses = np.ones(N) if masses is None else masses
    weights = FixedWeights(V, Q, K)
    return SelfAttention(0.9, attention=kind, weights=weights, multiplicities=masses, space=space, **options)


def field(model, x):
    return np.asarray(velocity(model, jnp.asarray(x)))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_copies_order_and_heads(kind):
    """A token of multiplicity w is w tokens, order does not matter, a token of mass zero is not heard."""
    whole = field(made(kind), X)
    order = RNG.permutation(N)
    np.testing.assert_allclose(field(made(kind), X[order]), whole[order], atol=1e-12)
    counts = np.array([2, 1, 3, 1, 1])
    copies = field(made(kind), np.repeat(X[:5], counts, axis=0))
    merged = field(made(kind, counts), X[:5])
    np.testing.assert_allclose(np.repeat(merged, counts, axis=0), copies, atol=1e-12)
    with_listeners = field(made(kind, np.append(counts, [0, 0, 0])), X)
    np.testing.assert_allclose(with_listeners[:5], merged, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_weights_sum_to_the_field(kind):
    """Σ_j a_ij V x_j of the attention matrix, one head; rows of normalised kinds sum to one."""
    model = SelfAttention(0.9, attention=kind, weights=FixedWeights(V[0], Q[0], K[0]), space="euclidean")
    weights = np.asarray(model.attention_matrix(jnp.asarray(X), ZERO))
    gain = 1 / float(kind.eps) if isinstance(kind, SinkhornAttention) else 1.0
    np.testing.assert_allclose(gain * weights @ X @ V[0].T, field(model, X), atol=1e-12)
    if kind.core.normalised:
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_directional_derivative_vs_differences(kind):
    model, e, h = made(kind), RNG.standard_normal((N, D)), 1e-3
    at = lambda k: field(model, X + k * h * e)  # noqa: E731
    differences = (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)
    found = np.asarray(change(model, jnp.asarray(X), jnp.asarray(e)))
    np.testing.assert_allclose(found, differences, atol=2e-9 * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize("kind", PLAIN.values(), ids=PLAIN)
def test_sphere_and_pre_norm(kind):
    """On the sphere the velocity is the projection of that in R^d; Pre-LN is dx/dt = Γ of directions at directions."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    free, bound = field(made(kind), unit), field(made(kind, space="sphere"), unit)
    np.testing.assert_allclose(bound, free - np.sum(free * unit, axis=1, keepdims=True) * unit, atol=1e-12)
    pre = NormalisedAttention(0.9, "pre", attention=kind, weights=FixedWeights(V, Q, K), multiplicities=np.ones(N))
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    moving = velocity(pre, Polar(jnp.asarray(unit), jnp.asarray(lengths)))
    np.testing.assert_allclose(lengths * moving.direction + moving.magnitude * unit, free, atol=1e-12)


@pytest.mark.parametrize("name", MASKED)
def test_causal(name):
    """Later tokens do not matter, the last sees all, the first follows V if normalised; positions may be shared."""
    kind = KINDS[name]
    model = made(kind, mask="causal")
    whole = field(model, X)
    short = field(made(kind, np.ones(5), mask="causal"), X[:5])
    np.testing.assert_allclose(whole[:5], short, atol=1e-12)
    np.testing.assert_allclose(whole[-1], field(made(kind), X)[-1], atol=1e-12)
    if kind.normalised:
        np.testing.assert_allclose(whole[0], V.sum(axis=0) @ X[0], atol=1e-12)
    summed = field(made(kind, mask="causal:sum"), X)
    share = 1.0 if kind.normalised else np.arange(1, N + 1)[:, None] / N
    np.testing.assert_allclose(summed, share * whole, atol=1e-12)
    shared = field(made(kind, mask=[0, 0, 1, 1, 1, 2, 3, 3]), X)
    np.testing.assert_allclose(shared[[1, 4, 5, 7]], whole[[1, 4, 5, 7]], atol=1e-12)
    np.testing.assert_allclose(shared[2], field(made(kind, np.ones(5)), X[:5])[2], atol=1e-12)


def test_l2_far_from_the_origin():
    """Only differences matter: tokens a million away keep the digits that their coordinates have."""
    masses = jnp.full(N, 1 / N)
    near, far = (
        attention_weights(ATTENTIONS["l2"](), jnp.asarray(X + c), jnp.asarray(X + c), masses) for c in (0.0, 2.0**20)
    )
    gaps = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    expected = np.exp(-gaps) / np.exp(-gaps).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(near, expected, atol=1e-14)
    np.testing.assert_allclose(far, expected, atol=1e-8)


def test_one_class_adds_a_kind(monkeypatch):
    """By its name in a model of tokens, as a model for the command line, and through the engine."""
    monkeypatch.setattr(ATTENTIONS, "_entries", {**ATTENTIONS._entries})
    ATTENTIONS.add("squared-relu")(SquaredReLU)
    by_name = SelfAttention(0.9, attention="squared-relu", weights=FixedWeights(V, Q, K), space="euclidean")
    np.testing.assert_allclose(field(by_name, X), field(made(SquaredReLU()), X), atol=1e-14)
    build = builder(SquaredReLU)
    assert {"beta", "mask", "gain"} <= set(inspect.signature(build).parameters)
    model = build(value=V[0], gain=0.5, mask="causal", d=D)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    run = flow(model, unit, times=[0.2], record=("tokens", "mean_overlap"), rtol=1e-6)
    assert run.outcome == "completed"
    assert "not a gradient" in model.energy_identity()


@pytest.mark.parametrize("name", list(ATTENTIONS))
def test_every_kind_is_a_model(name):
    entry = MODELS[name]
    assert entry.equation and entry.sees and entry.papers
    assert isinstance(entry.build(beta=2.0, query=Q[0], d=D), SelfAttention)


def test_bad_input():
    cases = [
        (lambda: SinkhornAttention(0.0), "eps"),
        (lambda: SinkhornAttention(1.0, "2"), "prefactor"),
        (lambda: SinkhornAttention(iterations=0), "iterations"),
        (lambda: SelfAttention(1.0, attention="sofmax"), "Did you mean `softmax`"),
        (lambda: SelfAttention(1.0, multiplicities=[1.0, -1.0]), "at least 0"),
        (lambda: SelfAttention(1.0, mask=[1, 0]), "do not decrease"),
        (lambda: AlibiMask(reduce="all"), "reduce"),
        (lambda: SelfAttention(1.0, mask="causal", multiplicities=[0, 1]).check(np.eye(2)), "leaves row 1 of 2 empty"),
        (lambda: SelfAttention(1.0, mask=[0, 0, 1]).check(np.eye(2)), "one position a token"),
        (lambda: SelfAttention(1.0, mask=[0, 1, 2]).check(np.eye(5)), r"one position a token \(5\), not 3"),
        (lambda: FixedWeights(V[0], Q[0][:2]), "square"),
        (lambda: FixedWeights(V[0], Q[0][:2], K[0]), "shape of `query`"),
    ]
    for build, message in cases:
        with pytest.raises((ArgumentError, LookupError), match=message):
            build()
    with pytest.raises(FormError, match="no masked Sinkhorn"):
        SelfAttention(1.0, attention="sinkhorn", mask="causal")
    with pytest.raises(FormError, match="not a function of the scores"):
        ATTENTIONS["l2"]().normalise(jnp.eye(2), jnp.ones(2) / 2)


def test_summed_sigmoid_in_a_long_context():
    """n σ(s - ln n) at s = 1.3 (reference values, four digits), and e^s - e^{2s}/n to the next order e^{3s}/n²."""
    for n, reference in ((10, 2.684), (100, 3.539), (1000, 3.656), (10_000, 3.668)):
        weights, _ = SigmoidAttention(summed=True).normalise(jnp.full((1, n), 1.3), jnp.full(n, 1 / n))
        assert float(weights.sum()) == pytest.approx(reference, abs=5e-4)
    x = RNG.standard_normal((50, 2))
    masses = jnp.full(50, 1 / 50)
    kinds = ((SigmoidAttention(summed=True), 0.3), (UnnormalisedAttention(), 0.3), (UnnormalisedAttention(), 0.6))
    short, long, twice = (attention_weights(k, jnp.asarray(b * x), jnp.asarray(x), masses) for k, b in kinds)
    third = np.exp(0.9 * np.abs(x @ x.T).max()) / 50**2
    np.testing.assert_allclose(50 * short, 50 * (long - twice / 50), atol=third)
