"""Gaussian closures in factor form against covariance form, quadrature and invariances; Jacobi rotations."""

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.integrate import flow, layers
from pathlines.integrate.rosenbrock import gauss_jordan
from pathlines.limit.gaussian.moments import affine_field, head
from pathlines.model import MODELS
from pathlines.model.gaussian.closure import Cloud, SoftmaxGaussian, closure_kinds, gaussian_closure, sigma_points
from pathlines.model.gaussian.examples import EXAMPLES
from pathlines.model.gaussian.moments import SigmoidGaussian, UnnormalisedGaussian, smoothed_sigmoid
from pathlines.model.gaussian.normalised import L2Gaussian, SinkhornGaussian
from pathlines.numerics.jacobi import COUPLING, RESOLVENT, damped, orthogonal_rows

RNG = np.random.default_rng(5)
D = 3
V, Q, K, W = RNG.standard_normal((4, D, D)) * 0.6
MEAN = np.array([0.3, -0.2, 0.1])
L = RNG.standard_normal((D, D)) * 0.7
COV = L @ L.T
ZERO = jnp.zeros(())
EXACT = {"softmax": {}, "l2": {}, "sinkhorn": {"eps": 0.7, "prefactor": "1"}, "linear": {}, "affine": {}}


def drift(model, mean, factor):
    out = model.drift(Cloud(jnp.asarray(mean), jnp.asarray(factor)), ZERO)
    return np.asarray(out.mean), np.asarray(out.factor)


@pytest.mark.parametrize("kind", EXACT)
def test_factor_form_vs_covariance_form(kind):
    """One head and two, full rank and rank one, and a factor with more columns than rows."""
    heads = [head(V, query=Q, key=K), head(W, query=K, key=V)]
    options = {"eps": 0.7} if kind == "sinkhorn" else {}
    model = gaussian_closure(kind, np.stack([V, W]), np.stack([Q, K]), np.stack([K, V]), **EXACT[kind])
    wide = np.concatenate([L, 0.3 * W], axis=1)
    for factor in (L, L[:, :1], wide):
        c, B = affine_field(kind, heads, MEAN, factor @ factor.T, **options)
        mean, moving = drift(model, MEAN, factor)
        np.testing.assert_allclose(mean, c + B @ MEAN, atol=1e-12)
        half = B @ factor @ factor.T
        np.testing.assert_allclose(moving @ factor.T, half, atol=1e-12)


@pytest.mark.parametrize("kind", ["softmax", "l2", "sinkhorn"])
def test_change_of_basis_and_of_value(kind):
    """x → Tx moves (C, A, L) to (TCT⁻¹, T⁻ᵀAT⁻¹, TL); C → cC runs c times faster."""
    T = np.eye(D) + 0.3 * W
    back = np.linalg.inv(T)
    one, other = gaussian_closure(kind, V, Q, K), gaussian_closure(kind, T @ V @ back, Q @ back, K @ back)
    mean, moving = drift(one, MEAN, L)
    turned_mean, turned = drift(other, T @ MEAN, T @ L)
    np.testing.assert_allclose(turned, T @ moving, atol=1e-12)
    np.testing.assert_allclose(turned_mean, T @ mean, atol=1e-12)
    np.testing.assert_allclose(drift(gaussian_closure(kind, 2.5 * V, Q, K), MEAN, L)[1], 2.5 * moving, atol=1e-12)


def test_initial_moments_and_sigma_points():
    model = SoftmaxGaussian(V, Q)
    points = sigma_points(MEAN, COV)
    assert points.shape == (2 * D, D)
    for tokens in (points, RNG.standard_normal((7, D)), RNG.standard_normal((2, D))):
        cloud = model.initial(jnp.asarray(tokens))
        centred = tokens - tokens.mean(axis=0)
        np.testing.assert_allclose(cloud.mean, tokens.mean(axis=0), atol=1e-14)
        np.testing.assert_allclose(cloud.factor @ cloud.factor.T, centred.T @ centred / len(tokens), atol=1e-13)
    shown = np.asarray(model.tokens(model.initial(jnp.asarray(points)), ZERO))
    np.testing.assert_allclose(np.cov(shown.T, bias=True), COV, atol=1e-13)
    assert sigma_points(MEAN, np.outer(MEAN, MEAN)).shape == (2, D)


def test_layer_is_the_network_map():
    model = SoftmaxGaussian(V, Q)
    run = layers(model, sigma_points(MEAN, COV), depth=1, step=0.1, record=("covariance", "cloud_mean"))
    push = np.eye(D) + 0.1 * V @ COV @ Q
    np.testing.assert_allclose(run["covariance"].values[-1], push @ COV @ push.T, atol=1e-12)
    np.testing.assert_allclose(run["cloud_mean"].values[-1], push @ MEAN + 0.1 * V @ MEAN, atol=1e-12)


def test_reference_values_of_the_published_starts():
    """Softmax from I/2 at t = 10, convergence to zero."""
    run = flow(EXAMPLES["zero"].model(), sigma_points([0, 0], np.eye(2) / 2), times=[10.0], record="covariance",
               method="dop853", rtol=1e-11)  # fmt: skip
    found = run["covariance"].values[-1][[0, 0, 1], [0, 1, 1]]
    np.testing.assert_allclose(found, [0.2063689908, -0.1727934374, 0.2914330513], atol=1e-9)


def test_moment_closures_vs_quadrature():
    """EΓ and E[Γ(X-α)ᵀ] of d = 1 by brute-force trapezoid sums over both tokens."""
    z = np.linspace(-9, 9, 721)
    w = np.exp(-(z**2) / 2)
    w /= w.sum()
    mean, sigma, v = 0.4, 0.9, 0.7
    x = mean + sigma * z
    for model, a, kernel in (
        (SigmoidGaussian([[v]], [[1.5]], bias=-0.3), 1.5, lambda s: 1 / (1 + np.exp(-s + 0.3))),
        (UnnormalisedGaussian([[v]], [[0.4]]), 0.4, np.exp),
    ):
        weights = kernel(a * np.outer(x, x))
        y = weights @ (w * x)
        out_mean, out_factor = drift(model, [mean], [[sigma]])
        assert out_mean[0] == pytest.approx(v * w @ y, rel=1e-9)
        assert out_factor[0, 0] == pytest.approx(v * w @ (y * z), rel=1e-9)
        defect = 1 - ((w @ y) ** 2 + (w @ (y * z)) ** 2) / (w @ y**2)
        found = model.defect(Cloud(jnp.array([mean]), jnp.array([[sigma]])))
        assert float(found) == pytest.approx(defect, rel=1e-6)


def test_sigmoid_closure_vs_reference_value():
    """v = 1, a = 1.5, b = 0 from N(0.4, 1) at T = 1: RK4 with double trapezoid sums of 361 nodes in NumPy."""
    record = ("cloud_mean", "covariance_trace", "closure_defect")
    model, start = SigmoidGaussian([[1.0]], [[1.5]]), sigma_points([0.4], [[1.0]])
    run = flow(model, start, times=[1.0], method="dop853", rtol=1e-10, record=record)
    assert float(run["cloud_mean"].values[-1, 0]) == pytest.approx(0.863308876, abs=1e-8)
    assert float(run["covariance_trace"].values[-1]) == pytest.approx(1.654730722, abs=1e-8)
    assert 0 < float(run["closure_defect"].values[-1]) < 0.1


def test_smoothed_sigmoid_vs_scipy():
    """Adaptive quadrature with breaks where either factor turns over, for √v from 0.03 to 1000."""
    pairs = [(m, v**0.5) for v in (1e-3, 0.5, 15.9, 16.1, 400.0, 1e6) for m in (0.0, -1.3, 7.0)]
    found = smoothed_sigmoid(*jnp.asarray(pairs).T)
    for (m, root), *got in zip(pairs, *found, strict=True):
        for f, value in zip((expit, lambda u: expit(u) * expit(-u)), got, strict=True):
            breaks = sorted({-9.0, 9.0, *np.clip((np.array([-40, -5, 0, 5, 40]) - m) / root, -9, 9)})
            density = lambda z, f=f, m=m, root=root: f(m + root * z) * np.exp(-z * z / 2)  # noqa: E731
            exact = sum(quad(density, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in pairwise(breaks))
            assert float(value) == pytest.approx(exact / np.sqrt(2 * np.pi), abs=1e-12)


def test_smoothed_sigmoid_references():
    """Φ_0 and Φ_1 at (m, v), to thirteen digits."""
    found = smoothed_sigmoid(jnp.array([0.3, 1.0, -2.0]), jnp.sqrt(jnp.array([0.5, 9.0, 40.0])))
    np.testing.assert_allclose(found[0], [0.5670132720065, 0.6132473945292, 0.3804822748605], atol=1e-13)
    np.testing.assert_allclose(found[1], [0.2209008651225, 0.1101069526484, 0.0579352750094], atol=1e-13)


def test_sigmoid_closure_with_strong_scores():
    """A fine double sum at a = 100; at a → ∞ the weights are 1{xy > 0}, whose moments are those of half lines."""
    z = np.linspace(-8, 8, 6001)
    w = np.exp(-(z**2) / 2)
    w /= w.sum()
    x = 0.4 + z
    y = expit(100 * np.outer(x, x)) @ (w * x)
    mean, factor = drift(SigmoidGaussian([[1.0]], [[100.0]]), [0.4], [[1.0]])
    np.testing.assert_allclose([mean[0], factor[0, 0]], [w @ y, (w * z) @ y], atol=1e-8)
    share, density = 0.5 * (1 + math.erf(0.4 / np.sqrt(2))), np.exp(-0.08) / np.sqrt(2 * np.pi)
    right, left = 0.4 * share + density, 0.4 * (1 - share) - density  # E[Y; Y > 0] and E[Y; Y < 0]
    mean, factor = drift(SigmoidGaussian([[1.0]], [[1e7]]), [0.4], [[1.0]])
    exact = [right * share + left * (1 - share), density * (right - left)]
    np.testing.assert_allclose([mean[0], factor[0, 0]], exact, atol=1e-6)
    # centred isotropic cloud in the plane: E[y | x] = x/(|x|√(2π)) at a → ∞, so that E[y zᵀ] = I E|z|/(2√(2π)) = I/4
    steep = SigmoidGaussian(np.eye(2), 1e5 * np.eye(2))
    np.testing.assert_allclose(drift(steep, np.zeros(2), np.eye(2))[1], np.eye(2) / 4, atol=1e-6)


def test_unnormalised_stops_where_its_moments_end():
    with pytest.warns(UserWarning, match="left the model's domain"):
        run = flow(UnnormalisedGaussian([[1.0]], [[0.5]]), sigma_points([0.0], [[1.0]]), until=20.0, record="theta")
    assert run.outcome.startswith("diverged") and run["theta"].values[-1] < 1


def test_jacobi_rotations_vs_numpy():
    for shape in ((1, 3), (2, 2), (3, 5), (5, 3), (6, 6)):
        M = RNG.standard_normal(shape)
        U, N = orthogonal_rows(jnp.asarray(M))
        np.testing.assert_allclose(U @ U.T, np.eye(shape[0]), atol=1e-14)
        np.testing.assert_allclose(U @ N, M, atol=1e-13)
        gram = np.asarray(N @ N.T)
        np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-13)
    graded = np.diag([1e8, 1.0, 1e-8]) @ RNG.standard_normal((3, 3))
    sizes = np.linalg.norm(np.asarray(orthogonal_rows(jnp.asarray(graded))[1]), axis=1)
    exact = np.linalg.svd(graded / np.array([[1e8], [1.0], [1e-8]]))[1]
    assert np.sort(sizes)[0] / np.sort(sizes)[-1] < 1e-15 and len(exact) == 3


@pytest.mark.parametrize(
    ("f", "scalar"), [(RESOLVENT, lambda x: 1 / (1 + 2 * x)), (COUPLING, lambda x: 2 / (1 + np.sqrt(1 + 4 * x)))]
)
def test_damped_products_and_their_derivative(f, scalar):
    M, E = RNG.standard_normal((2, 3, 4))
    values, vectors = np.linalg.eigh(M @ M.T)
    exact = (vectors * scalar(values)) @ vectors.T
    whole, product = damped(f, jnp.asarray(M))
    np.testing.assert_allclose(whole, exact, atol=1e-13)
    np.testing.assert_allclose(product, exact @ M, atol=1e-13)
    _, change = jax.jvp(lambda x: damped(f, x), (jnp.asarray(M),), (jnp.asarray(E),))
    h = 1e-6
    ahead, behind = (damped(f, jnp.asarray(M + s * h * E)) for s in (1, -1))
    for got, a, b in zip(change, ahead, behind, strict=True):
        np.testing.assert_allclose(got, (np.asarray(a) - np.asarray(b)) / (2 * h), atol=1e-8)


def test_gauss_jordan_vs_numpy():
    M = RNG.standard_normal((6, 7, 7))
    M[0, 0, 0] = 0.0
    found = jax.vmap(gauss_jordan)(jnp.asarray(M))
    np.testing.assert_allclose(found, np.linalg.inv(M), rtol=1e-9, atol=1e-10)


def test_errors_say_what_is_allowed():
    with pytest.raises(UnknownNameError, match="exact ones exist for affine, l2, linear, sinkhorn, softmax; moment"):
        gaussian_closure("hardmax", V, Q, K)
    with pytest.raises(ArgumentError, match="eps"):
        SinkhornGaussian(V, Q, eps=0.0)
    with pytest.raises(ArgumentError, match="'1/eps' or '1'"):
        SinkhornGaussian(V, Q, prefactor="2")
    with pytest.raises(ArgumentError, match="square"):
        SoftmaxGaussian(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="match `value`"):
        L2Gaussian(np.eye(2), np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ArgumentError, match="eigenvalue -1"):
        sigma_points([0, 0], np.diag([1.0, -1.0]))
    with pytest.raises(ArgumentError, match="rank ≤ 2"):
        SigmoidGaussian(np.eye(4)).initial(jnp.eye(4)) and drift(SigmoidGaussian(np.eye(4)), np.zeros(4), np.eye(4))
    assert closure_kinds()["softmax"] and not closure_kinds()["sigmoid"]


@pytest.mark.parametrize("name", [n for n in MODELS if n.startswith("gaussian-")])
def test_registered_models_build_and_move(name):
    model = MODELS[name].build(d=2)
    state = model.initial(jnp.asarray(sigma_points([0.1, 0.0], 0.5 * np.eye(2))))
    assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(model.drift(state, ZERO)))


def test_options_of_other_kinds_are_refused():
    with pytest.raises(ArgumentError, match="`softmax` has no option `eps`"):
        gaussian_closure("softmax", V, Q, eps=0.5)
