"""Gram dynamics for any initial overlaps: K_ij = ⟨x_i,x_j⟩ driven by S = E_A[Π_A K Π_Aᵀ].

In diffusive time τ, from the Gaussian SDE of Homogenized Transformers (arXiv:2604.01978), with R = K_ij (the quadratic
variation and the flow of the whole matrix derived):

    dR = 𝒟_ij dτ + dM,   𝒟_ij = (d-2+R²)/d s_ij - (d-1)/(2d) R (s_ii+s_jj),
    d⟨M⟩/dτ = (1-R²)/d (s_ii + s_jj - 2R s_ij).

As d → ∞ the noise vanishes and dK/dτ = S - ½(ΔK + KΔ), Δ = diag S, the Gram flow. One layer of power v (derived):
M_ij = N_ij + v s_ij with N_ij = r_i r_j K_ij, K' = M normalised, r'² = diag M; to first order in v/d the off-diagonal
s_ij take the factor 1-(2-K_ij²)/d and the s_ii, for K' only, 1-1/d (half as much again as the true O(1/d) term at
v = 1). ``exact`` takes that term itself: in d dimensions the products of the moved tokens have the covariance
(M_ik M_jl + M_il M_jk - N_ik N_jl - N_il N_jk)/d, whence the mean of K' is c + δ/d + O(d⁻²) at any v (derived),

    δ_ij = N_ij (N_ii/M_ii + N_jj/M_jj)/m - 2c + c [¾(2 - N_ii²/M_ii² - N_jj²/M_jj²) + ½(M_ij² - N_ij²)/m²],

with m = √(M_ii M_jj), c = M_ij/m.
Any function K ↦ S may drive it; ``attended`` has those that matter. One step costs what S costs, and O(n²) more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import (
    ArgumentError,
    a_function,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.participation import check_dimension

SOURCES = (HOMOGENIZED,)
Attended = Callable[[np.ndarray], np.ndarray]
_ROUNDING = 1e-9


SMALLEST_TOLERANCE = 1e-13
"""Of the Runge-Kutta method: SciPy's own limit is some hundred roundings."""


def check_gram(gram: ArrayLike) -> np.ndarray:
    """K as a float64 matrix: symmetric, ones on the diagonal, entries in [-1, 1]."""
    k = finite_array("gram", gram, ("n", "n")).astype(np.float64)
    ok = len(k) > 0 and np.max(np.abs(k - k.T)) < _ROUNDING and np.max(np.abs(np.diag(k) - 1)) < _ROUNDING
    require(bool(ok and np.max(np.abs(k)) < 1 + _ROUNDING), "gram", "be a Gram matrix of unit vectors", gram)
    return k


def check_start(gram: ArrayLike) -> np.ndarray:
    """``check_gram`` that also asks for eigenvalues ≥ 0, which costs O(n³)."""
    k = check_gram(gram)
    least = float(np.linalg.eigvalsh(k)[0])
    if least < -_ROUNDING * len(k):
        raise ArgumentError(f"Argument `gram` must be positive semidefinite, but has the eigenvalue {least:.6g}.")
    return k


def _pair(gram: ArrayLike, attended: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    k = check_gram(gram)
    return k, finite_array("attended", attended, k.shape).astype(np.float64)


def overlap_drift(gram: ArrayLike, attended: ArrayLike, d: float = math.inf) -> np.ndarray:
    """𝒟, the drift of K per unit of τ, given S = ``attended``; for d = ∞ the Gram flow. The diagonal is zero."""
    k, s = _pair(gram, attended)
    dimension = check_dimension(d)
    own = np.diag(s)
    return (1 - (2 - k * k) / dimension) * s - (1 - 1 / dimension) * k * (0.5 * (own[:, None] + own))


def quadratic_variation(gram: ArrayLike, attended: ArrayLike, d: float) -> np.ndarray:
    """d⟨M_ij⟩/dτ of every overlap; zero on the diagonal and for d = ∞."""
    k, s = _pair(gram, attended)
    own = np.diag(s)
    return (1 - k * k) / check_dimension(d) * (own[:, None] + own - 2 * k * s)


class GramLayer(NamedTuple):
    """Overlaps and the mean squares r_i² of the tokens after a layer without normalisation."""

    gram: np.ndarray
    powers: np.ndarray


def gram_layer(
    gram: ArrayLike,
    attended: ArrayLike,
    v: float,
    d: float = math.inf,
    powers: ArrayLike | None = None,
    exact: bool = False,
) -> GramLayer:
    """One layer of attention power v from overlaps K and mean squares ``powers`` (ones, as with post-normalisation).

    For finite d to first order in v/d, or with ``exact`` to O(1/d) at any v.
    """
    k, s = _pair(gram, attended)
    dimension = check_dimension(d)
    power = finite_number("v", v, 0.0)
    before = np.ones(len(k)) if powers is None else real_array("powers", powers, 0.0, open_low=True)
    require(before.shape == (len(k),), "powers", "hold one number for each token", powers)
    root = np.sqrt(before)
    old = root[:, None] * root * k
    if exact:
        moved = old + power * s
        size, share = np.sqrt(np.diag(moved)), before / np.diag(moved)
        size = size[:, None] * size
        new = next_overlap(old / size, moved / size, share[:, None], share, dimension)
    else:
        lengths = np.sqrt(before + power * (1 - 1 / dimension) * np.diag(s))
        new = (old + power * (1 - (2 - k * k) / dimension) * s) / (lengths[:, None] * lengths)
    np.fill_diagonal(new, 1.0)
    return GramLayer(new, before + power * np.diag(s))


def next_overlap(part: Any, c: Any, own: Any, other: Any, d: float) -> Any:
    """c + δ/d, from N_ij/m = ``part``, M_ij/m = ``c`` and the shares N_ii/M_ii, N_jj/M_jj of the two tokens."""
    curved = 0.75 * (2 - own**2 - other**2) + 0.5 * (c**2 - part**2)
    return c + ((own + other) * part - 2 * c + c * curved) / d


def gram_layers(
    gram: ArrayLike,
    attended: Attended,
    layers: int,
    v: float,
    *,
    d: float = math.inf,
    pre: bool = False,
    exact: bool = False,
) -> np.ndarray:
    """K after 0, 1, …, ``layers`` layers, shape (layers+1, n, n); ``pre`` lets the mean squares grow from 1."""
    a_function("attended", attended)
    k = check_start(gram)
    powers = np.ones(len(k))
    states = [k]
    for _ in range(positive_integer("layers", layers)):
        k, grown = gram_layer(k, attended(k), v, d, powers, exact)
        powers = grown if pre else powers
        states.append(k)
    return np.array(states)


def gram_flow(
    gram: ArrayLike, attended: Attended, times: ArrayLike, *, d: float = math.inf, tolerance: float = 1e-10
) -> np.ndarray:
    """K(τ) of dK/dτ = 𝒟(K) at increasing ``times`` from K(0) = ``gram``: shape (times, n, n), Runge-Kutta of order 8.

    For finite d this is the drift alone, the mean to first order in 1/d.
    """
    k = check_start(gram)
    a_function("attended", attended)
    tolerance = finite_number("tolerance", tolerance, SMALLEST_TOLERANCE, 0.1)
    tau = np.atleast_1d(real_array("times", times, 0.0))
    require(bool(tau.ndim == 1 and len(tau) > 0 and np.all(np.diff(tau) >= 0)), "times", "increase", times)
    upper = np.triu_indices(len(k), 1)

    def matrix(overlaps: np.ndarray) -> np.ndarray:
        full = np.eye(len(k))
        full[upper] = np.clip(overlaps, -1.0, 1.0)
        return full + np.triu(full, 1).T

    def rate(_: float, overlaps: np.ndarray) -> np.ndarray:
        now = matrix(overlaps)
        return overlap_drift(now, attended(now), d)[upper]

    if tau[-1] == 0 or len(k) == 1:
        return np.repeat(k[None], len(tau), axis=0)
    flow = solve_ivp(rate, (0.0, tau[-1]), k[upper], "DOP853", tau, rtol=tolerance, atol=tolerance)
    return np.array([matrix(column) for column in flow.y.T])
