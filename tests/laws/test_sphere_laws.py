"""Laws that hold for every configuration: equivariance, conservation, monotonicity, equality of the forms.

Shapes are few and fixed, so that each program is compiled once; Hypothesis varies everything else. Tolerances are
rounding (some 1e-14) for laws of the velocity field, and a few hundred times the solver tolerance for laws of runs.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.model.clustering.gram import GramAttention
from pathlines.observable.energy import energy_fraction
from pathlines.observable.pairs import deficits
from pathlines.weights import FixedWeights, IdentityWeights

N, D = 6, 3
KINDS = {"sa": SoftmaxAttention(), "usa": UnnormalisedAttention()}
NOW = np.zeros(())
ROUNDING = 1e-13

seeds = st.integers(0, 2**31 - 1)
betas = st.floats(0.0, 6.0)
kinds = pytest.mark.parametrize("kind", list(KINDS))
many = settings(max_examples=40, deadline=None)
few = settings(max_examples=8, deadline=None)


def tokens(seed, n=N, d=D):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def rotation(seed, d=D):
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def symmetric(seed, d=D):
    b = np.random.default_rng(seed).standard_normal((d, d))
    return (b + b.T) / 2


def attention(kind, beta, **options):
    return SelfAttention(beta, attention=KINDS[kind], **options)


@eqx.filter_jit
def drift(model, x):
    return model.drift(x, jnp.zeros(()))


@eqx.filter_jit
def weights(model, x):
    return model.attention_matrix(x, jnp.zeros(()))


@eqx.filter_jit
def energy_slope(model, x):
    """(dF/dt by differentiating F along the drift, the power of the energy identity)."""
    now = jnp.zeros(())
    _, slope = jax.jvp(lambda y: model.energy_deficit(y, now), (x,), (model.drift(x, now),))
    return slope, model.power(x, now)


# --- laws of the velocity field


@kinds
@many
@given(seed=seeds, turn=seeds, beta=betas)
def test_rotation_equivariance(kind, seed, turn, beta):
    x, q, model = tokens(seed), rotation(turn), attention(kind, beta)
    np.testing.assert_allclose(drift(model, x @ q), drift(model, x) @ q, rtol=0, atol=ROUNDING * np.exp(beta))


@many
@given(seed=seeds, turn=seeds, beta=betas)
def test_rotation_equivariance_with_weights(seed, turn, beta):
    """Turning tokens and matrices together turns the velocity."""
    x, q = tokens(seed), rotation(turn)
    matrices = np.random.default_rng(seed + 1).standard_normal((3, D, D))
    plain = attention("sa", beta, weights=FixedWeights(*matrices))
    turned = attention("sa", beta, weights=FixedWeights(*(q.T @ m @ q for m in matrices)))
    np.testing.assert_allclose(drift(turned, x @ q), drift(plain, x) @ q, rtol=0, atol=1e-11)


@kinds
@many
@given(seed=seeds, order=st.permutations(range(N)), beta=betas)
def test_permutation_equivariance(kind, seed, order, beta):
    x, model = tokens(seed), attention(kind, beta)
    np.testing.assert_allclose(
        drift(model, x[order]), drift(model, x)[np.array(order)], rtol=0, atol=ROUNDING * np.exp(beta)
    )


@kinds
@many
@given(seed=seeds, beta=betas, value=st.sampled_from([1.0, -1.0]))
def test_velocity_is_tangent(kind, seed, beta, value):
    x = tokens(seed)
    v = drift(attention(kind, beta, weights=IdentityWeights(value)), x)
    assert float(np.abs(np.sum(x * v, axis=1)).max()) < ROUNDING * np.exp(beta)


@many
@given(seed=seeds, beta=st.floats(0.0, 500.0), masses=st.lists(st.integers(1, 9), min_size=N, max_size=N))
def test_attention_rows_sum_to_one(seed, beta, masses):
    a = np.asarray(weights(attention("sa", beta, multiplicities=masses), tokens(seed)))
    assert (a >= 0).all()
    np.testing.assert_allclose(a.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@many
@given(seed=seeds, beta=betas)
def test_unnormalised_weights(seed, beta):
    x = tokens(seed)
    np.testing.assert_allclose(weights(attention("usa", beta), x), np.exp(beta * x @ x.T) / N, rtol=1e-13)


@many
@given(seed=seeds, beta=betas)
def test_scaled_kernel_is_a_slower_clock(seed, beta):
    """e^{β(<x,y>-1)} runs e^β times slower than e^{β<x,y>}."""
    x = tokens(seed)
    scaled = SelfAttention(beta, attention=UnnormalisedAttention(shift=jnp.asarray(beta)))
    plain = SelfAttention(beta, attention=UnnormalisedAttention(shift=jnp.zeros(())))
    np.testing.assert_allclose(np.exp(beta) * drift(scaled, x), drift(plain, x), rtol=0, atol=ROUNDING * np.exp(beta))


@kinds
@many
@given(seed=seeds, beta=betas, counts=st.permutations([1, 1, 2, 3]))
def test_multiplicities_are_duplicated_tokens(kind, seed, beta, counts):
    """A token of multiplicity w moves as w coincident tokens do, and the energies agree."""
    x = tokens(seed, n=len(counts))
    merged = attention(kind, beta, multiplicities=counts)
    spread, full = attention(kind, beta), np.repeat(x, counts, axis=0)
    expected = np.repeat(drift(merged, x), counts, axis=0)
    np.testing.assert_allclose(drift(spread, full), expected, rtol=0, atol=ROUNDING * np.exp(beta))
    heights = (float(m.energy_deficit(jnp.asarray(y), NOW)) for m, y in ((merged, x), (spread, full)))
    assert next(heights) == pytest.approx(next(heights), abs=1e-14)


@kinds
@many
@given(seed=seeds, beta=betas, counts=st.permutations([1, 1, 2, 3]))
def test_energy_identity(kind, seed, beta, counts):
    """dF/dt by automatic differentiation equals Σ_i m_i Z_i |x_i'|²."""
    slope, power = energy_slope(attention(kind, beta, multiplicities=counts), tokens(seed, n=len(counts)))
    assert float(slope) == pytest.approx(float(power), abs=ROUNDING * np.exp(beta))
    assert float(power) >= 0


@many
@given(seed=seeds, beta=betas, sign=st.sampled_from([1, -1]))
def test_energy_identity_with_symmetric_weights(seed, beta, sign):
    """V = ±QᵀK symmetric: the identity holds with the exponent β<x_i, QᵀK x_j>, and V = -QᵀK goes downhill."""
    score = symmetric(seed)
    model = SelfAttention(beta, weights=FixedWeights(sign * score, query=score))
    slope, power = energy_slope(model, tokens(seed))
    assert float(slope) == pytest.approx(float(power), abs=1e-11)
    assert sign * float(power) >= 0


@many
@given(seed=seeds, beta=st.floats(0.5, 6.0))
def test_no_energy_identity_for_generic_weights(seed, beta):
    """The law above is not vacuous: with unrelated Q, K, V the two sides differ, and the model says so."""
    matrices = np.random.default_rng(seed).standard_normal((3, D, D))
    model = SelfAttention(beta, weights=FixedWeights(*matrices))
    slope, power = energy_slope(model, tokens(seed))
    assert model.energy_identity() != "holds"
    assert abs(float(slope) - float(power)) > 1e-9


@kinds
@many
@given(seed=seeds, beta=betas)
def test_gram_field_is_the_tokens_field(kind, seed, beta):
    """du_ij/dt of the Gram closure = -d<x_i,x_j>/dt of the tokens."""
    x = tokens(seed)
    v = np.asarray(drift(attention(kind, beta), x))
    gram = GramAttention(beta, unnormalised=kind == "usa")
    expected = -(v @ x.T + x @ v.T)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(
        drift(gram, gram.initial(jnp.asarray(x))), expected, rtol=0, atol=ROUNDING * np.exp(beta)
    )


# --- laws of runs


@kinds
@few
@given(seed=seeds, beta=st.floats(0.0, 3.0))
def test_norms_and_monotone_energy(kind, seed, beta):
    record = (positions, energy_fraction)
    times = np.linspace(0.0, 4.0, 17)
    run = flow(attention(kind, beta), tokens(seed), times=times, record=record, rtol=1e-10, form="tokens")
    norms = np.linalg.norm(run["tokens"].values, axis=-1)
    np.testing.assert_allclose(norms, 1.0, rtol=0, atol=1e-15 * D)
    height = run["energy_fraction"].values
    assert np.diff(height).min() > -1e-12
    assert 0 < height[0] <= height[-1] <= 1 + 1e-14
    assert run.certificate("energy_identity").passed
    assert float(np.abs(run["dissipation_residual"].values).max()) < 1e-7


@few
@given(seed=seeds, turn=seeds, order=st.permutations(range(N)), beta=st.floats(0.0, 3.0))
def test_runs_turn_and_permute_with_their_start(seed, turn, order, beta):
    x, q, model = tokens(seed), rotation(turn), attention("sa", beta)
    options = {"times": [1.0, 3.0], "record": (positions, energy_fraction), "rtol": 1e-10, "form": "tokens"}
    plain = flow(model, x, **options)["tokens"].values
    moved = flow(model, x[order] @ q, **options)["tokens"].values
    np.testing.assert_allclose(moved, plain[:, order] @ q, rtol=0, atol=1e-7)


@few
@given(seed=seeds, beta=st.floats(0.0, 3.0))
def test_span_vs_tokens(seed, beta):
    x, model = tokens(seed, n=3, d=7), attention("sa", beta)
    found = {f: flow(model, x, times=[0.5, 2.0], record=positions, rtol=1e-11, form=f) for f in ("span", "tokens")}
    assert found["span"].forms[0].name == "span"
    np.testing.assert_allclose(found["span"]["tokens"].values, found["tokens"]["tokens"].values, rtol=0, atol=1e-8)


@few
@given(seed=seeds, beta=st.floats(0.0, 3.0))
def test_gram_vs_tokens(seed, beta):
    x, model = tokens(seed), attention("sa", beta)
    found = [
        flow(model, x, times=[0.5, 2.0], record=deficits, rtol=1e-11, form=f)["deficits"].values
        for f in ("gram-deficit", "tokens")
    ]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8)


@few
@given(seed=seeds, beta=st.sampled_from([0.3, 2.0]))
def test_circle_fourier_vs_tokens(seed, beta):
    x, model = tokens(seed, n=12, d=2), attention("sa", beta)
    found = [
        flow(model, x, times=[0.5, 2.0], record=positions, rtol=1e-11, form=f)["tokens"].values
        for f in ("circle-fourier", "tokens")
    ]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8)
