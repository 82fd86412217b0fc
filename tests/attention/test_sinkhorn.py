"""Sinkhorn attention: marginals, invariances, truncation, derivatives by the formula, how many iterations."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from pathlines.attention import SinkhornAttention
from pathlines.attention.sinkhorn import balance
from pathlines.domain import Sphere
from pathlines.foundation.errors import FormError, PathlinesWarning
from pathlines.integrate import flow
from pathlines.kernels import attend, attention_weights
from pathlines.kernels.dense import softmax_sums
from pathlines.limit.gaussian.sinkhorn import iteration_rate
from pathlines.model import SelfAttention
from pathlines.model.clustering.carried import Carried, CarriedSinkhorn
from pathlines.numerics.quadrature import gauss_hermite
from pathlines.weights import FixedWeights

RNG = np.random.default_rng(1)
N, D, EPS = 7, 2, 0.6
X = jnp.asarray(RNG.standard_normal((N, D)))
A = 0.8 * RNG.standard_normal((D, D))
Q = X @ A.T
UNIFORM = jnp.full(N, 1 / N)
PLANS = eqx.filter_jit(jax.vmap(attention_weights, in_axes=(None, 0, 0, None)))
MASSES = jnp.asarray(RNG.dirichlet(np.ones(N)))


@pytest.mark.parametrize("masses", [UNIFORM, MASSES])
def test_both_marginals(masses):
    plan = masses[:, None] * attention_weights(SinkhornAttention(EPS), Q, X, masses)
    np.testing.assert_allclose(plan.sum(axis=1), masses, atol=1e-15)
    np.testing.assert_allclose(plan.sum(axis=0), masses, atol=1e-12)


def test_functions_of_one_token_do_not_matter():
    """Scores s_ij + a_i + b_j have the same plan: so e^{-|q-k|²/2ε} and e^{<q,k>/ε} are one kind."""
    shift = lambda x: jnp.concatenate([x, jnp.ones((N, 1))], axis=1)  # noqa: E731
    keys = jnp.concatenate([X, jnp.asarray(RNG.standard_normal((N, 1)))], axis=1)
    plain = attend(SinkhornAttention(EPS), Q, X, X, MASSES)[0]
    np.testing.assert_allclose(attend(SinkhornAttention(EPS), shift(Q), keys, X, MASSES)[0], plain, atol=1e-11)


def test_truncated():
    """L = 1 is softmax of s/ε; L = 2, 3 by hand; many half-steps are the limit; odd ones sum to one over rows."""
    scores = np.asarray(Q @ X.T) / EPS
    kernel = np.exp(scores) * np.asarray(MASSES)
    rows = kernel / kernel.sum(axis=1, keepdims=True)
    columns = rows / (np.asarray(MASSES) @ rows) * np.asarray(MASSES)
    by_hand = {1: rows, 2: columns, 3: columns / columns.sum(axis=1, keepdims=True)}
    for count, expected in by_hand.items():
        found = attention_weights(SinkhornAttention(EPS, iterations=count), Q, X, MASSES)
        np.testing.assert_allclose(found, expected, atol=1e-13)
    limit = attention_weights(SinkhornAttention(EPS), Q, X, MASSES)
    for count in (600, 601):
        np.testing.assert_allclose(
            attention_weights(SinkhornAttention(EPS, iterations=count), Q, X, MASSES), limit, atol=1e-11
        )


def test_derivative_vs_the_linear_system():
    """dP = P∘(dS + df 1ᵀ + 1 dgᵀ) with the least-norm solution of the singular 2n × 2n system, for equal masses."""
    E = RNG.standard_normal((N, D))
    x = np.asarray(X)
    kind = SinkhornAttention(EPS, "1")
    _, found = jax.jvp(lambda y: attend(kind, y @ A.T, y, y, UNIFORM)[0], (X,), (jnp.asarray(E),))
    P = np.asarray(attention_weights(kind, Q, X, UNIFORM))
    dS = ((E @ A.T) @ x.T + (x @ A.T) @ E.T) / EPS
    system = np.block([[np.eye(N), P], [P.T, np.eye(N)]])
    right = -np.concatenate([(P * dS).sum(axis=1), (P * dS).sum(axis=0)])
    df, dg = np.split(np.linalg.lstsq(system, right, rcond=1e-12)[0], 2)
    dP = P * (dS + df[:, None] + dg[None, :])
    np.testing.assert_allclose(found, dP @ x + P @ E, atol=1e-10)


def two_tokens(eps):
    """Model, tokens, a direction, and the derivative of the field: P = (p, 1-p; 1-p, p), logit p half the curl of S."""
    rng = np.random.default_rng(3)
    score = np.array([[0.5, 0.2], [-0.3, 0.4]])
    x, e = rng.standard_normal((2, 2, 2))
    curl = lambda S: (S[0, 0] + S[1, 1] - S[0, 1] - S[1, 0]) / (2 * eps)  # noqa: E731
    p = 1 / (1 + np.exp(-curl(x @ score.T @ x.T)))
    dp = p * (1 - p) * curl(e @ score.T @ x.T + x @ score.T @ e.T)
    exact = dp * np.array([[1, -1], [-1, 1]]) @ x + np.array([[p, 1 - p], [1 - p, p]]) @ e
    model = SelfAttention(
        1.0, attention=SinkhornAttention(eps, "1"), weights=FixedWeights(np.eye(2), score), space="euclidean"
    )
    return model, x, e, exact


@pytest.mark.parametrize("eps", [0.3, 0.1, 1e-3])
def test_derivative_where_the_iteration_is_slow(eps):
    """Two tokens need e^{O(1/ε)} plain iterations; Newton's method makes the plan exact at every ε."""
    model, x, e, exact = two_tokens(eps)
    _, found = jax.jvp(lambda y: model.drift(y, jnp.zeros(())), (jnp.asarray(x),), (jnp.asarray(e),))
    np.testing.assert_allclose(found, exact, atol=1e-9)


@pytest.mark.parametrize("eps", [0.1, 0.01, 1e-3, 1e-5])
def test_six_tokens_at_small_eps(eps):
    """Both marginals at every ε, and the optimal assignment as ε → 0; plain iterations leave columns 10⁻⁴ or 1 off."""
    rng = np.random.default_rng(0)
    x, scores = rng.standard_normal((6, 6, 2)), rng.standard_normal((6, 2, 2))
    queries = jnp.asarray(x @ scores.transpose(0, 2, 1))
    plans = np.asarray(PLANS(SinkhornAttention(eps), queries, jnp.asarray(x), jnp.full(6, 1 / 6)))
    np.testing.assert_allclose(plans.sum(axis=2), 1, atol=1e-14)
    np.testing.assert_allclose(plans.sum(axis=1), 1, atol=1e-9)
    if eps < 1e-4:
        best = [linear_sum_assignment(q @ y.T, maximize=True)[1] for q, y in zip(queries, x, strict=True)]
        np.testing.assert_array_equal(plans.argmax(axis=2), best)


def test_a_flow_carries_its_potentials():
    """Six tokens at ε = 10⁻³: the run ends, with columns that sum to one, at the tokens of a run that forgets."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((6, 2)), FixedWeights(-np.eye(2), rng.standard_normal((2, 2)))
    model = SelfAttention(1.0, attention=SinkhornAttention(1e-3, "1"), weights=weights, space="euclidean")
    carried, forgetful = (flow(model, x, times=[1.0], record=("tokens", "column_error"), form=form)
                          for form in ("auto", "tokens"))  # fmt: skip
    assert "start from those" in carried.forms[0].reason and "potentials" not in forgetful.forms[0].reason
    assert carried.outcome == "completed" and float(carried["column_error"].values[-1]) < 1e-10
    np.testing.assert_allclose(carried["tokens"], forgetful["tokens"], atol=1e-6)


def test_potentials_are_carried_only_where_that_pays():
    """At ε = 1 potentials are found in a dozen iterations; starting from the last costs more than it saves."""
    x, reasons = Sphere(3).uniform(jax.random.key(0), 32), {}
    for eps in (1.0, 0.03):
        run = flow(SelfAttention(1.0, attention=SinkhornAttention(eps)), x, until=0.01, record="mean_overlap")
        reasons[eps] = run.forms[0].reason
    assert "potentials" not in reasons[1.0] and "potentials, 105 steps from zero" in reasons[0.03]


@pytest.mark.parametrize("form", ["auto", "tokens"])
def test_scores_beyond_all_digits_end_a_run(form):
    """V = -I and a score that pairs opposite tokens: they grow like e^{t/ε}, and scores reach 4·10¹² at t = 0.0103."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((6, 2)), FixedWeights(-np.eye(2), rng.standard_normal((2, 2)))
    model = SelfAttention(1.0, attention=SinkhornAttention(1e-3), weights=weights, space="euclidean")
    with pytest.warns(PathlinesWarning, match="rounding decides the weights"):
        run = flow(model, x, until=1.0, record="tokens", form=form, max_steps=2000)
    assert run.outcome.startswith("diverged at t = 0.0103") and 1e4 < np.abs(run["tokens"].values[-1]).max() < 1e5


def test_potentials_of_the_step_before_are_near():
    """Three heads: after 10⁻³ of a cloud's size fewer iterations are left, and none when nothing moved."""
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((7, 2)), FixedWeights(*0.5 * rng.standard_normal((2, 3, 2, 2)))
    model = CarriedSinkhorn(SelfAttention(1.0, attention=SinkhornAttention(0.7), weights=weights, space="euclidean"))
    state = model.initial(jnp.asarray(x))
    moved = Carried(state.tokens + 1e-3 * rng.standard_normal((7, 2)), state.potentials)
    after = model.retract(moved)
    cold = model.initial(moved.tokens)
    weighed = lambda g: g - g.mean(axis=1, keepdims=True)  # noqa: E731
    np.testing.assert_allclose(weighed(after.potentials), weighed(cold.potentials), atol=1e-11)
    np.testing.assert_allclose(model.drift(after, 0.0).tokens, model.inner.drift(moved.tokens, 0.0), atol=1e-12)
    rows = moved.tokens @ weights.query[0].T / 0.7
    counts = [int(balance(softmax_sums, 1e-12, rows, moved.tokens, UNIFORM, g).iterations)
              for g in (jnp.zeros(7), state.potentials[0], after.potentials[0])]  # fmt: skip
    assert counts[1] < 0.8 * counts[0] and counts[2] <= 2


def test_caution():
    """Two tokens at ε = 0.1 take more than 10 000 plain iterations and are served without a word; NaN never settles."""
    model, x, _, _ = two_tokens(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.check(x)
    huge = np.array([[1e200, 0.0], [-1e200, 1.0]])
    assert "has not converged" in SinkhornAttention(1e-5).caution(lambda: (huge, huge))


def test_iterations_as_predicted_and_warm_start():
    """On a Gaussian cloud the error shrinks by ρ_max² an iteration; the answer as a start needs one more at most."""
    cov = np.array([[1.0, 0.3], [0.3, 0.7]])
    x, masses = (jnp.asarray(a) for a in gauss_hermite([0.4, -0.1], cov, 14, 1e-14))
    rows = x @ (A / EPS).T
    found = balance(softmax_sums, 1e-10, rows, x, masses)
    rate = iteration_rate(A, EPS, cov)
    assert int(found.iterations) == pytest.approx(np.log(1e-10) / np.log(rate), rel=0.3)
    again = balance(softmax_sums, 1e-10, rows, x, masses, start=found.potential)
    assert int(again.iterations) <= 2
    assert float(found.change) <= 1e-10


def test_report():
    """A run records iterations and the column error."""
    model = SelfAttention(1.0, attention=SinkhornAttention(EPS), weights=FixedWeights(np.eye(D), A), space="euclidean")
    run = flow(model, X, times=[0.1], record=("sinkhorn_iterations", "column_error"), method="rk4", step=0.05)
    assert 3 < int(run["sinkhorn_iterations"].values[-1]) < 500
    assert float(run["column_error"].values[-1]) < 1e-11
    with pytest.raises(FormError, match="no Sinkhorn"):
        flow(SelfAttention(1.0, space="euclidean"), X, times=[0.1], record="sinkhorn_iterations")
