"""Harmonics on the unit sphere of R^d for d ≥ 4, built up from those of R^{d-1}: where there are few enough to pay."""

from __future__ import annotations

from functools import cache
from math import exp, lgamma

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.kernels.spectral.bessel import harmonics


def sphere_moments(x: Float[Array, "d b"], masses: Float[Array, " b"], degree: int) -> Float[Array, "e F"]:
    """Σ_j m_j (1, y_j) ⊗ Y(y_j), harmonics up to degree - 1: the kernel of U and of each component of A is the same."""
    rows = jnp.concatenate([jnp.ones_like(x[:1]), x]) * masses[None]
    return jnp.matmul(rows, solid_harmonics(x, degree - 1).T, precision="highest")


def sphere_series(moments: Float[Array, "e F"], spectrum: Float[Array, " L"]) -> Float[Array, "e F"]:
    """g_l times the moments: the coefficients of U and A."""
    d = moments.shape[0] - 1
    return moments * spectrum[_degrees(d, spectrum.shape[0] - 1)][None]


def sphere_values(x: Float[Array, "d b"], series: Float[Array, "e F"], degree: int) -> Float[Array, "e b"]:
    """(U, A) at the columns of x."""
    return jnp.matmul(series, solid_harmonics(x, degree), precision="highest")


def solid_harmonics(x: Float[Array, "d b"], degree: int) -> Float[Array, "F b"]:
    """Homogeneous harmonic polynomials of degree 0..L, of mean square one on the sphere, sorted by degree.

    Y_{l,m}(x) = p_k(x_d, |x|²) Y_m(x'), k = l - m, with x' the other components, Y_m solid harmonics of R^{d-1} and p_k
    orthonormal for (1-t²)^{λ-1/2}, λ = m + d/2 - 1 (Gegenbauer): t p_k = a_{k+1} p_{k+1} + a_k |x|² p_{k-1}. No pole is
    special, because nothing is divided by |x'|. O(F b).
    """
    d = x.shape[0]
    if d == 2:
        return _powers(x, degree)
    lower, inner = solid_harmonics(x[:-1], degree), _degrees(d - 1, degree)
    start, up, down = _recurrence(d, degree, x.dtype.name)
    t, square = x[-1:], jnp.sum(x * x, axis=0, keepdims=True)
    before, now = (
        jnp.zeros((degree + 1, x.shape[1]), x.dtype),
        jnp.broadcast_to(start[:, None], (degree + 1, x.shape[1])),
    )
    parts = []
    for k in range(degree + 1):
        count = int(np.searchsorted(inner, degree - k, side="right"))
        parts.append(now[inner[:count]] * lower[:count])
        before, now = now, (t * now - down[:, k, None] * square * before) * up[:, k, None]
    return jnp.concatenate(parts)[_order(d, degree)]


def _powers(x: Float[Array, "2 b"], degree: int) -> Float[Array, "F b"]:
    """1, √2 Re z^m, √2 Im z^m."""
    real, imaginary = jnp.ones_like(x[0]), jnp.zeros_like(x[0])
    rows = [real]
    for _ in range(degree):
        real, imaginary = real * x[0] - imaginary * x[1], real * x[1] + imaginary * x[0]
        rows += [2**0.5 * real, 2**0.5 * imaginary]
    return jnp.stack(rows)


@cache
def _degrees(d: int, degree: int) -> np.ndarray:
    """The degree of each harmonic, in order."""
    return np.repeat(np.arange(degree + 1), [harmonics(d, k) for k in range(degree + 1)])


@cache
def _order(d: int, degree: int) -> np.ndarray:
    """From harmonics sorted by k = l - m to harmonics sorted by l."""
    inner = _degrees(d - 1, degree)
    return np.argsort(np.concatenate([inner[inner <= degree - k] + k for k in range(degree + 1)]), kind="stable")


@cache
def _recurrence(d: int, degree: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p_0 for each m, and 1/a_{k+1}, a_k for each (m, k); a_k = ½ sqrt(k(k+2λ-1)/((k+λ)(k+λ-1))).

    p_0² E(1-t²)^m = 1 with 1-t² of the law Beta((d-1)/2, ½).
    """
    m, k = np.arange(degree + 1)[:, None], np.arange(degree + 2)[None, :]
    weight = m + d / 2 - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        a = 0.5 * np.sqrt(k * (k + 2 * weight - 1) / ((k + weight) * (k + weight - 1)))
    a[:, 0] = 0.0
    half = (d - 1) / 2
    start = [
        exp(0.5 * (lgamma(half) + lgamma(d / 2 + j) - lgamma(half + j) - lgamma(d / 2))) for j in range(degree + 1)
    ]
    return np.array(start, dtype), (1 / a[:, 1:]).astype(dtype), a[:, :-1].astype(dtype)
