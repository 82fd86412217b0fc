"""The perceptron landscape: certified minimisers, closed forms, primitives."""

import numpy as np
import pytest
from scipy import integrate, optimize, special

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.limit.metastability.perceptron_closed_forms import (
    HEAVIEST,
    atom_count_bound,
    greatest,
    half_rate,
    halves_last,
    linear_density,
    maximum,
    splitting,
    two_atoms,
)
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import (
    ACTIVATIONS,
    gelu_primitive_as_released,
    on_circle,
    perceptron_potential,
)
from pathlines.limit.metastability.simplex_programme import simplex_masses


def posed(beta, strengths=(1.0, -0.7), angles=(0.0, 2.0), activation="relu", kernel="scaled"):
    return perceptron_landscape(
        perceptron_potential(on_circle(list(angles)), list(strengths), activation=activation), beta, kernel
    )


def written_out(land, theta, found):
    """f, term by term."""
    x = on_circle(theta)
    inside = sum(m * np.exp(land.beta * (x @ y - 1)) for y, m in zip(found.atoms, found.masses, strict=True))
    p = land.potential
    outer = sum(w * np.maximum(x @ a, 0) ** 2 for a, w in zip(p.directions, p.strengths, strict=True))
    return land.scale / land.beta * inside + outer / 2


@pytest.mark.parametrize(
    ("beta", "delta", "energy"),
    [
        (4.0, 0.2127514471191, -0.22814547120268),
        (9.0, 0.1412358219968, -0.29584243164564),
        (25.0, 0.0845607827452, -0.33050327539243),
    ],
)
def test_two_atoms_of_the_reference(beta, delta, energy):
    land = posed(beta)
    found, closed = perceptron_minimiser(land), two_atoms(beta, 0.7)
    assert closed.delta == pytest.approx(delta, abs=1e-12) and closed.energy == pytest.approx(energy, abs=2e-14)
    np.testing.assert_allclose(found.angles, [2 - delta, 2 + delta], atol=1e-10)
    np.testing.assert_allclose(found.masses, 0.5, atol=1e-10)
    assert found.energy == pytest.approx(energy, abs=1e-13) and found.kkt_gap <= 1e-9


def test_three_atoms_of_the_reference():
    found = perceptron_minimiser(posed(1.0))
    assert found.energy == pytest.approx(0.0756843489, abs=1e-10) and found.kkt_gap <= 1e-9
    np.testing.assert_allclose(found.angles, [1.975098, 4.010539, 4.755585], atol=1e-6)
    np.testing.assert_allclose(found.masses, [0.702280, 0.014082, 0.283638], atol=1e-6)


def test_weak_weights_of_the_reference():
    found = perceptron_minimiser(posed(4.0, (0.05, -0.03)))
    assert found.energy == pytest.approx(0.0263962254, abs=1e-10) and found.kkt_gap <= 1e-9
    assert found.heaviest_mass < HEAVIEST


@pytest.mark.parametrize("beta", [1.0, 9.0])
def test_certificate_written_out(beta):
    land = posed(beta)
    found = perceptron_minimiser(land)
    theta = np.random.default_rng(0).uniform(0, 2 * np.pi, 20000)
    level = found.masses @ written_out(land, found.angles, found)
    assert level == pytest.approx(found.multiplier, abs=1e-13)
    assert level - written_out(land, theta, found).min() <= 1e-9


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("length", [1e2, 1e4])
def test_narrow_neurons_are_seen(d, length):
    """σ(|a|(cos θ - 1) + 1) acts within √(2/|a|) of its pole, where one point has E = 1/(2β) - ½ and gap 0."""
    pole = np.array([[0.6, 0.8], [0.48, 0.6, 0.64]][d - 2])
    land = perceptron_landscape(perceptron_potential([length * pole], [-1.0], [1 - length]), 4.0)
    found = perceptron_minimiser(land)
    assert found.energy == pytest.approx(1 / 8 - 0.5, abs=1e-10) and found.kkt_gap <= 1e-9
    np.testing.assert_allclose(found.atoms, [pole], atol=1e-7)
    assert greatest(perceptron_potential([length * pole], [1.0], [1 - length]))[1] == pytest.approx(1.0, abs=1e-9)


def simplex_projection(y):
    ordered = np.sort(y)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(y) + 1)
    return np.maximum(y - excess[np.flatnonzero(ordered > excess)[-1]], 0)


@pytest.mark.parametrize(("beta", "strengths"), [(1.0, (1.0, -0.7)), (4.0, (0.05, -0.03))])
def test_minimiser_vs_projected_gradient_on_a_grid(beta, strengths):
    """Accelerated projected gradient on the masses of 400 angles: above min E, by the grid and 1/k² only."""
    land = posed(beta, strengths)
    x = on_circle(2 * np.pi * np.arange(400) / 400)
    kernel, v = np.exp(beta * (x @ x.T - 1)) / beta, land.potential.value(x) / 2
    step = 1 / np.linalg.norm(kernel, 2)
    masses = ahead = np.full(400, 1 / 400)
    pace = 1.0
    for _ in range(3000):
        after = simplex_projection(ahead - step * (kernel @ ahead + v))
        faster = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        masses, ahead, pace = after, after + (pace - 1) / faster * (after - masses), faster
    excess = masses @ kernel @ masses / 2 + v @ masses - perceptron_minimiser(land).energy
    assert -1e-13 < excess < 2e-5


def test_simplex_programme_vs_enumeration():
    rng = np.random.default_rng(3)
    for _ in range(5):
        root = rng.standard_normal((6, 6))
        kernel, linear = root @ root.T, 3 * rng.standard_normal(6)
        masses = simplex_masses(kernel, linear)
        f = kernel @ masses + linear
        assert masses.sum() == pytest.approx(1) and masses.min() >= 0
        assert f.min() >= masses @ f - 1e-12


def test_kernels_differ_by_the_weight_of_the_perceptron():
    """Unscaled with ω is e^β times scaled with ω e^{-β}."""
    plain = perceptron_minimiser(posed(2.0, (1.0, -0.7), kernel="unscaled"))
    weak = perceptron_minimiser(posed(2.0, np.exp(-2.0) * np.array([1.0, -0.7])))
    assert plain.energy == pytest.approx(np.exp(2.0) * weak.energy, rel=1e-11)
    assert two_atoms(4.0, 0.7, scale=np.exp(4.0)).delta == pytest.approx(np.arccos(np.log(0.7) / 4) / 2, rel=1e-12)


def test_one_point_where_the_neuron_is_strong():
    found = perceptron_minimiser(posed(4.0, (1.0, -1.5)))
    np.testing.assert_allclose(found.angles, [2.0], atol=1e-9)
    assert found.energy == pytest.approx(two_atoms(4.0, 1.5).energy, abs=1e-13)
    assert found.heaviest_mass == 1.0 and found.rates[0] == pytest.approx(1.5)


def test_splitting_rates_are_those_of_the_hessian():
    """Two halves in one place: together they relax at c, apart at c - M."""
    land = posed(4.0, (-0.7,), (0.3,))
    rates = land.rates(on_circle([0.3, 0.3]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(rates, [-0.3, 0.7], atol=1e-12)
    (split,) = splitting(land)
    assert split.rate == pytest.approx(0.3) and split.largest == pytest.approx(0.7) and split.alone
    assert split.delta == pytest.approx(two_atoms(4.0, 0.7).delta)


@pytest.mark.parametrize(("c", "atoms"), [(0.9, 2), (0.7, 2), (0.45, 2), (0.3, 7)])
def test_halves_last_or_split_again(c, atoms):
    """The closed criterion against the curvature of f at a half; the minimiser has at least as many atoms."""
    beta = 4.0
    land, pair = posed(beta, (-c,), (0.0,)), two_atoms(beta, c)
    places = on_circle([-pair.delta, pair.delta])
    curvature = land.hessian(places[:1], places, np.array([0.5, 0.5]))[0]
    assert halves_last(beta, c) == (np.linalg.eigvalsh(curvature).max() > 1e-12) == (atoms == 2)
    (split,) = splitting(land)
    assert (split.delta is None) == split.again == (atoms > 2)
    assert len(perceptron_minimiser(land).masses) >= atoms


def test_halves_are_for_the_circle():
    (split,) = splitting(perceptron_landscape(perceptron_potential([[0.0, 0.0, 1.0]], [-0.7]), 4.0))
    assert split.delta is None and not split.again


def test_rates_vs_finite_differences():
    land, theta, masses = posed(3.0, activation="gelu"), np.array([1.7, 2.2, 4.9]), np.array([0.5, 0.3, 0.2])
    energy = lambda t: land.energy(on_circle(t), masses)  # noqa: E731
    h, steps = 1e-4, 1e-4 * np.eye(3)
    hessian = np.array(
        [
            [
                energy(theta + a + b) - energy(theta + a - b) - energy(theta - a + b) + energy(theta - a - b)
                for b in steps
            ]
            for a in steps
        ]
    ) / (4 * h * h)
    root = np.sqrt(masses)
    wanted = np.linalg.eigvalsh(hessian / root[:, None] / root[None, :])
    np.testing.assert_allclose(land.rates(on_circle(theta), masses), wanted, atol=1e-6)


def test_ring_of_one_neuron_on_the_sphere():
    """Rotation leaves a uniform ring: E(δ) = e^{-βs}I_0(βs)/(2β) - (c/2)cos²δ, s = sin²δ."""
    beta, c = 4.0, 0.7
    ring = lambda s: special.ive(0, beta * s) / (2 * beta) - c / 2 * (1 - s)  # noqa: E731
    best = optimize.minimize_scalar(ring, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    found = perceptron_minimiser(perceptron_landscape(perceptron_potential([[0.0, 0.6, 0.8]], [-c]), beta))
    assert found.energy == pytest.approx(best.fun, abs=1e-10) and found.kkt_gap <= 1e-9
    np.testing.assert_allclose(found.atoms @ [0.0, 0.6, 0.8], np.sqrt(1 - best.x), atol=1e-5)


def test_sphere_is_the_circle_when_rotated():
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    rows, strengths = np.eye(3), [1.0, -0.7, 0.4]
    first, second = (
        perceptron_minimiser(perceptron_landscape(perceptron_potential(a, strengths), 4.0))
        for a in (rows, rows @ turn.T)
    )
    assert first.energy == pytest.approx(second.energy, abs=1e-11)
    assert max(first.kkt_gap, second.kkt_gap) <= 1e-9
    np.testing.assert_allclose(np.sort(first.masses), np.sort(second.masses), atol=1e-6)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_primitives_vs_finite_differences(name):
    s, h = np.linspace(-4.03, 4.01, 41), 1e-5
    entry = ACTIVATIONS[name]
    np.testing.assert_allclose(
        (entry.primitive(s + h) - entry.primitive(s - h)) / (2 * h), 2 * entry.value(s), atol=1e-9
    )
    np.testing.assert_allclose((entry.value(s + h) - entry.value(s - h)) / (2 * h), entry.slope(s), atol=1e-9)


def test_gelu_as_released_is_off_by_the_normal_density():
    s, h = np.linspace(-3, 3, 301), 1e-5
    slope = (gelu_primitive_as_released(s + h) - gelu_primitive_as_released(s - h)) / (2 * h)
    np.testing.assert_allclose(
        slope - 2 * ACTIVATIONS["gelu"].value(s), np.exp(-s * s / 2) / np.sqrt(2 * np.pi), atol=1e-9
    )


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_first_variation_vs_its_derivatives(activation):
    """Slope and curvature along great circles, from differences."""
    potential = perceptron_potential(np.eye(3)[:2] * 1.3, [1.0, -0.7], [0.2, -0.1], activation)
    land, atoms = perceptron_landscape(potential, 3.0, "unscaled"), np.eye(3)
    masses, x, y = np.array([0.5, 0.3, 0.2]), np.array([[0.48, 0.6, 0.64]]), np.array([[0.8, 0.0, -0.6]])
    f = lambda t: land.first_variation(np.cos(t) * x + np.sin(t) * y, atoms, masses)[0]  # noqa: E731
    h = 1e-4
    assert (land.gradient(x, atoms, masses) @ y[0])[0] == pytest.approx((f(h) - f(-h)) / (2 * h), abs=1e-7)
    curved = (y @ land.hessian(x, atoms, masses)[0] @ y.T)[0, 0]
    assert curved == pytest.approx((f(h) - 2 * f(0.0) + f(-h)) / h**2, abs=1e-6)


def test_maximum_vs_a_fine_grid():
    land = posed(4.0, (0.8, 0.5, -0.3), (0.2, 1.3, 4.0), "tanh")
    theta = np.linspace(0, 2 * np.pi, 200001)
    assert greatest(land.potential)[1] == pytest.approx(land.potential.value(on_circle(theta)).max(), abs=1e-9)
    assert maximum(posed(4.0)) == pytest.approx(1 / 8 + 0.5, abs=1e-14)


def test_constant_and_count():
    assert pytest.approx(0.574192278, abs=5e-10) == HEAVIEST
    assert atom_count_bound(4.0, 0.1, 2, 1.5) == pytest.approx(2 / 0.1 * 7 * HEAVIEST)


def test_linear_density_vs_quadrature_and_minimiser():
    land = posed(4.0, (0.02, -0.014), activation="linear")
    shape, energy = linear_density(land)
    theta = 2 * np.pi * np.arange(400) / 400
    x = on_circle(theta)
    masses = (1 + np.einsum("na,ab,nb->n", x, shape, x)) / 400
    f = land.first_variation(x, x, masses)
    assert np.ptp(f) < 1e-14 and masses.min() > 0
    assert land.energy(x, masses) == pytest.approx(energy, abs=1e-15)
    found = perceptron_minimiser(land)
    assert found.energy == pytest.approx(energy, abs=1e-10) and found.kkt_gap <= 1e-9


def test_energy_of_two_atoms_vs_quadrature_of_the_work():
    """E(δ) - E(0) = -∫ force: descent from one point to the pair."""
    beta, c = 4.0, 0.7
    force = lambda t: np.exp(beta * (np.cos(2 * t) - 1)) * np.sin(2 * t) / 2 - c * np.sin(2 * t) / 2  # noqa: E731
    pair = two_atoms(beta, c)
    climbed = integrate.quad(force, 0, pair.delta, epsabs=1e-13)[0]
    assert pair.energy == pytest.approx(1 / (2 * beta) - c / 2 - climbed, abs=1e-12)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: posed(0.0), ArgumentError, "`beta` must be a finite number > 0"),
        (lambda: posed(700.0, kernel="unscaled"), ArgumentError, "≤ 600"),
        (lambda: posed(4.0, kernel="other"), ArgumentError, "`kernel` must be one of"),
        (lambda: posed(4.0, activation="swish"), UnknownNameError, "there are relu"),
        (lambda: perceptron_potential(np.eye(2), [1.0]), ArgumentError, "`strengths` must have shape"),
        (lambda: perceptron_potential([[0.0, 0.0]], [1.0]), ArgumentError, "no zero row"),
        (
            lambda: perceptron_minimiser(perceptron_landscape(perceptron_potential(np.eye(4), np.ones(4)), 1.0)),
            ArgumentError,
            "but d is 4",
        ),
        (lambda: two_atoms(1.0, 0.01), ArgumentError, "weaker neurons hold no pair"),
        (lambda: linear_density(posed(4.0)), ArgumentError, "be linear on the circle"),
        (
            lambda: linear_density(posed(4.0, (5.0, 1.0), activation="linear")),
            ArgumentError,
            r"at most 0\.\d+ times .*\[5\.0, 1\.0\]",
        ),
    ],
)
def test_refusals(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(("beta", "c"), [(4.0, 0.7), (9.0, 0.98)])
def test_tokens_of_a_half_close_at_the_curvature_of_the_first_variation(beta, c):
    land, delta = posed(beta, (-c,), (0.0,)), two_atoms(beta, c).delta
    atoms, masses, h = on_circle([delta, -delta]), np.array([0.5, 0.5]), 1e-3
    f = land.first_variation(on_circle(delta + h * np.array([-1, 0, 1])), atoms, masses)
    # h² of the difference times the fourth derivative, β² and less
    assert (f[0] - 2 * f[1] + f[2]) / h**2 == pytest.approx(half_rate(beta, c), abs=(beta * h) ** 2)
