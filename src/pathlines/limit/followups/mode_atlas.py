"""Every pure mode and three-group equilibrium of a symmetric V = QᵀK, and at which β each of them is stable.

Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085; stability derived (``clustering.symmetric``,
``group_states``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.limit.clustering.symmetric import mixed_equilibria, polarisation_factor, pure_state_growth
from pathlines.limit.followups.group_states import group_growth

SOURCES = (SPECTRAL_SELECTION,)
SYMMETRIC = 1e-10
"""Largest |V - Vᵀ| over |V| that rounding explains."""
ROUNDING = 32 * np.finfo(float).eps
"""Differences of eigenvalues and growth rates below this, times d |V|, are rounding of V and of its eigenvalues."""
BETAS = np.geomspace(1e-3, 1e3, 241)
"""|λ|·β at which the states with a single token on one side are looked at; thresholds between them are bisected."""
Ranges = tuple[tuple[float, float], ...]


class PureMode(NamedTuple):
    """n₊ tokens at e_p and n₋ ≤ n₊ at -e_p; ``stable_betas`` are intervals of β (inf: for ever; null in JSON)."""

    p: int
    eigenvalue: float
    n_plus: int
    n_minus: int
    growth: float
    stable: bool
    stable_betas: Ranges


class MixedMode(NamedTuple):
    """m tokens at u = e_first, k each at q u ± √(1-q²) v, v = e_second."""

    first: int
    second: int
    m: int
    k: int
    q: float
    growth: float
    stable: bool


class Atlas(NamedTuple):
    """Eigenvalues of V in descending order, eigenvectors in columns, and all states at this β and n."""

    eigenvalues: np.ndarray
    eigenvectors: np.ndarray
    beta: float
    n: int
    pure: list[PureMode]
    mixed: list[MixedMode]

    @property
    def selected(self) -> str:
        """What theory says of generic starts: "align", "polarise", or "" where it says nothing."""
        top, low = self.eigenvalues[0], self.eigenvalues[-1]
        slack = resolution(self.eigenvalues)
        if top > np.abs(self.eigenvalues[1:]).max(initial=0.0) + slack:
            return "align"
        return "polarise" if top < -slack and low < self.eigenvalues[:-1].min(initial=np.inf) - slack else ""

    @property
    def multiplicities(self) -> tuple[int, int]:
        """How often the largest and the smallest eigenvalue are repeated: above 1 there is a continuum of rests."""
        return tuple(int(np.sum(self.eigenvalues == self.eigenvalues[end])) for end in (0, -1))  # type: ignore[return-value]


def symmetric_matrix(name: str, value: ArrayLike) -> np.ndarray:
    """A symmetric matrix with finite entries, made exactly symmetric."""
    matrix = finite_array(name, value, ("d", "d")).astype(float)
    if len(matrix) < 2:
        raise ArgumentError(f"Argument `{name}` must be at least 2 × 2, but is {len(matrix)} × {len(matrix)}.")
    gap = float(np.abs(matrix - matrix.T).max())
    if gap > SYMMETRIC * float(np.abs(matrix).max()):
        raise ArgumentError(
            f"Argument `{name}` must be symmetric, but differs from its transpose by up to {gap:.3g}: take "
            f"({name} + {name}ᵀ)/2 if that is what you mean."
        )
    return 0.5 * (matrix + matrix.T)


def mode_atlas(value: ArrayLike, beta: float = 1.0, n: int = 20) -> Atlas:
    """The states that n tokens under QᵀK = V = Vᵀ can rest in, their growth rates and the β at which they are stable.

    Args:
        value: V, a symmetric matrix (d, d).
        beta: β ≥ 0. The larger, the more evenly split states are stable.
        n: tokens; every split n₊ + n₋ = n and every m + 2k = n is looked at. The more, the longer the atlas.

    Growth below zero, by more than rounding, is linear stability. Where an eigenvalue is repeated, states may turn
    freely within its eigenspace and grow at rate 0: they count as not stable. Eigenvalues that differ by rounding are
    made equal. Cost O(d² n) roots, O(d³) each.
    """
    values, vectors = np.linalg.eigh(symmetric_matrix("value", value))
    values, vectors = merged(values[::-1]), vectors[:, ::-1]
    beta, n = finite_number("beta", beta, 0.0), positive_integer("n", n)
    return Atlas(values, vectors, beta, n, pure_modes(values, beta, n), mixed_modes(values, beta, n))


def resolution(values: np.ndarray, beta: float = 0.0) -> float:
    """c·eps·d·|V|(1 + β|V|): what rounding may do to a growth rate at β, or (β = 0) to an eigenvalue."""
    size = float(np.abs(values).max(initial=0.0))
    return float(ROUNDING * len(values) * size * (1 + beta * size))


def merged(values: np.ndarray) -> np.ndarray:
    """Sorted eigenvalues, those that differ by rounding replaced by their mean, and by 0 next to 0.

    Opposite ones are made opposite: three groups weigh a + b by e^{β|b|}, which turns its rounding into roots.
    """
    slack = resolution(values)
    groups = np.split(values, np.flatnonzero(np.abs(np.diff(values)) > slack) + 1)
    found = np.concatenate([np.full(len(g), g.mean()) for g in groups])
    for value in found[found > 0]:
        found[np.abs(found + value) <= slack] = -value
    return np.where(np.abs(found) <= slack, 0.0, found)


def pure_modes(values: np.ndarray, beta: float, n: int) -> list[PureMode]:
    """Every eigenvector with every split, up to the overall sign."""
    found, edge = [], -resolution(values, beta)
    for p, own in enumerate(values):
        for minus in range(n // 2 + 1):
            growth = pure_state_growth(values, p, beta, n - minus, minus)
            ranges = stable_betas(values, p, n - minus, minus)
            found.append(PureMode(p, float(own), n - minus, minus, growth, growth < edge, ranges))
    return found


def mixed_modes(values: np.ndarray, beta: float, n: int) -> list[MixedMode]:
    """Three groups in the plane of every ordered pair of eigenvectors; none where their eigenvalues are equal."""
    found, edge = [], -resolution(values, beta)
    for first, a in enumerate(values):
        for second, b in enumerate(values):
            if a == b:
                continue
            for k in range(1, (n - 1) // 2 + 1):
                m = n - 2 * k
                for q in mixed_equilibria(float(a), float(b), beta, m, k):
                    growth = group_growth(values, beta, mixed_points(len(values), first, second, q), [m, k, k])
                    found.append(MixedMode(first, second, m, k, float(q), growth, growth < edge))
    return found


def mixed_points(d: int, first: int, second: int, q: float) -> np.ndarray:
    """Rows u, qu + sv, qu - sv."""
    points = np.zeros((3, d))
    points[:, first] = [1.0, q, q]
    points[1:, second] = np.array([1.0, -1.0]) * np.sqrt((1 - q) * (1 + q))
    return points


def stable_betas(values: np.ndarray, p: int, n_plus: int, n_minus: int) -> Ranges:
    """Intervals of β at which the pure state is stable.

    All of one sign: every β or none. With two tokens or more on each side the threshold is a root of the closed
    criterion, beyond which it stays stable; with a single one the growth rate itself is followed over β.
    """
    own, others, slack = float(values[p]), np.delete(values, p), resolution(values)
    if n_minus == 0 or n_plus == 0:
        stable = pure_state_growth(values, p, 1.0, n_plus, n_minus) < -slack
        return ((0.0, np.inf),) if stable else ()
    if abs(own) <= slack:
        return ()
    if min(n_plus, n_minus) == 1:
        return _followed(values, p, n_plus, n_minus)
    if others.max() >= abs(own) - slack or (own < 0 and others.min() <= own + slack):
        return ()
    ratio, level = n_plus / n_minus, float(others.max()) / abs(own)
    low = float(abs(np.log(ratio)) / 2)
    if level <= 0:
        return ((low / abs(own), np.inf),)
    excess = lambda x: float(polarisation_factor(1.0, x, ratio)) - level  # noqa: E731
    high = low + 1.0
    while excess(high) < 0 and high < 1e3:
        high *= 2
    if excess(high) < 0:
        return ()
    return ((float(optimize.brentq(excess, max(low, 1e-12), high, xtol=1e-14)) / abs(own), np.inf),)


def _followed(values: np.ndarray, p: int, n_plus: int, n_minus: int) -> Ranges:
    """Where the growth rate is negative beyond rounding, the edges bisected between the points of ``BETAS``."""
    betas = BETAS / abs(float(values[p]))

    def growth(b: float) -> float:
        return pure_state_growth(values, p, float(b), n_plus, n_minus) + resolution(values, float(b))

    stable = np.array([growth(b) < 0 for b in betas])
    turns = np.flatnonzero(stable[1:] != stable[:-1])
    edges = [float(optimize.brentq(growth, betas[i], betas[i + 1], xtol=1e-13)) for i in turns]
    edges = ([0.0] if stable[0] else []) + edges + ([np.inf] if stable[-1] else [])
    return tuple(zip(edges[::2], edges[1::2], strict=True))
