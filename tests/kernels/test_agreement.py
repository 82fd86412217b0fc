"""Every way of summing attention against dense sums in float64: shapes, masks, masses, temperatures, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import Hardmax, Softmax, Unnormalised
from pathlines.kernels import attend
from pathlines.kernels.native import fused_attend, native_library
from pathlines.kernels.portable import in_blocks, portable_attend
from pathlines.kernels.spectral import noise_floor, spectral_attend

SHAPES = [
    (1, 1, 1, 1),
    (3, 2, 1, 2),
    (5, 7, 2, 3),
    (32, 32, 32, 32),
    (37, 41, 5, 9),
    (70, 600, 17, 33),
    (300, 513, 3, 3),
    (513, 513, 2, 2),
]
WAYS = {"native": fused_attend, "portable": portable_attend, "automatic": attend}
KINDS = {"softmax": Softmax(), "unnormalised": Unnormalised(0.7)}


def problem(shape, dtype, scale):
    n, m, p, d = shape
    rng = np.random.default_rng(sum(shape))
    masses = rng.dirichlet(np.ones(m))
    arrays = (scale * rng.standard_normal((n, p)), rng.standard_normal((m, p)), rng.standard_normal((m, d)), masses)
    return tuple(jnp.asarray(a, dtype) for a in arrays)


def dense(kind, q, k, v, masses, causal):
    """Plain NumPy."""
    q, k, v, masses = (np.asarray(a, np.float64) for a in (q, k, v, masses))
    scores = q @ k.T
    if causal:
        scores = np.where(np.arange(len(k)) <= np.arange(len(q))[:, None], scores, -np.inf)
    shift = scores.max(axis=1, keepdims=True) if isinstance(kind, Softmax) else float(kind.shift)
    weights = masses * np.exp(scores - shift)
    total = weights.sum(axis=1, keepdims=True)
    if isinstance(kind, Softmax):
        return weights / total @ v, (shift + np.log(total))[:, 0]
    return weights @ v, np.full(len(q), shift)


def ways():
    return [w for w in WAYS if w != "native" or native_library() is not None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", [w for w in ways() if w != "automatic"])
def test_values(way, shape, dtype, kind, causal):
    """Rounding of scores of size |s| changes weights by ε|s|; sums of m terms lose a few more bits."""
    arguments = problem(shape, dtype, 0.5)
    exact = dense(KINDS[kind], *arguments, causal)
    found = WAYS[way](KINDS[kind], *arguments, causal)
    size = float(np.abs(np.asarray(arguments[0]) @ np.asarray(arguments[1]).T).max())
    for ours, theirs in zip(found, exact, strict=True):
        slack = 32 * np.finfo(dtype).eps * (1 + size) * (1 + float(np.abs(theirs).max()))
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=slack)


@pytest.mark.parametrize("beta", [0.0, 1.0, 30.0, 300.0, 1000.0])
@pytest.mark.parametrize("width", [2, 3, 16])
@pytest.mark.parametrize("way", ways())
def test_temperatures_on_the_sphere(way, width, beta):
    x = np.random.default_rng(0).standard_normal((150, width))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
    masses = jnp.full(150, 1 / 150)
    found = WAYS[way](Softmax(), beta * x, x, x, masses, False)
    exact = dense(Softmax(), beta * x, x, x, masses, False)
    np.testing.assert_allclose(found[0], exact[0], atol=1e-15 * max(beta, 30))
    np.testing.assert_allclose(found[1], exact[1], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ways())
def test_gradients(way, kind, causal):
    """Forward and backward, against extrapolated central differences of the NumPy sum in a random direction."""
    arguments = problem((7, 7, 3, 3), "float64", 0.3)
    turn = problem((7, 7, 3, 3), "float64", 1.0)
    scalar = lambda *a: jnp.sum(jnp.sin(WAYS[way](KINDS[kind], *a, causal)[0]))  # noqa: E731

    def slope(h):
        moved = ([a + s * h * b for a, b in zip(arguments, turn, strict=True)] for s in (1, -1))
        ends = [np.sum(np.sin(dense(KINDS[kind], *a, causal)[0])) for a in moved]
        return (ends[0] - ends[1]) / (2 * h)

    expected = (4 * slope(5e-5) - slope(1e-4)) / 3
    _, forward = jax.jvp(scalar, arguments, turn)
    gradients = jax.grad(scalar, argnums=(0, 1, 2, 3))(*arguments)
    backward = sum(float(jnp.sum(g * b)) for g, b in zip(gradients, turn, strict=True))
    assert float(forward) == pytest.approx(expected, rel=1e-8)
    assert backward == pytest.approx(expected, rel=1e-8)


def test_blocks_change_nothing():
    arguments = problem((50, 40, 3, 3), "float64", 1.0)
    q, k, v, masses = arguments

    def rows(block, numbers):
        weights, scale = Softmax().normalise(block @ k.T, masses)
        return weights @ v, scale

    whole, parts = in_blocks(rows, q, 50), in_blocks(rows, q, 7)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_kinds_without_a_fused_form_are_served():
    q, k, v, masses = problem((9, 9, 3, 3), "float64", 1.0)
    out, _ = attend(Hardmax(), q, k, v, masses)
    np.testing.assert_allclose(out, np.asarray(v)[np.argmax(np.asarray(q @ k.T), axis=1)], atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["softmax", "scaled"])
@pytest.mark.parametrize("width", [2, 3, 5])
def test_harmonics(width, kind, causal):
    """Unit tokens, β from 0 to 1000: within twice the promised 2·tolerance/Z (the rest is rounding)."""
    rng = np.random.default_rng(width)
    x = rng.standard_normal((150, width))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
    masses = jnp.asarray(rng.dirichlet(np.ones(150)))
    for beta in (0.0, 1.0, 30.0, 1000.0) if width < 4 else (0.0, 1.5):
        attention = Softmax() if kind == "softmax" else Unnormalised(beta)
        tolerance = max(1e-13, 4 * noise_floor(beta, width, "float64"))
        found, log_scale = spectral_attend(attention, x, x, beta, masses, tolerance, causal)
        exact, exact_scale = dense(attention, beta * x, x, x, masses, causal)
        partition = np.exp(exact_scale - beta) if kind == "softmax" else np.ones(150)
        bound = 4 * tolerance / partition
        assert np.all(np.abs(np.asarray(found) - exact) <= bound[:, None])
        assert np.all(np.abs(np.asarray(log_scale) - exact_scale) <= bound)
