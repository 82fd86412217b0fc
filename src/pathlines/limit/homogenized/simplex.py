"""The simplex reduction: all overlaps equal γ, and everything follows from f(γ) and g(γ) (``participation``).

With K = (1-γ)I + γ11ᵀ the attended vectors have E⟨m_i,m_i⟩ = P = γ + (1-γ)f and E⟨m_i,m_j⟩ = S = γ + (1-γ)g, and the
overlap drifts, per unit of diffusive time τ, by (Homogenized Transformers, arXiv:2604.01978; the finite-d form derived)

    d = ∞:     𝖻(γ) = S - γP = (1-γ)[γ(1-f) + g],
    finite d:  𝒟_d(γ) = [(d-2+γ²)S - (d-1)γP]/d = [(d-2+γ²)𝖻 - γ(1-γ²)P]/d.

A table holds f and g at Chebyshev points of a variable that resolves both scales of √(1-γ), 1/b and 1, and says how
well they are resolved; with it a curve is a quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import PathlinesError, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.participation import check_logit_scale, check_width, participations

SOURCES = (HOMOGENIZED,)
_FIRST, _MOST = 8, 512
_CORE = 2.0  # b√(1-γ) below which attention is nearly uniform
_ROUGH = 1e-7  # for finite p, where an evaluation costs a hundred times more


@dataclass(frozen=True)
class SimplexTable:
    """f and g on low ≤ γ ≤ high for n tokens, logit scale b and head width p; build it with ``simplex_table``."""

    n: float
    b: float
    p: float
    low: float
    high: float
    values: np.ndarray
    resolution: float

    @property
    def lowest(self) -> float:
        """-1/(n-1), the overlap of the regular simplex."""
        return -1 / (self.n - 1)

    def participation_at_deficit(self, deficit: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(f, g) at y = 1-γ, by barycentric interpolation; O(size × nodes)."""
        y = np.asarray(deficit, dtype=np.float64)
        start, end = (_variable(e, self.b) for e in (1 - self.high, 1 - self.low))
        place = np.clip(2 * (_variable(y, self.b) - start) / (end - start) - 1, -1.0, 1.0)
        nodes, signs = _lobatto(self.values.shape[1] - 1)
        with np.errstate(divide="ignore"):
            weights = signs / (place[..., None] - nodes)
        hit = np.isinf(weights)
        weights = np.where(np.any(hit, axis=-1, keepdims=True), hit.astype(np.float64), weights)
        f, g = (weights @ row / np.sum(weights, axis=-1) for row in self.values)
        return f, g

    def f(self, gamma: ArrayLike) -> np.ndarray:
        """E Σ_k π_ik²."""
        return self.participation_at_deficit(1 - self._inside(gamma))[0][()]

    def g(self, gamma: ArrayLike) -> np.ndarray:
        """E Σ_k π_ik π_jk."""
        return self.participation_at_deficit(1 - self._inside(gamma))[1][()]

    def attended(self, gamma: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(P, S) = (γ + (1-γ)f, γ + (1-γ)g), the mean products of attended vectors."""
        y = 1 - self._inside(gamma)
        f, g = self.participation_at_deficit(y)
        return (1 - y * (1 - f))[()], (1 - y * (1 - g))[()]

    def drift(self, gamma: ArrayLike, d: float = math.inf) -> np.ndarray:
        """𝖻(γ), or 𝒟_d(γ) for finite d."""
        y = 1 - self._inside(gamma)
        return (y * self.closing_rate(y, d))[()]

    def closing_rate(self, deficit: ArrayLike, d: float = math.inf) -> np.ndarray:
        """drift/(1-γ) at y = 1-γ: γ(1-f) + g for d = ∞; relative precision is kept as y → 0."""
        y = np.asarray(deficit, dtype=np.float64)
        gamma = 1 - y
        f, g = self.participation_at_deficit(y)
        rate = gamma * (1 - f) + g
        if math.isinf(d):
            return rate
        own = 1 - y * (1 - f)
        return ((d - 2 + gamma**2) * rate - gamma * (1 + gamma) * own) / d

    def _inside(self, gamma: ArrayLike) -> np.ndarray:
        return real_array("gamma", gamma, self.low, self.high)


def _variable(deficit: ArrayLike, b: float) -> np.ndarray:
    """asinh(bθ/(2√2)), cos θ = γ, in which f and g vary evenly; θ/√2 where there is no scale 1/b."""
    angle = math.sqrt(2) * np.arcsin(np.sqrt(np.clip(0.5 * np.asarray(deficit), 0.0, 1.0)))
    return angle if math.isinf(b) or b == 0 else np.arcsinh(b * angle / _CORE)


def _deficit(variable: float, b: float) -> float:
    angle = variable if math.isinf(b) else math.sinh(variable) * (_CORE / b)
    return 2 * math.sin(angle / math.sqrt(2)) ** 2


@lru_cache(maxsize=16)
def _lobatto(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points of the second kind from -1 to 1 and their barycentric weights."""
    nodes = -np.cos(np.pi * np.arange(degree + 1) / degree)
    signs = (-1.0) ** np.arange(degree + 1)
    signs[[0, -1]] *= 0.5
    return nodes, signs


def _last_coefficients(values: np.ndarray) -> np.ndarray:
    """The largest of the last three Chebyshev coefficients of each row of values at ``_lobatto`` points."""
    degree = values.shape[-1] - 1
    angles = np.pi * np.arange(degree + 1) / degree
    weights = np.cos(np.outer(np.arange(degree - 2, degree + 1), angles)) * (2 / degree)
    weights[:, [0, -1]] *= 0.5
    return np.max(np.abs(values @ weights.T), axis=-1)


def tabulate(
    keys: np.ndarray, b: float, p: float, low: float, high: float, tolerance: float = 1e-10
) -> list[SimplexTable]:
    """Tables on [low, high] for every n of ``keys``, which share their nodes and most of their cost.

    The number of nodes is doubled until the last Chebyshev coefficients are below tolerance/n, or 1e-7/n for finite p,
    where (f, g) are evaluated with the lighter rules. 9-65 evaluations; more than 513 raise an error.
    """
    if b == 0:
        flat = np.broadcast_to(1 / keys[:, None, None], (len(keys), 2, 2))
        return [SimplexTable(float(n), b, p, low, high, v, 0.0) for n, v in zip(keys, flat, strict=True)]
    start, end = (float(_variable(e, b)) for e in (1 - high, 1 - low))
    goal = tolerance if math.isinf(p) else max(tolerance, _ROUGH)
    known: dict[float, np.ndarray] = {}
    degree = _FIRST
    while degree <= _MOST:
        places = np.arange(degree + 1) / degree
        for place, node in zip(places.tolist(), _lobatto(degree)[0], strict=True):
            if place not in known:
                y = _deficit(start + 0.5 * (float(node) + 1) * (end - start), b)
                gamma = high if place == 0 else low if place == 1 else min(max(1 - y, low), high)
                known[place] = np.array(participations(keys, b, gamma, p, light=True))
        values = np.stack([known[place] for place in places.tolist()], axis=-1)
        resolution = np.max(_last_coefficients(values), axis=0) * keys
        if np.all(resolution <= goal):
            rows = np.swapaxes(values, 0, 1)
            return [
                SimplexTable(float(n), b, p, low, high, v, float(r))
                for n, v, r in zip(keys, rows, resolution, strict=True)
            ]
        degree *= 2
    raise PathlinesError(f"f and g are not resolved by {_MOST + 1} nodes at b = {b:g}, p = {p:g} (left: {resolution}).")


@lru_cache(maxsize=256)
def _whole_table(n: float, b: float, p: float) -> SimplexTable:
    return tabulate(np.array([n]), b, p, -1 / (n - 1), 1.0)[0]


def simplex_table(n: int, b: float, p: float = math.inf) -> SimplexTable:
    """The table on -1/(n-1) ≤ γ ≤ 1, kept in memory: 0.05-0.3 s for p = ∞ and b ≤ 30, 0.3-7 s for finite p."""
    return _whole_table(float(positive_integer("n", n, 2)), check_logit_scale(b), check_width(p))
