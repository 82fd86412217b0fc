"""Self-attention in R^d, rescaled: two forms of one equation, the hard-max phase, the horizon, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from pathlines.domain import Euclidean
from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.model.clustering.hardmax_phase import Spectrum, frozen_flow
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.model.parts.perceptron import Perceptron
from pathlines.observable.attention import booleanness
from pathlines.weights import FixedWeights

SHARP = {"method": "dop853", "rtol": 1e-12}
FULL = np.array([[1.0, 0.5], [0.2, 0.3]])
DEFECTIVE = np.array([[0.8, 1.0], [0.0, 0.8]])
ROTATION = np.array([[0.4, -1.1], [1.1, 0.4]])
QUERY, KEY = np.array([[1.0, 0.3], [-0.2, 0.9]]), np.array([[0.7, 0.0], [0.4, 1.1]])


def start():
    return np.asarray(Euclidean(2).sines(10, scale=2.0))


def tokens_at(model, times, **how):
    return flow(model, start(), times=times, record=positions, **{**SHARP, **how})["tokens"].values


@pytest.mark.parametrize(
    "value", [np.eye(2), FULL, DEFECTIVE, ROTATION], ids=["identity", "full", "defective", "complex"]
)
@pytest.mark.parametrize(("query", "key"), [(None, None), (QUERY, KEY)], ids=["plain", "query-key"])
def test_z_form_vs_x_form(value, query, key):
    until = 1.5
    z = tokens_at(RescaledAttention(value, query, key), [until])[-1]
    x = tokens_at(SelfAttention(1.0, space="euclidean", weights=FixedWeights(value, query, key)), [until])[-1]
    np.testing.assert_allclose(z @ expm(until * value).T, x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("value", [FULL, DEFECTIVE, ROTATION], ids=["full", "defective", "complex"])
def test_growth_vs_matrix_exponential(value):
    model = RescaledAttention(value)
    assert model.diagonalisable == (value is not DEFECTIVE)
    for t in (0.0, 0.7, 5.0):
        np.testing.assert_allclose(model.growth(jnp.asarray(t)), expm(t * value), rtol=1e-12, atol=1e-12)


def test_beta_is_absorbed_in_the_weights():
    scaled = RescaledAttention(FULL, np.sqrt(0.6) * QUERY, np.sqrt(0.6) * KEY)
    given = RescaledAttention(FULL, QUERY, KEY, beta=0.6)
    np.testing.assert_allclose(tokens_at(given, [1.0]), tokens_at(scaled, [1.0]), rtol=0, atol=1e-10)


def test_hand_over_vs_softmax_for_the_identity():
    times = np.linspace(0, 12, 97)
    model = RescaledAttention(np.eye(2))
    handed = flow(model, start(), times=times, record=positions, **SHARP)
    assert handed.forms[-1].name == "HardmaxPhase"
    assert 0 < handed.forms[-1].since < 12
    softmax = flow(model, start(), times=times, record=positions, form="tokens", **SHARP)
    assert [f.name for f in softmax.forms] == ["tokens"]
    np.testing.assert_allclose(handed["tokens"], softmax["tokens"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("value", [np.diag([1.0, 0.5]), np.diag([1.0, -0.5]), FULL], ids=["split", "negative", "full"])
def test_hardmax_phase_vs_softmax_for_other_values(value):
    model, (before, after) = RescaledAttention(value), (10.0, 11.5)
    run = flow(model, start(), times=[before, after], record=(positions, booleanness), form="tokens", **SHARP)
    assert run["booleanness"].values.max() < 1e-14
    state = jnp.asarray(run["tokens"].values[0])
    assert model.handover(state, before, 60.0, at_horizon=False) is None  # only at the horizon is it worth the risk
    phase, same, _ = model.handover(state, before, 60.0, at_horizon=True)
    there = phase.flow_map(same, before, after)
    np.testing.assert_allclose(there, run["tokens"].values[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("leader", [[0, 0, 1, 2], [0, 0, 0, 3], [1, 0, 1, 2]], ids=["chain", "stars", "cycle"])
@pytest.mark.parametrize("value", [FULL, ROTATION], ids=["full", "complex"])
def test_frozen_leaders_vs_integration(leader, value):
    leader = np.array(leader)
    values, vectors = np.linalg.eig(value)
    spectrum = Spectrum(values, vectors, np.linalg.inv(vectors))
    z = np.random.default_rng(0).normal(size=(4, 2))

    def field(t, y):
        points = y.reshape(4, 2)
        return ((points[leader] - points) @ value.T).ravel()

    exact = solve_ivp(field, (0, 1.3), z.ravel(), "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(frozen_flow(z, leader, spectrum, 1.3).ravel(), exact, rtol=0, atol=1e-10)


def test_stops_at_the_horizon_when_nothing_can_continue():
    """With a perceptron the late flow is not linear: no hard-max phase, the run stops and says so."""
    perceptron = Perceptron(np.eye(2), np.eye(2), activation="tanh")
    model = RescaledAttention(np.eye(2), perceptron=perceptron)
    limit, why = model.horizon(start())
    largest = np.sum(start() ** 2, axis=1).max()
    assert limit == pytest.approx(0.5 * np.log(1e-2 / (np.finfo(float).eps * largest)))
    with pytest.warns(PathlinesWarning, match="stopped at t"):
        run = flow(model, start(), times=np.arange(1.0, 20.0), record=positions, rtol=1e-8)
    assert why in run.outcome
    assert run.time[-1] == np.floor(limit)


def test_no_horizon_without_growth():
    assert RescaledAttention(-np.eye(2)).horizon(start())[0] == np.inf


def follow_leaders(values, z, begin, until, step):
    """dz_i/dt = V(z_l - z_i) by short exact steps towards the leader of the moment, V = diag(values)."""
    count = int(np.ceil((until - begin) / step))
    h = (until - begin) / count
    decay = np.exp(-h * values)
    for k in range(count):
        grown = z * np.exp((begin + k * h) * (values - values.max()))
        leader = z[np.argmax(grown @ grown.T, axis=1)]
        z = leader + decay * (z - leader)
    return z


def test_leaders_that_change_after_the_horizon():
    """V = diag(1, .9): a third leader outlives float64's horizon and is deposed later."""
    values = np.array([1.0, 0.9])
    tokens = Euclidean(2).cube(jax.random.key(2), 10, -5.0, 5.0)
    run = flow(RescaledAttention(np.diag(values)), tokens, times=[16.5, 40.0, 60.0], record=positions, **SHARP)
    assert run.forms[-1].name == "HardmaxPhase" and run.forms[-1].since < 16.5
    z = run["tokens"].values
    phase = run.final.model
    before = phase.leaders(jnp.asarray(z[0]), jnp.asarray(16.5))
    after = phase.leaders(jnp.asarray(z[2]), jnp.asarray(60.0))
    assert bool(jnp.any(before != after))
    coarse, fine = (follow_leaders(values, z[0], 16.5, 40.0, h) for h in (2e-3, 1e-3))
    error = np.abs(z[1] - fine).max()
    assert error < 2 * np.abs(coarse - fine).max() + 1e-12  # the stepping is of first order at a change of leaders
    assert error < 1e-2


def test_the_flow_map_of_changing_leaders_is_a_semigroup():
    values = np.array([1.0, 0.9])
    tokens = Euclidean(2).cube(jax.random.key(2), 10, -5.0, 5.0)
    run = flow(RescaledAttention(np.diag(values)), tokens, times=[16.5, 31.3, 60.0], record=positions, **SHARP)
    direct = flow(RescaledAttention(np.diag(values)), tokens, times=[60.0], record=positions, **SHARP)
    np.testing.assert_allclose(run["tokens"][-1], direct["tokens"][-1], rtol=0, atol=1e-9)


def test_identity_perceptron_vs_none():
    plain = RescaledAttention(FULL)
    through = RescaledAttention(FULL, perceptron=Perceptron(np.eye(2), np.eye(2), activation="linear"))
    np.testing.assert_allclose(tokens_at(through, [1.0, 2.0]), tokens_at(plain, [1.0, 2.0]), rtol=0, atol=1e-11)


def test_consensus_is_at_rest():
    z = jnp.ones((5, 2)) * 0.7
    assert np.abs(RescaledAttention(FULL).drift(z, jnp.asarray(1.3))).max() < 1e-15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((np.ones((2, 3)),)), r"`value` must have shape \(d, d\)"),
        ((np.array([[1.0, np.nan], [0.0, 1.0]]),), "`value` must be finite"),
        ((np.eye(2), np.ones((2, 3))), "`query` must match `value`"),
        ((np.eye(2), None, np.ones((4, 3))), "`key` must match `value`"),
        ((np.eye(2), None, None, -1.0), "`beta` must be a finite number ≥ 0"),
        ((np.eye(2), QUERY[:1], KEY), "`key` must have the shape of `query`"),
    ],
    ids=["not square", "nan", "query", "key", "beta", "query against key"],
)
def test_bad_weights(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        RescaledAttention(*arguments)


@pytest.mark.parametrize("tokens", [np.ones((4, 3)), np.ones(4), np.full((4, 2), np.inf)], ids=["width", "flat", "inf"])
def test_bad_tokens(tokens):
    with pytest.raises(ArgumentError, match="`tokens` must"):
        flow(RescaledAttention(np.eye(2)), tokens, until=1.0)
