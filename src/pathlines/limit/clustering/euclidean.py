"""Tokens in R^d without normalisation: which kind of limit the value matrix V decides, and how far float64 follows it.

    x_i' = Σ_j P_ij V x_j,   P_ij = softmax_j ⟨Qx_i,Kx_j⟩,   z_i = e^{-tV} x_i,   M = QᵀK.

The emergence of clusters in self-attention dynamics, arXiv:2305.05465. Coordinates of z with a negative eigenvalue of V
diverge like e^{|λ|t}; that is normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eig

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import EMERGENCE
from pathlines.limit.clustering.cone import hemisphere

SOURCES = (EMERGENCE,)
KINDS = ("identity", "good triple", "paranormal", "negative identity", "complex leading pair", "none")
_CLOSE = 1e-10  # how exactly a matrix given in float64 must have a structure to be said to have it
_MOST_SUBSETS = 2_000_000

_STATEMENTS = {
    "identity": "Each z_i converges to a point of the finite set S of a polytope K: a vertex, a boundary point or 0.",
    "good triple": "φ1*(z_i) converges to one of at most three values a, 0, b: at most three parallel hyperplanes.",
    "paranormal": "The F-part of each z_i converges to the boundary of a polytope in F or to 0; the G-part is free.",
    "negative identity": "x_i converges to 0 and P to 1/n; the covariance is (1/2t)·I to leading order (derived).",
    "complex leading pair": "The leading eigenvalues are a complex pair: outside the theorems, no limit is claimed.",
}


@dataclass(frozen=True, eq=False)
class ValueClass:
    """What the theorems say about a value matrix.

    ``kind`` is one of ``KINDS``; ``leading`` the eigenvalue λ1 of largest real part (that of the pair, if complex);
    ``right`` φ1 (unit length) and ``left`` φ1* (φ1*(φ1) = 1), None unless λ1 is real and simple; ``F``, ``G`` are
    orthonormal bases (columns) of the eigenspace of λ1 and of the invariant complement, None outside the theorems.
    """

    kind: str
    leading: complex
    right: np.ndarray | None
    left: np.ndarray | None
    F: np.ndarray | None
    G: np.ndarray | None
    statement: str


def _kernel(matrix: np.ndarray, scale: float) -> np.ndarray:
    """Orthonormal basis (columns) of the null space."""
    _, singular, vt = np.linalg.svd(matrix)
    return vt[singular <= _CLOSE * scale].T


def _positive_definite(M: np.ndarray) -> bool:
    symmetric = bool(np.allclose(M, M.T, rtol=0, atol=_CLOSE * max(np.abs(M).max(), 1e-300)))
    return symmetric and bool(np.linalg.eigvalsh(M).min() > 0)


def classify_value(V: ArrayLike, M: ArrayLike | None = None) -> ValueClass:
    """Say which theorem of arXiv:2305.05465 applies to the value matrix V with M = QᵀK (None: identity).

    identity: V = I, M ≻ 0. negative identity: V = -I, M = I. good triple: λ1 real, > 0, simple, > |λ_k|, ⟨φ1,Mφ1⟩ > 0.
    paranormal: λ1 > 0 semi-simple with multiplicity, > |λ_k| elsewhere, M ≻ 0. complex leading pair: the eigenvalue of
    largest real part is not real. none: everything else; the statement says what fails.
    """
    V = finite_array("V", V, ("d", "d")).astype(np.float64)
    d = V.shape[0]
    require(d > 0, "V", "have at least one row", V)
    M = np.eye(d) if M is None else finite_array("M", M, (d, d)).astype(np.float64)
    if np.allclose(V, -np.eye(d), rtol=0, atol=_CLOSE):
        if np.allclose(M, np.eye(d), rtol=0, atol=_CLOSE):
            return _record("negative identity", -1.0, F=np.eye(d), G=np.zeros((d, 0)))
        return _record("none", -1.0, why="V = -I is covered for M = I only")
    values, same = _leading_group(V)
    leading = values[same].mean()
    if abs(leading.imag) > _CLOSE * max(float(np.abs(values).max()), 1e-300):
        return _record("complex leading pair", complex(leading.real, abs(leading.imag)))
    return _classify_real(V, M, values, same, float(leading.real))


def _leading_group(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, and which cannot be told from the one of largest real part.

    A computed eigenvalue is off by about ε|V|/s, s = |y*x| of its unit left and right eigenvectors: the 1 and 1 - 10⁻⁷
    of a diagonal matrix differ, the scattered eigenvalues of a Jordan block (s → 0) do not.
    """
    values, left, right = eig(V, left=True)
    sine = np.abs(np.sum(left.conj() * right, axis=0))
    eps = np.finfo(np.float64).eps
    norm = float(np.linalg.norm(V, 2))
    error = norm * np.maximum(32 * eps / np.maximum(sine, np.sqrt(eps) * 1e-3), _CLOSE)
    first = int(np.argmax(values.real))
    near = np.abs(values - values[first]) <= error + error[first]
    return values, near


def _classify_real(V: np.ndarray, M: np.ndarray, values: np.ndarray, same: np.ndarray, leading: float) -> ValueClass:
    d = V.shape[0]
    if leading <= 0:
        return _record("none", leading, why="the leading eigenvalue is not positive")
    if np.any(np.abs(values[~same]) >= leading):
        return _record("none", leading, why="another eigenvalue is at least as large in modulus")
    norm = float(np.linalg.norm(V, 2))
    F, left = _kernel(V - leading * np.eye(d), norm), _kernel(V.T - leading * np.eye(d), norm)
    if F.shape[1] != same.sum():
        return _record("none", leading, why="the leading eigenvalue is not semi-simple")
    G = np.linalg.svd(left)[0][:, F.shape[1] :]
    if np.allclose(V, np.eye(d), rtol=0, atol=_CLOSE):
        if _positive_definite(M):
            return _record("identity", 1.0, F=np.eye(d), G=np.zeros((d, 0)))
        return _record("none", 1.0, F=F, G=G, why="M is not symmetric positive definite")
    if F.shape[1] > 1:
        if _positive_definite(M):
            return _record("paranormal", leading, F=F, G=G)
        return _record("none", leading, F=F, G=G, why="M is not symmetric positive definite")
    right = F[:, 0] * np.sign(F[np.argmax(np.abs(F[:, 0])), 0])
    dual = left[:, 0] / (left[:, 0] @ right)
    if right @ M @ right > 0:
        return _record("good triple", leading, right, dual, right[:, None], G)
    return _record("none", leading, right, dual, right[:, None], G, why="⟨Qφ1,Kφ1⟩ is not positive")


def _record(
    kind: str,
    leading: complex,
    right: np.ndarray | None = None,
    left: np.ndarray | None = None,
    F: np.ndarray | None = None,
    G: np.ndarray | None = None,
    why: str = "",
) -> ValueClass:
    statement = _STATEMENTS.get(kind, f"No theorem applies: {why}.")
    return ValueClass(kind, leading, right, left, F, G, statement)


def horizon(V: ArrayLike, z_max: float, eps: float = float(np.finfo(np.float64).eps)) -> float:
    """t_max = ln(10^{-2}/(ε max|z|²))/(2λ1): beyond it the rounding of the scores e^{2λ1 t}|z|² makes softmax noise.

    λ1 is the largest real part of the eigenvalues of V; inf if it is not positive. M = I; else multiply |z|² by |M|.
    """
    V = finite_array("V", V, ("d", "d")).astype(np.float64)
    size = finite_number("z_max", z_max, 0.0, open_low=True)
    rounding = finite_number("eps", eps, 0.0, 1.0, open_low=True)
    leading = float(np.linalg.eigvals(V).real.max())
    if leading <= 0:
        return math.inf
    return max(0.0, (math.log(1e-2 / rounding) - 2 * math.log(size)) / (2 * leading))


def polytope_fixed_set(vertices: ArrayLike, A: ArrayLike | None = None) -> np.ndarray:
    """The finite set S = {x in K: |Ax|² = max_v ⟨Ax,Av⟩} of the polytope K spanned by the rows of ``vertices``; A ≻ 0.

    In w = Ax: w supports AK, so w is the point closest to 0 on the affine hull of its face, and it is 0 if 0 is in K
    (derived). So every set of at most d vertices gives one candidate, kept if it lies in their simplex and no vertex is
    beyond it. Cost: C(number of vertices, ≤ d) small solves. Rows of the answer are distinct, sorted.
    """
    points = finite_array("vertices", vertices, ("m", "d")).astype(np.float64)
    m, d = points.shape
    require(m > 0 and d > 0, "vertices", "hold at least one point", points)
    A = np.eye(d) if A is None else finite_array("A", A, (d, d)).astype(np.float64)
    count = sum(math.comb(m, k) for k in range(1, min(m, d) + 1))
    if count > _MOST_SUBSETS:
        raise ArgumentError(f"Argument `vertices` must have at most {_MOST_SUBSETS} faces to try, but has {count}.")
    w = points @ A.T
    scale = float(np.abs(w).max())
    tolerance = 1e-10 * max(scale, 1e-300)
    found = [] if hemisphere(w / scale if scale > 0 else w)[1] is not None else [np.zeros(d)]
    for size in range(1, min(m, d) + 1):
        for face in combinations(range(m), size):
            point = _closest_on_face(w[list(face)], tolerance)
            if point is not None and np.all(w @ point <= point @ point + tolerance * scale):
                found.append(point)
    return _distinct(np.linalg.solve(A, np.array(found).T).T, 1e-8 * max(float(np.abs(points).max()), 1e-300))


def _closest_on_face(corners: np.ndarray, tolerance: float) -> np.ndarray | None:
    """The point of the affine hull closest to 0, or None if it is outside the simplex or at 0."""
    first = corners[0]
    edges = (corners[1:] - first).T
    inner = np.linalg.lstsq(edges, -first, rcond=None)[0] if edges.size else np.zeros(0)
    weights = np.concatenate([[1 - inner.sum()], inner])
    point = first + edges @ inner
    if np.any(weights < -1e-10) or np.linalg.norm(point) <= tolerance:
        return None
    return point


def _distinct(points: np.ndarray, tolerance: float) -> np.ndarray:
    kept: list[np.ndarray] = []
    for point in points[np.lexsort(points.T[::-1])]:
        if all(np.abs(point - other).max() > tolerance for other in kept):
            kept.append(point)
    return np.array(kept)


def hyperplane_values(z: ArrayLike, dual: ArrayLike) -> tuple[float, float, float]:
    """(a, 0, b) = (min_i φ1*(z_i), 0, max_i φ1*(z_i)): the three hyperplanes φ1* = a, 0, b of a good triple.

    ``dual`` is ``ValueClass.left``; the limits of the minimum and maximum are approached monotonically.
    """
    tokens = finite_array("z", z, ("n", "d")).astype(np.float64)
    values = tokens @ finite_array("dual", dual, (tokens.shape[1],)).astype(np.float64)
    require(values.size > 0, "z", "hold at least one token", z)
    return float(values.min()), 0.0, float(values.max())


def negative_identity_covariance(t: ArrayLike) -> np.ndarray:
    """1/(2t), every eigenvalue of the token covariance for V = -I, M = I at late times, from C' ≈ -2C² (derived)."""
    return (0.5 / real_array("t", t, 0.0, open_low=True))[()]
