"""The influence of positions at initialisation against explicit sums, and against derivatives of random models."""

import jax
import numpy as np
import pytest

from pathlines.architecture import Architecture, Deviations
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.dependence import dependence
from pathlines.limit.architecture.attention import _expanded
from pathlines.limit.architecture.influence import _heard, position_influence
from pathlines.limit.causal.rivals import cesaro_matrix


def decoder(width=64, std=0.05, **others):
    settled = {"mlp_width": 2 * width, "activation": "silu", "gated": True, "norm": "rms", "positions": "rope"}
    return Architecture(width=width, heads=4, layers=3, deviations=Deviations.equal(std), **{**settled, **others})


def explicit(d, rows, w, b):
    """E[ΠDΠᵀ] + b²(X ∘ cov(D) + D ∘ cov(X)), the covariances from vectors x_k - x̄_i."""
    x = rows @ rows.T
    apart = rows[None] - (w @ rows)[:, None]
    products = np.einsum("ika,jla->ijkl", apart, apart)
    cov = [np.einsum("ik,jl,kl,ijkl->ij", w, w, y, products) for y in (d, x)]
    return _expanded(d, x, x, x, w, b) + b * b * (x * cov[0] + d * cov[1])


def test_adjoint_vs_explicit_sums():
    rng, n = np.random.default_rng(0), 5
    rows, w = rng.standard_normal((n, 7)) / np.sqrt(7), cesaro_matrix(n)
    x = rows @ rows.T
    d, m = (y @ y.T for y in rng.standard_normal((2, n, 3)))
    assert np.sum(_heard(m, x, w, 0.4) * d) == pytest.approx(np.sum(m * explicit(d, rows, w, 0.4)), rel=1e-12)
    assert np.sum(_heard(m, x, w, 0.0) * d) == pytest.approx(np.sum(m * (w @ d @ w.T)), rel=1e-12)


CASES = {
    "llama": {},
    "window": {"window": 4},
    "parallel": {"placement": "parallel", "activation": "gelu", "gated": False, "norm": "layer"},
    "post": {"placement": "post", "activation": "relu", "gated": False, "norm": "layer"},
    "sandwich": {"placement": "sandwich", "activation": "gelu", "attention_residual": 0.3, "mlp_residual": 0.3},
    "alibi": {"positions": "alibi", "mlp_width": 0},
}


@pytest.mark.parametrize("case", CASES)
def test_theory_vs_derivatives_of_random_models(case):
    """Root mean squares within five standard errors and what finite width adds (k² /2d with k ≈ 2 branches: 3 %)."""
    architecture = decoder(**CASES[case])
    seen = dependence(architecture, np.arange(10), key=jax.random.key(5), runs=192, directions=1)
    found = position_influence(architecture, 10)
    assert found.trusted
    root = np.sqrt(seen.mean(axis=0))
    error = seen.std(axis=0) / np.sqrt(len(seen)) / (2 * root)
    assert np.all(np.abs(root - np.sqrt(found.squared)) < 5 * error + 0.03 * root)
    assert np.median(error / root) < 0.03


def test_estimate_is_exact_with_all_directions():
    """One direction scatters about the norm that a whole frame of them gives, run by run."""
    architecture = decoder(width=16, std=0.1, mlp_width=0).changed(layers=1)
    one = dependence(architecture, np.arange(4), key=jax.random.key(0), runs=64, directions=16)
    few = dependence(architecture, np.arange(4), key=jax.random.key(0), runs=64, directions=1)
    ratio = few / one  # the same runs: weights and embeddings do not depend on the directions
    assert abs(ratio.mean(axis=0) - 1).max() < 5 * (ratio.std(axis=0) / 8).max()
    assert one[:, -1].std() < few[:, -1].std()


def test_equal_tokens_and_windows():
    """A window hides what is out of reach: with two layers of window 3 the last of ten sees positions 6 … 10."""
    two = decoder(std=0.02).changed(layers=2)
    found = position_influence(two, 10, windows=[3, 3]).squared
    assert np.all(found[:5] == 0) and np.all(found[5:] > 0)
    assert np.all(position_influence(two, 10, windows=[0, 3]).squared > 0)
    np.testing.assert_array_equal(
        position_influence(two, 10).squared, position_influence(two, 10, windows=[0, 0]).squared
    )


def test_bad_input():
    with pytest.raises(ArgumentError, match="`windows` must have one number for each of 3 layers"):
        position_influence(decoder(), 8, windows=[1])
    with pytest.raises(ArgumentError, match="independent layers"):
        position_influence(decoder(shared=True), 8)
    with pytest.raises(ArgumentError, match="`directions` must be at most the width 64"):
        dependence(decoder(), np.arange(4), key=jax.random.key(0), runs=2, directions=65)
