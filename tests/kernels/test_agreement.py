"""Every way of summing attention against dense sums in float64: shapes, masks, masses, temperatures, gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import AlibiMask, HardmaxAttention, SoftmaxAttention, UnnormalisedAttention
from pathlines.kernels import attend
from pathlines.kernels.native import fused_attend, native_library
from pathlines.kernels.portable import in_blocks, portable_attend
from pathlines.kernels.sharded import sharded_attend
from pathlines.kernels.spectral import degree, noise_floor, spectral_attend
from pathlines.kernels.spectral.attend import portable_attention

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
WAYS = {
    "native": fused_attend,
    "portable": lambda *a: portable_attend(*a[:5], masked(a[5])),
    "automatic": lambda *a: attend(*a[:5], masked(a[5])),
}
KINDS = {"softmax": SoftmaxAttention(), "unnormalised": UnnormalisedAttention(0.7)}


def masked(causal):
    return AlibiMask(strict=False, reduce="sum") if causal else None


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
    shift = scores.max(axis=1, keepdims=True) if isinstance(kind, SoftmaxAttention) else float(kind.shift)
    weights = masses * np.exp(scores - shift)
    total = weights.sum(axis=1, keepdims=True)
    if isinstance(kind, SoftmaxAttention):
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
    found = WAYS[way](SoftmaxAttention(), beta * x, x, x, masses, False)
    exact = dense(SoftmaxAttention(), beta * x, x, x, masses, False)
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
        weights, scale = SoftmaxAttention().normalise(block @ k.T, masses)
        return weights @ v, scale

    whole, parts = in_blocks(rows, q, 50), in_blocks(rows, q, 7)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_kinds_without_a_fused_form_are_served():
    q, k, v, masses = problem((9, 9, 3, 3), "float64", 1.0)
    out, _ = attend(HardmaxAttention(), q, k, v, masses)
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
        attention = SoftmaxAttention() if kind == "softmax" else UnnormalisedAttention(beta)
        tolerance = max(1e-13, 4 * noise_floor(beta, width, "float64"))
        found, log_scale = spectral_attend(attention, x, x, beta, masses, tolerance, masked(causal))
        exact, exact_scale = dense(attention, beta * x, x, x, masses, causal)
        partition = np.exp(exact_scale - beta) if kind == "softmax" else np.ones(150)
        bound = 4 * tolerance / partition
        assert np.all(np.abs(np.asarray(found) - exact) <= bound[:, None])
        assert np.all(np.abs(np.asarray(log_scale) - exact_scale) <= bound)


UNSEEN = {"nobody": np.zeros(9), "the first four rows": np.repeat([0.0, 0.2], [4, 5])}


@pytest.mark.parametrize("scale", [0.3, 400.0])
@pytest.mark.parametrize("width", [2, 3, 12])
@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("way", [*ways(), "harmonics", "portable harmonics", "ring"])
def test_rows_that_see_no_mass(way, unseen, width, scale):
    """The sum of no keys at all: zero, with -∞ for the logarithm; finite derivatives, and right ones for other rows."""
    x, masses = unit_rows(9, width), jnp.asarray(UNSEEN[unseen])
    if "harmonics" in way and (width > 3 or scale > 1):
        return
    compute = partial(seeing, way, scale=scale)
    out, log_scale = compute(x, masses)
    seen = np.cumsum(UNSEEN[unseen]) > 0
    np.testing.assert_array_equal(np.asarray(out)[~seen], 0.0)
    np.testing.assert_array_equal(np.asarray(log_scale)[~seen], -np.inf)
    if seen.any():
        exact = dense(SoftmaxAttention(), *(np.asarray(a)[seen] for a in (scale * x, x, x, masses)), True)
        np.testing.assert_allclose(np.asarray(out)[seen], exact[0], rtol=0, atol=1e-13 * max(scale, 1))
        np.testing.assert_allclose(np.asarray(log_scale)[seen], exact[1], rtol=1e-13, atol=1e-12)
    if scale < 1:
        slopes = jax.grad(lambda *a: jnp.sum(jnp.sin(compute(*a)[0])), argnums=(0, 1))(x, masses)
        assert all(bool(jnp.isfinite(s).all()) for s in slopes)


def unit_rows(n, width):
    x = np.random.default_rng(width).standard_normal((n, width))
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def seeing(way, x, masses, scale):
    """Causal softmax of x with itself."""
    if way == "ring":
        return sharded_attend(SoftmaxAttention(), scale * x, x, x, masses, jax.make_mesh((1,), ("rows",)), masked(True))
    if way == "harmonics":
        return spectral_attend(SoftmaxAttention(), x, x, scale, masses, 1e-14, masked(True))
    if way == "portable harmonics":
        beta = jnp.asarray(scale)
        return portable_attention(SoftmaxAttention(), x, x, masses, beta, degree(scale, x.shape[1], 1e-14), 30, True)
    return WAYS[way](SoftmaxAttention(), scale * x, x, x, masses, True)


@pytest.mark.parametrize("width", [3, 12])
@pytest.mark.parametrize("way", ways())
def test_derivative_in_the_mass_of_a_token_without_any(way, width):
    """∂A_i/∂m_j = e^{s_ij - c_i}(v_j - A_i)."""
    x = unit_rows(9, width)
    masses = jnp.full(9, 0.125).at[4].set(0.0)
    out, log_scale = dense(SoftmaxAttention(), 2.0 * x, x, x, masses, False)
    expected = np.exp(2.0 * np.asarray(x @ x[4]) - log_scale)[:, None] * (np.asarray(x[4]) - out)
    _, found = jax.jvp(lambda m: WAYS[way](SoftmaxAttention(), 2.0 * x, x, x, m, False)[0], (masses,), (jnp.eye(9)[4],))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("width", [1, 12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", ways())
def test_exponentials_to_the_last_digits(way, dtype, width):
    """One key and no normalisation, A_i = e^{s_i}: the score is rounded by ε/2 a few times, the rest by 4ε."""
    low, high = (-86, 87) if dtype == "float32" else (-700, 708)
    scores = np.linspace(low, high, 4001).astype(dtype)
    q = np.zeros((len(scores), width), dtype)
    q[:, 0] = scores
    key, one = np.eye(1, width, dtype=dtype), np.ones((1, width), dtype)
    found = WAYS[way](UnnormalisedAttention(0.0), *map(jnp.asarray, (q, key, one, one[0, :1])), False)[0]
    exact = np.exp(scores.astype(np.longdouble))
    error = np.abs(np.asarray(found, np.longdouble)[:, 0] / exact - 1)
    assert np.all(error <= np.finfo(dtype).eps * (4 + 2 * np.abs(scores)))
