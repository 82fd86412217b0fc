"""Parts of the Gram map against draws, closed forms and the other implementations of the package."""

import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.branch import Sensitivity, added, mean_cosine, noise, stream_of, width_correction
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.perceptron import _TABULATED, _kernel, perceptron_gram
from pathlines.limit.architecture.sampled import sampled_heads
from pathlines.limit.homogenized.attended import sampled_attention, small_b_attention
from pathlines.limit.homogenized.gram import gram_layer
from pathlines.limit.homogenized.perceptron_kernel import perceptron_kernel


def gram(n, seed=0, common=0.5):
    x = np.random.default_rng(seed).standard_normal((n, 8)) + common
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def heads(b=0.3, p=16, **changes):
    """An architecture of logit scale b."""
    size = np.sqrt(b / 64)
    fields = {"width": 64, "heads": 64 // p, "layers": 1, "mask": "full", "positions": "none", **changes}
    return Architecture(**fields, deviations=Deviations.equal(0.1, query=size, key=size))


def test_expansion_without_mask_is_the_homogenized_one():
    k = gram(6)
    np.testing.assert_allclose(AttendedGram(heads(0.4), 6)(k), small_b_attention(k, 0.4), atol=1e-14)


@pytest.mark.parametrize("changes", [{"mask": "causal"}, {"mask": "causal", "window": 3}, {"positions": "alibi"}])
def test_expansion_vs_draws_in_order_of_b(changes):
    """The error is O(b⁴): 16 times smaller at half the scale, on the same draws."""
    k = gram(5, 1)
    errors = []
    for b in (0.6, 0.3):
        a = heads(b, p=64, **changes)
        attended = AttendedGram(a, 5)
        drawn = np.mean([sampled_heads(a, k, attended.bias, seed).gram for seed in range(60)], axis=0)
        errors.append(np.max(np.abs(drawn - attended(k))))
    assert errors[0] < 0.02 and errors[1] < 0.25 * errors[0]


def test_drawn_heads_vs_homogenized_sampler():
    k = gram(6, 2)
    a = heads(2.0, mask="causal")
    drawn = np.array([sampled_heads(a, k, AttendedGram(a, 6).bias, seed).gram for seed in range(40)])
    other = sampled_attention(k, 2.0, p=16, samples=4096, causal=True)
    error = np.hypot(drawn.std(axis=0) / np.sqrt(40), other.error)
    assert np.all(np.abs(drawn.mean(axis=0) - other.mean) < 5 * error + 1e-12)


@pytest.mark.parametrize("changes", [{}, {"rope_fraction": 0.5, "mask": "causal"}])
def test_spread_of_rotated_logits(changes):
    """Variance of logits within rows over drawn heads: rotations make equal keys differ. Five standard errors."""
    n, p, b = 12, 16, 0.4
    a, k = heads(b, p, **{"positions": "rope", **changes}), gram(12, 9, common=2.0)
    rng, root, half = np.random.default_rng(4), np.linalg.cholesky(k + 1e-9 * np.eye(n)), int(p * a.rope_fraction) // 2
    turn = np.exp(1j * np.arange(n)[:, None] * 10_000.0 ** (-np.arange(half) / half))
    found = []
    for _ in range(600):
        q, key = (root @ rng.standard_normal((n, p)) for _ in range(2))
        first, second = ((y[:, :half] + 1j * y[:, half : 2 * half]) * turn for y in (q, key))
        logits = b / np.sqrt(p) * ((first @ second.conj().T).real + q[:, 2 * half :] @ key[:, 2 * half :].T)
        seen = np.tri(n, dtype=bool) if a.mask == "causal" else np.ones((n, n), dtype=bool)
        found.append([np.var(row[shown]) for row, shown in zip(logits, seen, strict=True)])
    error = np.std(found, axis=0) / np.sqrt(len(found))
    want = AttendedGram(a, n).logit_variance(k)
    assert np.all(np.abs(np.mean(found, axis=0) - want) <= 5 * error + 1e-15)
    assert want[-1] > 1.2 * AttendedGram(a.changed(positions="none"), n).logit_variance(k)[-1]


def test_width_correction_in_its_limits():
    """Small branches: the factors of ``gram_layer``. No stream: 1-(1-ρ²)/2d. Any: the mean over Gaussian draws."""
    k, d = gram(4, 3), 50.0
    s = gram(4, 4)
    small = 1e-6 * s
    exact = gram_layer(k, small, 1.0, d).gram - gram_layer(k, small, 1.0).gram
    np.testing.assert_allclose(width_correction(k, small, d, np.inf), exact, atol=1e-11)
    alone = width_correction(1e-12 * k, s, d, np.inf)
    np.testing.assert_allclose(alone, -s * (1 - s * s) / (2 * d), atol=1e-9)
    rng, root, before = np.random.default_rng(0), np.linalg.cholesky(s + 1e-12 * np.eye(4)), 0.7
    fixed = np.linalg.cholesky(k + 1e-12 * np.eye(4)) @ np.linalg.qr(rng.standard_normal((40, 4)))[0].T * np.sqrt(40)
    y = np.sqrt(before) * fixed + root @ rng.standard_normal((40_000, 4, 40))
    y /= np.linalg.norm(y, axis=2, keepdims=True)
    mean = np.einsum("sik,sjk->ij", y, y, optimize=True) / 40_000
    plain = added(stream_of(before * k), s).cosines
    change = width_correction(before * k, s, 40, np.inf)
    np.testing.assert_allclose(mean - plain, change, atol=3.5e-3)


def test_noise_vs_draws():
    """Standard deviation of the mean cosine after one branch of two matrices, over draws."""
    n, d, inner = 5, 60, 30
    rng, k, s = np.random.default_rng(1), gram(5, 5), gram(5, 6)
    fixed = np.linalg.cholesky(k + 1e-12 * np.eye(n)) @ np.linalg.qr(rng.standard_normal((d, n)))[0].T * np.sqrt(d)
    root = np.linalg.cholesky(s + 1e-12 * np.eye(n))
    values = []
    for _ in range(2000):
        y = fixed + root @ rng.standard_normal((n, inner)) @ rng.standard_normal((inner, d)) / np.sqrt(inner)
        y /= np.linalg.norm(y, axis=1, keepdims=True)
        values.append(mean_cosine(y @ y.T))
    after = added(stream_of(k), s)
    u = Sensitivity(after)
    predicted = np.sqrt(sum(u.of(m) ** 2 for m in noise(after, k, s, d, inner)))
    assert predicted == pytest.approx(np.std(values), rel=0.1)


def test_branch_with_its_own_norm_vs_draws():
    """Lengths are fixed, directions fluctuate: mean cosines to 3.5 errors and second order, and their spread."""
    n, d, inner, draws = 5, 60, 40, 4000
    rng, k, s = np.random.default_rng(2), gram(5, 5), gram(5, 6)
    fixed = np.linalg.cholesky(k + 1e-12 * np.eye(n)) @ np.linalg.qr(rng.standard_normal((d, n)))[0].T * np.sqrt(d)
    f = rng.standard_normal((draws, n, inner)) @ rng.standard_normal((draws, inner, d))
    f = np.linalg.cholesky(s + 1e-12 * np.eye(n)) @ f
    y = fixed + f * np.sqrt(d) / np.linalg.norm(f, axis=2, keepdims=True)
    y /= np.linalg.norm(y, axis=2, keepdims=True)
    cosines = y @ y.transpose(0, 2, 1)
    after = added(stream_of(k), s)
    change = np.mean(cosines, axis=0) - after.cosines
    error = np.std(cosines, axis=0) / np.sqrt(draws)
    assert np.all(np.abs(change - width_correction(k, s, d, inner, normed=True)) < 3.5 * error + 1.5e-3)
    u = Sensitivity(after)
    predicted = np.sqrt(sum(u.of(m) ** 2 for m in noise(after, k, s, d, inner, normed=True)))
    assert predicted == pytest.approx(np.std([mean_cosine(c) for c in cosines]), rel=0.1)


def test_perceptron_gram():
    x = 0.9 * gram(5, 7)
    plain = Architecture(width=64, heads=4, layers=1, mlp_width=128, deviations=Deviations.equal(0.1, mlp_gate=0.0))
    sigma = np.sqrt(64 * 0.9) * 0.1
    kernel = perceptron_kernel(np.minimum(x / 0.9, 1.0), "gelu", sigma)
    np.testing.assert_allclose(perceptron_gram(plain, x).gram, kernel, rtol=1e-8)
    assert perceptron_gram(plain, x).bias == pytest.approx(float(perceptron_kernel(0.0, "gelu", sigma)))
    gated = Architecture(
        width=64, heads=4, layers=1, mlp_width=128, activation="silu", gated=True, deviations=Deviations.equal(0.1)
    )
    rng, root = np.random.default_rng(2), np.linalg.cholesky(0.64 * x)
    g, u = (root @ rng.standard_normal((5, 400_000)) for _ in range(2))
    y = g / (1 + np.exp(-g)) * u
    found = perceptron_gram(gated, x)
    np.testing.assert_allclose(found.gram, y @ y.T / 400_000, atol=1.5e-3)
    assert found.bias == 0


@pytest.mark.parametrize(("activation", "error"), [("silu", 6e-4), ("tanh", 3e-3)])
def test_kernels_of_large_inputs(activation, error):
    """Beyond σ_w = 8 closed kernels of the same shape stand in for quadrature; the errors are largest at ρ = 1."""
    rho = np.array([-1.0, -0.6, 0.0, 0.3, 0.95, 1.0])
    exact = perceptron_kernel(rho, _TABULATED[activation], 8.01)
    np.testing.assert_allclose(_kernel(activation, rho, 8.01), exact, atol=error * exact.max())


def test_unequal_lengths_keep_their_mean_squares():
    x = np.diag([1.0, 0.5, 2.0])
    a = Architecture(width=64, heads=4, layers=1, mlp_width=8, activation="silu", deviations=Deviations.equal(0.1))
    top = [float(perceptron_gram(a, np.eye(2) * q).gram[0, 0]) for q in (1.0, 0.5, 2.0)]
    np.testing.assert_allclose(np.diag(perceptron_gram(a, x).gram), top, rtol=1e-6)


def test_numbers():
    a = heads(0.3)
    assert Numbers.of(a).b == pytest.approx(0.3)
    assert Numbers.of(a.changed(qk_norm=True)).b == pytest.approx(1.0)
    assert Numbers.of(a.changed(qk_norm=True, logit_cap=0.1)).b == pytest.approx(0.0959, abs=1e-4)
