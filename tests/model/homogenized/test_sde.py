"""The homogenized SDE: schemes against the spectral solution of the backward equation, by enumeration of all draws."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.weights import GaussianHeads, MixtureHeads, fixed_heads
from pathlines.weights.heads import Heads

HORIZON, SETTING = 0.4, {"step": 0.3, "heads": 2, "corrector": "none"}
NOISE = SETTING["step"] / SETTING["heads"]
LARGEST = 4**6


def skew_law():
    rng = np.random.default_rng(3)
    return MixtureHeads(0.7 * rng.normal(size=(2, 2, 2)), 0.7 * rng.normal(size=(2, 2, 2)), [0.2, 0.8])


def observed(first, second):
    """A smooth function of two angles."""
    return np.cos(first - second) + 0.5 * np.sin(first) * np.cos(2 * second)


def on_circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@eqx.filter_jit
def coefficients(field, x):
    """Drift and head fields at many configurations of two tokens."""
    return jax.vmap(field)(x), jax.vmap(field.fields)(x)


def backward_solution(law, start, size=72, steps=180):
    """E φ(θ_1, θ_2) at the horizon: u_t = D·∇u + (η/2H) Σ_a p_a (g_a·∇)²-part, Fourier collocation and RK4 in NumPy."""
    grid = 2 * np.pi * np.arange(size) / size
    waves = np.fft.fftfreq(size, 1 / size)

    def diff(u, axis):
        factor = 1j * waves.reshape((-1, 1) if axis == 0 else (1, -1))
        return np.fft.ifft(factor * np.fft.fft(u, axis=axis), axis=axis).real

    first, second = np.meshgrid(grid, grid, indexing="ij")
    x = on_circle(np.stack([first, second], axis=-1)).reshape(-1, 2, 2)
    turn = np.stack([-x[..., 1], x[..., 0]], axis=-1)
    drift, fields = (np.asarray(a) for a in coefficients(HomogenizedSDE(law, 1.0, **SETTING).field, x))
    chances = np.asarray(law.probabilities)
    noise = np.sum((fields - np.einsum("a,gaij->gij", chances, fields)[:, None]) * turn[:, None], axis=-1)
    drift = np.sum(drift * turn, axis=-1).T.reshape(2, size, size)
    square = NOISE / 2 * np.einsum("a,gai,gaj->ijg", chances, noise, noise).reshape(2, 2, size, size)

    def rate(u):
        slopes = [diff(u, 0), diff(u, 1)]
        second_order = sum(square[i, j] * diff(slopes[i], j) for i in range(2) for j in range(2))
        return drift[0] * slopes[0] + drift[1] * slopes[1] + second_order

    u, h = observed(first, second), HORIZON / steps
    for _ in range(steps):
        k1 = rate(u)
        k2 = rate(u + h / 2 * k1)
        k3 = rate(u + h / 2 * k2)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(u + h * k3))
    phases = [np.exp(1j * waves * angle) for angle in start]
    return float((phases[0] @ (np.fft.fft2(u) / size**2) @ phases[1]).real)


@eqx.filter_jit
def branches(model, x, heads, signs):
    """All configurations after one step with each (head, sign)."""
    step = lambda y, q, v, s: model.stepped(y, Heads(q[None], None, v[None]), s[None])  # noqa: E731
    over = jax.vmap(step, in_axes=(None, 0, 0, 0))
    return jax.vmap(over, in_axes=(0, None, None, None))(x, heads.query, heads.value, signs)


def enumerated_mean(law, start, steps, method):
    """E φ of the scheme with ``steps`` steps of one head each: all 4^steps outcomes, in arrays of one size."""
    model = HomogenizedSDE(law, 1.0, time_step=HORIZON / steps, method=method, **SETTING)
    choices = np.array([(a, s) for a in range(2) for s in (1.0, -1.0)])
    index = choices[:, 0].astype(int)
    heads, chance = Heads(law.scores[index], None, law.values[index]), np.asarray(law.probabilities)[index] / 2
    x, weight = on_circle(np.asarray(start))[None], np.ones(1)
    for _ in range(steps):
        padded = np.concatenate([x, np.repeat(x[:1], LARGEST // 4 - len(x), axis=0)])
        x = np.asarray(branches(model, padded, heads, jnp.asarray(choices[:, 1])))[: len(x)].reshape(-1, 2, 2)
        weight = (weight[:, None] * chance).ravel()
    return float(weight @ observed(*np.arctan2(x[..., 1], x[..., 0]).T))


@pytest.fixture(scope="module")
def reference():
    law, start = skew_law(), (2.0, 4.0)
    exact = backward_solution(law, start)
    assert backward_solution(law, start, 60, 150) == pytest.approx(exact, abs=3e-6)
    return law, start, exact


def test_splitting_is_closer_than_euler_without_any_sampling(reference):
    """Errors of E φ against the backward equation at δ = T/3, T/6. Euler: order one (1.7 up to terms of second order).

    Split: ε² = η/H = 0.15 and δ = 0.13, so ε²δ² + ε⁴δ is 1/24 of Euler's δ, and falls at least as fast as δ.
    """
    law, start, exact = reference
    euler, split = (
        [abs(enumerated_mean(law, start, steps, method) - exact) for steps in (3, 6)] for method in ("euler", "split")
    )
    assert euler[0] < 9e-3 and euler[0] / euler[1] > 1.7
    assert split[0] < euler[0] / 20 and split[0] / split[1] > 1.7


def test_without_noise_a_step_is_the_flow_of_the_drift():
    """One head: D has no noise, and a step of length 0.2 is the flow to the error (δ/2)⁵ of its two halves."""
    rng = np.random.default_rng(2)
    law, x = fixed_heads(*rng.normal(size=(2, 3, 3))), pl.Sphere(3).sines(4)
    model = HomogenizedSDE(law, 1.0, step=0.1, time_step=0.2)
    heads = Heads(law.scores, None, law.values)
    step = eqx.filter_jit(lambda: model.stepped(x, heads, jnp.ones(1)))()
    ode = pl.model.homogenized.HomogenizedODE(law, 1.0, step=0.1)
    flowed = pl.flow(ode, x, times=[0.2], method="dop853", rtol=1e-12)["tokens"].values[-1]
    np.testing.assert_allclose(step, flowed, atol=2e-5)


def test_signs_are_needed_for_first_order():
    """Heads v_a J on the circle, E v = 0: a token turns by arctan(√(ηδ) ε v), and θ is a Brownian motion.

    E sin θ(t) = 0 in law from θ = 0; without signs a skew v leaves E sin θ ~ δ^{1/2}.
    """
    chances, speeds = np.array([0.2, 0.8]), np.array([2.0, -0.5])
    values = speeds[:, None, None] * np.array([[0.0, -1.0], [1.0, 0.0]])
    law = MixtureHeads(values, np.zeros((2, 2, 2)), chances)
    x, found = np.array([[[1.0, 0.0]]]), {}
    for steps in (64, 256):
        model = HomogenizedSDE(law, 1.0, step=1.0, time_step=1 / steps)
        for signed, signs in ((True, (1.0, -1.0)), (False, (1.0, 1.0))):
            index = np.repeat([0, 1], 2)
            heads = Heads(law.scores[index], None, law.values[index])
            y = np.asarray(branches(model, x, heads, jnp.asarray([*signs, *signs])))[0, :, 0]
            turn = np.repeat(chances, 2) / 2 @ np.exp(1j * np.arctan2(y[:, 1], y[:, 0]))
            found[signed, steps] = turn**steps - np.exp(-0.5 * chances @ speeds**2)
    assert abs(found[True, 64].imag) < 1e-12
    assert abs(found[True, 64] / found[True, 256]) == pytest.approx(4, rel=0.1)
    assert found[False, 64].imag / found[False, 256].imag == pytest.approx(2, rel=0.1)


def test_centred_step_is_a_layer_of_a_chain():
    """With the same heads a step equals a tangent layer of M heads; τ advances by (ηδ/H) d σ_V²."""
    law, setting = GaussianHeads(5), {"step": 0.4, "heads": 3, "corrector": "none"}
    model = HomogenizedSDE(law, logit_scale=1.5, time_step=0.1, noise_heads=2, **setting)
    chain, x = model.as_chain(), pl.Sphere(5).sines(4)
    heads = Heads(*(jnp.asarray(a) for a in np.random.default_rng(1).normal(size=(3, 2, 5, 5))))
    step = 0.4 * 0.1 / 3
    assert model.clocks == pytest.approx({"tau": step, "t": 0.1})
    assert chain.parameters.layer_time == pytest.approx(step)
    look = eqx.filter_jit(lambda: (chain.attended(x, heads), model.stepped(x, heads, jnp.ones(2))))
    attended, stepped = (np.asarray(a) for a in look())
    y = x + chain.step / 2 * (attended - np.sum(x * attended, axis=-1, keepdims=True) * x)
    np.testing.assert_allclose(stepped, y / np.linalg.norm(y, axis=-1, keepdims=True), atol=1e-14)
    posed, name, _ = model.sampler_for((4, 5), True, "low-rank")
    assert name == "low-rank" and type(posed).__name__ == "LowRankSampler"
    endless = HomogenizedSDE(GaussianHeads(5, None, None, np.inf), logit_scale=1.5, step=0.4)
    assert endless.as_chain().parameters.logit_scale == pytest.approx(1.5)


def test_noise_of_a_law_with_means():
    """Cov(ξ_i, ξ_j) = σ_V² s_ij I + V̄ Cov_A(m_i, m_j) V̄ᵀ, in NumPy from the scores of the same 4·10⁴ heads; 5 s.e."""
    rng = np.random.default_rng(0)
    law = GaussianHeads(2, 0.5, None, None, rng.normal(size=(2, 2)), 0.3 * rng.normal(size=(2, 2)))
    model = HomogenizedSDE(law, 1.5, tolerance=1e-5)
    x, count = np.asarray(pl.Sphere(2).sines(2)), 40_000
    left, right = float(law.sigma_a) * rng.normal(size=(2, count, 2, 2))
    scores = np.asarray(law.mean_score) + left @ np.swapaxes(right, 1, 2)
    values = np.asarray(law.mean_value) + 0.5 * rng.normal(size=(count, 2, 2))
    draw = lambda score, value: model.noise(jnp.asarray(x), Heads(score[None], None, value[None]), jnp.ones(1))  # noqa: E731
    turn = np.stack([-x[:, 1], x[:, 0]], axis=-1)
    g = np.sum(np.asarray(jax.jit(jax.vmap(draw))(scores, values)) * turn, axis=-1)
    assert np.all(np.abs(g.mean(axis=0)) < 5 * g.std(axis=0) / np.sqrt(count))
    weights = np.exp(1.5 * (x @ np.swapaxes(scores, 1, 2)) @ x.T)
    m = weights / weights.sum(axis=-1, keepdims=True) @ x
    mean_part = np.sum((m @ np.asarray(law.mean_value).T) * turn, axis=-1)
    s = np.einsum("aie,aje->ij", m, m) / count
    expected = 0.25 * s * (turn @ turn.T) + np.cov(mean_part.T, bias=True)
    products = g[:, :, None] * g[:, None, :]
    assert np.all(np.abs(products.mean(axis=0) - expected) < 5 * products.std(axis=0) / np.sqrt(count))


def test_chain_of_steps_with_means():
    """Two steps of a law with means as a chain: unit tokens, and the first layer is a step of the drawn heads."""
    model = HomogenizedSDE(GaussianHeads(2, None, None, None, 1.0, 1.0), 1.0, noise_heads=2, tolerance=0.05)
    x, key = pl.Sphere(2).sines(3), jax.random.key(5)
    run = pl.chain(model, x, depth=2, key=key)
    assert run.forms[0].name == "direct" and list(run.data.t.values) == pytest.approx([0.0, 0.1, 0.2])
    np.testing.assert_allclose(np.linalg.norm(run["tokens"].values, axis=-1), 1, atol=1e-14)

    @jax.jit
    def first(key):
        for_heads, for_signs = jax.random.split(key)
        signs = jax.random.rademacher(for_signs, (2,), float)
        return model.stepped(x, model.chain.law.heads(for_heads, 2), signs)

    layer_key = jax.random.fold_in(jax.random.fold_in(key, 0), 1)
    np.testing.assert_allclose(run["tokens"].values[1], first(layer_key), atol=1e-14)


def test_arguments_are_checked():
    law = skew_law()
    with pytest.raises(ArgumentError, match="method"):
        HomogenizedSDE(law, 1.0, method="milstein")
    with pytest.raises(ArgumentError, match="tolerance"):
        HomogenizedSDE(law, 1.0, tolerance=0.0)
    with pytest.raises(ArgumentError, match="time_step"):
        HomogenizedSDE(law, 1.0, time_step=0.0)
    with pytest.raises(ArgumentError, match="centred"):
        HomogenizedSDE(law, 1.0).as_chain()
    for name, model in itertools.product(["homogenized-sde"], [{"value": 1.0, "d": 2}, {}]):
        assert pl.MODELS[name].build(**model).clocks["t"] == pytest.approx(0.1)
