"""Attention beside a gradient perceptron: the flow, its energy, and what is observed of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import flow
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_potential import ACTIVATIONS, perceptron_potential
from pathlines.model import SelfAttention, Snapshot
from pathlines.model.metastability.perceptron_landscape import PRIMITIVES, PerceptronLandscape, neurons_in_plane
from pathlines.observable.perceptron_landscape import (
    first_variation,
    heaviest_mass,
    kkt_gap,
    landscape_energy,
    probe_lattice,
)

A = np.array([[1.0, 0.2, -0.3], [-0.4, 0.9, 0.5]])
OMEGA, BIAS = [0.8, -0.6], [0.1, -0.2]
ZERO = jnp.zeros(())


def made(activation="gelu", **options):
    return PerceptronLandscape(2.0, A, OMEGA, biases=BIAS, activation=activation, **options)


def tokens(n=7):
    return Sphere(3).sines(n)


@eqx.filter_jit
def looked(observable, model, x):
    return observable(Snapshot(model, x, ZERO, x))


def test_primitives_vs_theory_and_derivative():
    s = np.linspace(-4.03, 4.01, 33)
    found = jax.jit(lambda x: {k: (f(x), jax.vmap(jax.grad(f))(x)) for k, f in PRIMITIVES.items()})(s)
    assert set(found) == set(ACTIVATIONS)
    for name, (value, slope) in found.items():
        np.testing.assert_allclose(value, ACTIVATIONS[name].primitive(s), atol=1e-13)
        np.testing.assert_allclose(slope, 2 * ACTIVATIONS[name].value(s), atol=1e-12)


@eqx.filter_jit
def derivatives(model, x, probes):
    """Drift, energy, its gradient on the sphere, power, dF/dt along the drift, f at probes: one program a kind."""
    velocity = model.drift(x, ZERO)
    energy, gradient = jax.value_and_grad(lambda y: model.energy(model.retract(y)))(x)
    _, rate = jax.jvp(lambda y: model.energy_deficit(model.retract(y), ZERO), (x,), (velocity,))
    return velocity, energy, gradient, model.power(x, ZERO), rate, model.first_variation(probes, x)


@pytest.mark.parametrize("kernel", ["scaled", "unscaled"])
@pytest.mark.parametrize("kind", ["usa", "sa"])
@pytest.mark.parametrize(("direction", "sign"), [("ascent", 1), ("descent", -1)])
def test_flow_and_energy(kernel, kind, direction, sign):
    """Unequal masses: the power is dF/dt; USA moves m_i dx_i/dt = ±∂E/∂x_i; all as theory writes it."""
    weights, x, probes = np.arange(1.0, 8.0), tokens(), Sphere(3).sines(20)[7:]
    masses = weights / weights.sum()
    model = made(flow=direction, kernel=kernel, kind=kind, multiplicities=weights)
    velocity, energy, gradient, power, rate, f = derivatives(model, x, probes)
    assert float(power) == pytest.approx(float(rate), rel=1e-11)
    land = perceptron_landscape(perceptron_potential(A, OMEGA, BIAS, "gelu"), 2.0, kernel)
    assert float(energy) == pytest.approx(land.energy(np.asarray(x), masses), rel=1e-13)
    wanted = land.scale * land.first_variation(np.asarray(probes), np.asarray(x), masses)
    np.testing.assert_allclose(f, wanted, rtol=1e-12)
    if kind == "usa":
        np.testing.assert_allclose(masses[:, None] * velocity, sign * gradient, atol=1e-12)
        np.testing.assert_allclose(velocity, land.velocity(np.asarray(x), masses, sign), atol=1e-13)
        assert float(power) * land.scale == pytest.approx(
            sign * float(masses @ np.sum(velocity**2, axis=-1)), rel=1e-12
        )
    else:
        same = made(flow=direction, kind="sa", multiplicities=weights)
        np.testing.assert_allclose(velocity, derivatives(same, x, probes)[0], atol=1e-14)


def test_runs_certify_the_identity_and_descend():
    run = flow(made(), tokens(), times=[0.0, 1.0, 2.0, 4.0], record=(landscape_energy, kkt_gap), rtol=1e-8)
    (certificate,) = (c for c in run.certificates if c.name == "energy_identity")
    assert certificate.passed
    assert np.all(np.diff(run["landscape_energy"].values) < 0) and run["kkt_gap"].values[-1] > 0


def test_layers_point_along_the_drift():
    model, x = made(), tokens()
    after, velocity = eqx.filter_jit(lambda m, y: (m.layer(y, ZERO, 1e-6), m.drift(y, ZERO)))(model, x)
    np.testing.assert_allclose((after - x) / 1e-6, velocity, atol=1e-5)


def test_fast_sums_serve_the_perceptron_too():
    model = PerceptronLandscape(9.0, A[:, :2], OMEGA, summation="spectral")
    x = Sphere(2).uniform(jax.random.key(0), 600)
    fast, choice = model.with_fast_sums(600, 2, x.dtype, 1e-10)
    assert choice.method == "spectral"
    np.testing.assert_allclose(fast.drift(x, ZERO), model.drift(x, ZERO), atol=1e-9)
    assert float(fast.energy(x)) == pytest.approx(float(model.energy(x)), abs=1e-9)
    assert float(fast.power(x, ZERO)) == pytest.approx(float(model.power(x, ZERO)), abs=1e-9)


def test_gap_of_a_cloud_bounds_its_energy():
    """At the certified pair the gap vanishes; elsewhere E - gap is below the minimum."""
    least = -0.22814547120268
    model = neurons_in_plane(4.0)
    for angles in ([2 - 0.2127514471191, 2 + 0.2127514471191], [0.3, 3.0], [2.0, 4.0]):
        x = jnp.stack([jnp.cos(jnp.asarray(angles)), jnp.sin(jnp.asarray(angles))], axis=-1)
        energy, gap = looked(landscape_energy, model, x), looked(kkt_gap, model, x)
        assert gap >= -1e-15 and energy - gap <= least + 1e-12 <= energy + 2e-12
    exact = jnp.asarray([2 - 0.2127514471191, 2 + 0.2127514471191])
    x = jnp.stack([jnp.cos(exact), jnp.sin(exact)], axis=-1)
    assert looked(kkt_gap, model, x) < 1e-12
    assert np.ptp(looked(first_variation, model, x)) < 1e-15


@pytest.mark.parametrize("d", [2, 3, 5])
def test_probe_points_are_unit_and_spread(d):
    points = probe_lattice(d, 2000)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=0.1)


def test_heaviest_mass_on_circle_and_sphere():
    model = SelfAttention(4.0)  # arcs of length ¼
    theta = jnp.asarray([0.0, 0.2, 0.26, 3.0])
    circle = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)
    assert looked(heaviest_mass, model, circle) == 0.5
    assert looked(heaviest_mass, SelfAttention(1e-3), circle) == 1.0
    theta = jnp.asarray([0.0, 0.12, -0.12, 3.0])  # a cap of diameter ¼ around the first holds three
    sphere = jnp.stack([jnp.cos(theta), jnp.sin(theta), 0 * theta], axis=-1)
    assert looked(heaviest_mass, model, sphere) == 0.75
    with pytest.raises(FormError, match="no gradient perceptron"):
        looked(landscape_energy, model, circle)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: PerceptronLandscape(0.0, A, OMEGA), ArgumentError, "`beta` must be a finite number > 0"),
        (lambda: made(flow="sideways"), ArgumentError, "`flow` must be one of 'ascent', 'descent'"),
        (lambda: made(kind="hardmax"), ArgumentError, "`kind` must be one of"),
        (lambda: made(kernel="other"), ArgumentError, "`kernel` must be one of"),
        (lambda: made("swish"), ArgumentError, "`activation` must be one of relu"),
        (lambda: PerceptronLandscape(1.0, A, [1.0]), ArgumentError, "`strengths` must have shape"),
        (lambda: neurons_in_plane(d=1), ArgumentError, "`d` must be an integer ≥ 2"),
        (lambda: made().check(Sphere(2).sines(3)), ArgumentError, "width d = 3 of the perceptron"),
    ],
)
def test_refusals(build, error, message):
    with pytest.raises(error, match=message):
        build()
