"""Growth rates of tokens that stand in groups, under symmetric weights QᵀK = V = Vᵀ on the sphere.

Groups of n_g tokens at y_g listen to one another with K_gh = n_h e^{β⟨y_g, V y_h⟩}/Z_g, A_g = Σ_h K_gh V y_h. Where the
groups are stationary, small displacements δ_g ⊥ y_g grow by two kinds of modes (derived; checked by Jacobians):

    groups as wholes:     δ_g' = P_g[Σ_h K_gh V δ_h + β Σ_h K_gh (⟨δ_g, V y_h⟩ + ⟨y_g, V δ_h⟩)(V y_h - A_g)] - φ_g δ_g
    differences inside:   δ'   = P_g[β(Σ_h K_gh V y_h (V y_h)ᵀ - A_g A_gᵀ)] δ - φ_g δ,        φ_g = ⟨y_g, A_g⟩

Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_array, finite_number, require
from pathlines.foundation.numbers import eigenvalue_list, whole_array
from pathlines.foundation.papers import SPECTRAL_SELECTION

SOURCES = (SPECTRAL_SELECTION,)


def group_growth(eigenvalues: ArrayLike, beta: float, points: ArrayLike, sizes: ArrayLike) -> float:
    """Largest real part of the linearisation at groups of ``sizes`` tokens at ``points`` (rows, in eigenvectors of V).

    Stable if negative; -inf if nothing can move. The points must be stationary. Cost O((Gd)³) for G groups in R^d.
    """
    values = eigenvalue_list("eigenvalues", eigenvalues)
    y = finite_array("points", points, ("g", values.size)).astype(float)
    counts = whole_array("sizes", sizes, 1)
    require(counts.shape == (len(y),), "sizes", "hold one number a point", sizes)
    beta = finite_number("beta", beta, 0.0)
    heard = y * values
    scores = beta * y @ heard.T
    share = counts * np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    pulls = share @ heard
    lengths = np.sum(y * pulls, axis=1)
    tangents = [_tangent(row) for row in y]
    rates = _whole(values, beta, y, heard, share, pulls, lengths, tangents)
    for g in np.flatnonzero(counts > 1):
        spread = (heard.T * share[g]) @ heard - np.outer(pulls[g], pulls[g])
        inside = beta * tangents[g].T @ spread @ tangents[g]
        rates += (np.linalg.eigvalsh(inside) - lengths[g]).tolist()
    return max(rates, default=-np.inf)


def _tangent(y: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the directions orthogonal to y, in columns."""
    return np.linalg.svd(y[None], full_matrices=True)[2][1:].T


def _whole(
    values: np.ndarray,
    beta: float,
    y: np.ndarray,
    heard: np.ndarray,
    share: np.ndarray,
    pulls: np.ndarray,
    lengths: np.ndarray,
    tangents: list[np.ndarray],
) -> list[float]:
    """Growth of groups that move as wholes."""
    groups, d = y.shape
    blocks = np.zeros((groups, d - 1, groups, d - 1))
    for g in range(groups):
        beside = heard - pulls[g]
        for h in range(groups):
            move = share[g, h] * (np.diag(values) + beta * np.outer(beside[h], values * y[g]))
            if h == g:
                move = move + beta * (beside.T * share[g]) @ heard
            blocks[g, :, h] = tangents[g].T @ move @ tangents[h]
        blocks[g, :, g] -= lengths[g] * np.eye(d - 1)
    matrix = blocks.reshape(groups * (d - 1), -1)
    return np.linalg.eigvals(matrix).real.tolist()
