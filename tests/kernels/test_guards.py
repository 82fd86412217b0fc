"""Where sums by harmonics, or shifts that nobody looked for, would be wrong, something else is chosen."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from pathlines.attention import AlibiMask, SoftmaxAttention, UnnormalisedAttention
from pathlines.integrate.forms import choose_form
from pathlines.kernels import attend
from pathlines.kernels.choice import Sums, choose_summation, error_of_isolated
from pathlines.kernels.spectral import admissible, degree, spectral_attend
from pathlines.kernels.spectral.bessel import ratio_bound, spectrum, tail
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

N = 4000


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@pytest.mark.parametrize(("angle", "method"), [(0.0, "spectral"), (0.2, "spectral"), (2.0, "fused"), (np.pi, "fused")])
def test_tokens_that_do_not_find_themselves(angle, method):
    """Q^T K = βR: a token sees itself at score β cos(angle) only, so Z may be as small as e^{-β(1-cos angle)}/n."""
    model = SelfAttention(25.0, weights=FixedWeights(np.eye(2), turned(angle), np.eye(2)))
    assert model.with_fast_sums(N, 2, "float64", 1e-9)[1].method == method


@pytest.mark.parametrize(("mass", "form"), [(1.0, "circle-fourier"), (1e-12, "tokens")])
def test_tokens_with_hardly_any_mass(mass, form):
    """An isolated token of multiplicity w has Z = w/n: rounding is divided by it."""
    angles = np.append(np.random.default_rng(0).normal(0, 0.1, N - 1), np.pi)
    tokens = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    model = SelfAttention(40.0, multiplicities=np.append(np.ones(N - 1), mass))
    assert choose_form(model, tokens, ()).form.name == form
    method = "spectral" if form == "circle-fourier" else "fused"
    assert model.with_fast_sums(N, 2, "float64", 1e-9)[1].method == method


@pytest.mark.parametrize("relative", [1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize(("d", "beta", "n"), [(2, 0.5, 60), (3, 1.0, 200), (3, 4.0, 100_000), (2, 4.0, 2000)])
def test_a_token_opposite_to_all_others_is_as_accurate_as_promised(d, beta, n, relative):
    """Z_i = m_i + (1 - m_i) e^{-2β}, the least there is: the cluster is n - 1 tokens at one place, of mass n - 1."""
    sums = Sums(SoftmaxAttention(), n, d, beta, relative=relative)
    choice = choose_summation(sums, "spectral")
    x = np.zeros((2, d))
    x[:, 0] = [1.0, -1.0]
    x = x @ np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0]
    masses = np.array([1, n - 1]) / n
    found, log_scale = spectral_attend(
        SoftmaxAttention(), *map(jnp.asarray, (x, x)), beta, jnp.asarray(masses), choice.tolerance
    )
    least = masses[0] + masses[1] * np.exp(-2 * beta)
    promised = max(relative, error_of_isolated(sums))
    assert sums.least_partition == pytest.approx(least, rel=1e-14)
    assert abs(float(log_scale[0]) - beta - np.log(least)) <= promised
    exact = (masses[0] - masses[1] * np.exp(-2 * beta)) / least * x[0]
    assert np.abs(np.asarray(found)[0] - exact).max() <= promised


@pytest.mark.parametrize(("beta", "n", "dtype"), [(700.0, 40000, "float32"), (2e4, 10**6, "float64")])
def test_degrees_that_overflow_are_not_chosen(beta, n, dtype):
    choice = choose_summation(Sums(UnnormalisedAttention(beta), n, 3, beta, dtype, relative=1e-5))
    assert choice.method != "spectral" or admissible(beta, 3, choice.tolerance, dtype)


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("beta", [0.5, 40.0, 1e4])
def test_spectrum_vs_bessel_functions(beta, d):
    """g_l = e^{-β}Γ(d/2)(2/β)^{d/2-1} I_{l+d/2-1}(β), relative to g_0; the bound on ratios lies above them."""
    cut = degree(beta, d, 1e-12)
    found = np.asarray(spectrum(jnp.asarray(beta), d, cut, degree(beta, d, 1e-17) + 8))
    with mpmath.workdps(30):
        size = lambda k: mpmath.besseli(k + mpmath.mpf(d) / 2 - 1, beta)  # noqa: E731
        first = mpmath.exp(-beta) * mpmath.gamma(mpmath.mpf(d) / 2) * (2 / mpmath.mpf(beta)) ** (mpmath.mpf(d) / 2 - 1)
        for k in {0, 1, cut // 2, cut}:
            exact = float(first * size(k))
            assert found[k] == pytest.approx(exact, rel=1e-11, abs=1e-15 * found[0])
        for k in (1, 2, cut, 2 * cut + 3):
            ratio = float(size(k) / size(k - 1))
            assert ratio * (1 - 1e-15) <= ratio_bound(beta, d, k) <= ratio * (1 + 1 / beta + 2 / k)


def test_tails_of_a_huge_beta_are_found_at_once():
    assert degree(1e8, 2, 1e-12) < 10**5
    assert tail(1e6, 2, degree(1e6, 2, 1e-12)) <= 1e-12


def causal_sums(q, k, v, masses):
    scores = np.where(np.tril(np.ones((len(q), len(k)))) > 0, q @ k.T, -np.inf) + np.log(masses)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v


@pytest.mark.parametrize("width", [2, 12])
@pytest.mark.parametrize(("dtype", "scale", "light"), [("float32", 29.0, 1e-14), ("float64", 290.0, 1e-60)])
def test_causal_rows_that_see_light_keys_only(width, dtype, scale, light):
    angles = np.array([0.0, 0.5, 0.2, 3.0])
    x = np.zeros((4, width))
    x[:, 0], x[:, 1] = np.cos(angles), np.sin(angles)
    masses = np.array([light, light, light, 1.0])
    found, _ = attend(
        SoftmaxAttention(), *(jnp.asarray(a, dtype) for a in (-scale * x, x, x, masses)), AlibiMask(strict=False)
    )
    error = 100 * scale * np.finfo(dtype).eps
    np.testing.assert_allclose(found, causal_sums(-scale * x, x, x, masses), rtol=0, atol=error)


@pytest.mark.parametrize("width", [2, 12])
def test_keys_without_mass_do_not_set_the_scale(width):
    """Scores 1000, 0 and 3; the first key has no mass."""
    k = np.zeros((3, width))
    k[:, 0] = [1000.0, 0.0, 3.0]
    q, masses = np.eye(1, width), np.array([0.0, 0.5, 0.5])
    expected = np.array([1, np.exp(3.0)]) / (1 + np.exp(3.0)) @ k[1:]
    found, _ = attend(SoftmaxAttention(), *map(jnp.asarray, (q, k, k, masses)))
    np.testing.assert_allclose(np.asarray(found)[0], expected, rtol=1e-12)
    weights, _ = SoftmaxAttention().normalise(jnp.asarray(q @ k.T), jnp.asarray(masses))
    np.testing.assert_allclose(np.asarray(weights)[0], [0, 1 / (1 + np.exp(3.0)), 1 / (1 + np.exp(-3.0))], rtol=1e-12)
