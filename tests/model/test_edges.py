"""Edges of the models: where a plausible shortcut would be silently wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning
from pathlines.integrate.observe import Observable
from pathlines.kernels.spectral.potential import circle_modes
from pathlines.model.clustering.schemes import NGPT
from pathlines.model.metastability.circle import CircleAttention


@pytest.mark.parametrize("beta", [0.0, 1.0, 100.0, 400.0, 5000.0])
def test_circle_modes_meet_their_bound_at_any_temperature(beta):
    k = np.arange(circle_modes(beta), circle_modes(beta) + 4000)
    assert np.sum(k * ive(k, beta)) < 1e-16 * ive(0, beta)


def test_circle_form_at_low_temperature_equals_tokens():
    tokens = pl.Sphere(2).uniform(jax.random.key(0), 130)
    runs = [pl.flow(pl.SelfAttention(500.0), tokens, times=[0.5], form=f, rtol=1e-10) for f in ("auto", "tokens")]
    assert runs[0].forms[0].name == "circle-fourier"
    np.testing.assert_allclose(runs[0]["tokens"].values, runs[1]["tokens"].values, atol=1e-7)


def test_circle_attention_cannot_be_swept_over_beta():
    with pytest.raises(ArgumentError, match="sweep SelfAttention"):
        pl.ensemble(
            CircleAttention(1.0), uniform, runs=2, key=jax.random.key(0), times=[1.0], over={"beta": [1.0, 9.0]}
        )


def uniform(key):
    return pl.Sphere(2).uniform(key, 5)


def test_negative_value_never_hands_over_to_frozen_leaders():
    """d = 1, z = ±10, V = -1: z'(t) = z - z tanh(e^{-2t} z²) exactly, from two symmetric tokens."""
    from scipy.integrate import solve_ivp

    exact = solve_ivp(lambda t, z: z * (1 - np.tanh(np.exp(-2 * t) * z**2)), (0, 8), [10.0], rtol=1e-11, atol=1e-12)
    run = pl.flow(
        pl.model.clustering.RescaledAttention(-np.eye(1)), np.array([[10.0], [-10.0]]), times=[8.0], rtol=1e-10
    )
    assert run["tokens"].values[0, 0, 0] == pytest.approx(exact.y[0, -1], rel=1e-6)


def test_integrals_are_not_frozen_by_the_hard_max_phase():
    one = Observable("one", "one", "1", lambda s: jnp.ones((), s.time.dtype))
    start = pl.Euclidean(2).cube(jax.random.key(0), 12, -3, 3)
    run = pl.flow(
        pl.model.clustering.RescaledAttention(np.eye(2)), start, times=[5.0, 10.0], record="diameter", accumulate=one
    )
    np.testing.assert_allclose(run["integral_one"].values, [5.0, 10.0], rtol=1e-12)


def test_integrals_have_their_own_error_control():
    wave = Observable("wave", "wave", "cos 50t", lambda s: jnp.cos(50 * s.time))
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
    run = pl.flow(pl.SelfAttention(1.0), pair, times=[10.0], record="u_max", accumulate=wave)
    assert float(run["integral_wave"][0]) == pytest.approx(np.sin(500) / 50, abs=1e-5)


def test_coincident_tokens_stay_coincident_in_the_gram_form():
    tokens = pl.Sphere(3).normalise([[1.0, 0, 0], [1.0, 0, 0], [0.9, 0.3, 0.1], [0.8, 0.1, -0.2]])
    run = pl.flow(pl.SelfAttention(2.0), tokens, times=np.linspace(0, 60, 13), record="deficits", form="gram-deficit")
    assert run.outcome == "completed"
    assert np.all(run["deficits"].values[:, 0, 1] == 0)
    assert np.all(run["deficits"].values >= 0)


def test_piecewise_weights_switch_in_float32_too():
    value = np.stack([np.eye(3), np.diag([1.0, 2.0, -1.0])])
    model = pl.SelfAttention(1.0, weights=pl.weights.PiecewiseWeights([0.7], value))
    start = pl.Sphere(3).sines(5)
    exact = pl.flow(model, start, times=[1.4], rtol=1e-11)["tokens"].values
    single = pl.flow(model, jnp.asarray(start, "float32"), times=[1.4], method="rk4", step=0.05)["tokens"].values
    np.testing.assert_allclose(single, exact, atol=1e-4)


def test_horizon_knows_the_strength_of_the_scores():
    start = np.array([[1.0, 0.5], [-0.3, 1.0]])
    weak = pl.model.clustering.RescaledAttention(np.eye(2)).horizon(start)[0]
    strong = pl.model.clustering.RescaledAttention(np.eye(2), query=1e6 * np.eye(2)).horizon(start)[0]
    assert weak - strong == pytest.approx(np.log(1e6) / 2)


def test_beyond_the_horizon_from_the_start_stops_at_once():
    start = pl.Euclidean(2).sines(4, 1e9)
    close = np.concatenate([start, start * (1 + 1e-17)])
    with pytest.warns(PathlinesWarning, match="stopped at t = 0"):
        run = pl.flow(pl.model.clustering.RescaledAttention(np.array([[1.0, 0.3], [0.0, 0.9]])), close, times=[1.0])
    assert "stopped at t = 0" in run.outcome


def test_repulsive_pre_ln_stops_where_magnitudes_vanish():
    model = pl.model.clustering.NormalisedAttention(1.0, "pre", weights=pl.weights.IdentityWeights(-1.0))
    with pytest.warns(PathlinesWarning, match=r"diverged at t = (0\.99|1)"):
        run = pl.flow(model, np.array([[1.0, 0.0]]), times=[0.5, 2.0], record="magnitude")
    assert len(run.time) == 1


def test_vanishing_attention_moves_nothing():
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
    for scheme in ("peri", NGPT(1.0)):
        model = pl.model.clustering.NormalisedAttention(0.0, scheme)
        np.testing.assert_allclose(pl.flow(model, pair, times=[3.0])["tokens"].values[0], pair, atol=1e-12)
        np.testing.assert_allclose(pl.layers(model, pair, depth=3, step=0.5)["tokens"].values[-1], pair, atol=1e-12)


def test_zero_value_is_a_frozen_flow_with_a_passing_certificate():
    run = pl.flow(pl.SelfAttention(2.0, weights=pl.weights.IdentityWeights(0.0)), pl.Sphere(3).sines(4), times=[1.0])
    assert run.certificate("energy_identity").passed


def test_hard_max_does_not_claim_an_energy_identity():
    assert "hard-max" in pl.SelfAttention(2.0, attention=pl.attention.HardmaxAttention()).energy_identity()


@pytest.mark.parametrize("name", ["energy", "overlaps", "mean_overlap", "energy_fraction", "pair_histogram"])
def test_sphere_observables_refuse_euclidean_tokens(name):
    with pytest.raises(FormError, match=r"unit tokens"):
        pl.flow(pl.SelfAttention(1.0, space="euclidean"), pl.Euclidean(2).sines(4), times=[0.1], record=name)


def test_one_token():
    names, token = ["u_mean", "p_clustered", "pair_histogram", "cluster_count"], np.array([[1.0, 0.0, 0.0]])
    run = pl.flow(pl.SelfAttention(2.0), token, times=[1.0], record=names)
    assert all(np.all(np.isfinite(run[n].values)) for n in names)
    assert run["cluster_count"].values[-1] == 1
    with pytest.raises(FormError, match="at least two tokens"):
        pl.flow(pl.SelfAttention(2.0), token, times=[1.0], record="mean_overlap")


def test_mode_mass_uses_eigenvectors_under_a_scheme_and_refuses_general_values():
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, -1.0]])
    model = pl.model.clustering.NormalisedAttention(1.0, "pre", weights=pl.weights.FixedWeights(matrix, query=matrix))
    start = pl.Sphere(3).sines(5)
    mass = pl.flow(model, start, times=[0.0, 0.1], record="mode_mass")["mode_mass"].values[0]
    np.testing.assert_allclose(mass, np.mean((np.asarray(start) @ np.linalg.eigh(matrix)[1]) ** 2, axis=0), rtol=1e-12)
    with pytest.raises(FormError, match="symmetric"):
        skew = pl.SelfAttention(1.0, weights=pl.weights.FixedWeights(np.triu(matrix)))
        pl.flow(skew, start, times=[0.1], record="mode_mass")


def test_phase_diagram_refuses_thresholds_below_rounding():
    with pytest.raises(ArgumentError, match="delta"):
        pl.phase_diagram(3, [1.0], [0.0, 1.0], 2, delta=1e-7)
    with pytest.raises(ArgumentError, match="betas"):
        pl.phase_diagram(3, [-1.0], [0.0, 1.0], 2)
