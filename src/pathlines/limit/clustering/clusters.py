"""Few clusters: two clusters exactly, regular polygons linearised, the spectrum next to consensus.

All for Q = K = V = I unless said (derived from the equations of A mathematical perspective on Transformers,
arXiv:2312.10794, and checked against Jacobians of the particle field).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import eigenvalue_list, one_of, real_array
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.limit.clustering.clock import Clock

SOURCES = (PERSPECTIVE,)
KINDS = ("sa", "usa")


def _pull(deficit: np.ndarray, n1: int, n2: int, beta: float) -> np.ndarray:
    """n2/(n2+n1 e^{βu}) + n1/(n1+n2 e^{βu}) with u = 1-g."""
    bend = np.log(n1 / n2)
    return special.expit(-(beta * deficit + bend)) + special.expit(-(beta * deficit - bend))


def two_cluster_rate(overlap: ArrayLike, n1: int, n2: int, beta: float) -> np.ndarray:
    """dg/dt of the inner product g of two clusters of n1 and n2 coincident tokens under SA (derived).

    g' = (1-g²)[n2/(n2+n1 e^{β(1-g)}) + n1/(n1+n2 e^{β(1-g)})]
    """
    g = real_array("overlap", overlap, -1.0, 1.0)
    _check_sizes(n1, n2, beta)
    return ((1 - g) * (1 + g) * _pull(1 - g, n1, n2, beta))[()]


def _check_sizes(n1: int, n2: int, beta: float) -> None:
    positive_integer("n1", n1)
    positive_integer("n2", n2)
    finite_number("beta", beta, 0.0)


def _rapidity(times: np.ndarray, n1: int, n2: int, beta: float, start: float) -> np.ndarray:
    """ξ(t) = artanh g - artanh g0, in which the flow is the pure change of clock dt = dξ/pull."""
    first = np.arctanh(start)

    def speed(progress: np.ndarray) -> np.ndarray:
        return 1.0 / _pull(2 * special.expit(-2 * (first + progress)), n1, n2, beta)

    return Clock(speed, lambda progress: 0.5 / (1.0 + beta)).progress_at(times)


def two_cluster_deficit(times: ArrayLike, n1: int, n2: int, beta: float, start: float) -> np.ndarray:
    """1-g(t) of two clusters, with full relative precision at late times (it decays like e^{-2t}); g0 = ``start``."""
    t = real_array("times", times, 0.0)
    _check_sizes(n1, n2, beta)
    g0 = finite_number("start", start, -1.0, 1.0)
    if abs(g0) == 1:
        return np.full(t.shape, 1 - g0)[()]
    # ln((1+g)/(1-g)) grows by 2ξ; its start is kept as a ratio, so that g0 next to ±1 loses nothing
    ratio = np.log((1 + g0) / (1 - g0))
    return (2 * special.expit(-(ratio + 2 * _rapidity(t, n1, n2, beta, g0))))[()]


def two_cluster_overlap(times: ArrayLike, n1: int, n2: int, beta: float, start: float) -> np.ndarray:
    """g(t) of two clusters of n1 and n2 coincident tokens under SA from g0 = ``start``, 12 digits or more.

    You will see a slow escape from g0 near -1 at rate ``antipodal_escape_rate`` and a merger like e^{-2t}.
    """
    return (1 - two_cluster_deficit(times, n1, n2, beta, start))[()]


def antipodal_escape_rate(beta: ArrayLike, n1: int = 1, n2: int = 1) -> np.ndarray:
    """Growth rate of the angle by which an antipodal pair of clusters fails to be antipodal (SA, derived).

    n2/(n2+n1 e^{2β}) + n1/(n1+n2 e^{2β}), which is 2/(1+e^{2β}) for equal sizes: metastable for times ~ e^{2β}/2.
    """
    b = real_array("beta", beta, 0.0)
    _check_sizes(n1, n2, 0.0)
    bend = np.log(n1 / n2)
    return (special.expit(-(2 * b + bend)) + special.expit(-(2 * b - bend)))[()]


def _polygon_slopes(k: int, beta: float, kind: str) -> np.ndarray:
    """f'(θ_l)/D with f(θ) = e^{β cos θ} sin θ; the weights are scaled by e^{-β} where that cancels (SA)."""
    positive_integer("k", k, 2)
    beta = finite_number("beta", beta, 0.0)
    one_of("kind", kind, KINDS)
    angle = 2 * np.pi * np.arange(k) / k
    shape = np.cos(angle) - beta * np.sin(angle) ** 2
    if kind == "usa":
        with np.errstate(over="ignore"):
            return np.exp(beta * np.cos(angle)) * shape / k
    weight = np.exp(beta * (np.cos(angle) - 1))
    return weight * shape / weight.sum()


def polygon_growth_rates(k: int, beta: float, kind: str = "sa") -> np.ndarray:
    """Growth rates of the modes q = 0..k-1 of a regular k-gon of equal clusters on the circle (derived).

    rate_q = -(1/D) Σ_l f'(θ_l)(1 - cos qθ_l), f(θ) = e^{β cos θ} sin θ, θ_l = 2πl/k, D = k (USA), Σ_l e^{β cos θ_l}
    (SA). Mode 0 is the rotation, rate 0; positive rates mean that the polygon is unstable.
    """
    slope = _polygon_slopes(k, beta, kind)
    modes = np.arange(k)
    # cos(qθ_l) - 1 vanishes at l = 0, where f' is largest: leave that term out instead of multiplying it by zero
    phase = (np.outer(modes, np.arange(1, k)) % k) * (2 * np.pi / k)
    return -(2 * np.sin(phase / 2) ** 2) @ slope[1:]


def polygon_intra_rate(k: int, beta: float, kind: str = "sa") -> float:
    """Growth rate -(1/D) Σ_l f'(θ_l) of differences inside one cluster of the k-gon; negative means they contract."""
    return float(-_polygon_slopes(k, beta, kind).sum())


def consensus_rate(beta: ArrayLike, kind: str = "sa") -> np.ndarray:
    """Decay rate of token differences next to consensus, V = I: exactly 1 (SA, any Q, K, β, d), e^β (USA) (derived).

    The rate 1/(2n e^{2β}) in the proof of arXiv:2312.10794 is only a bound.
    """
    one_of("kind", kind, KINDS)
    b = real_array("beta", beta, 0.0)
    return (np.ones_like(b) if kind == "sa" else np.exp(b))[()]


class ConsensusSpectrum(NamedTuple):
    """Decay rates at consensus: of differences between tokens, and of the common displacement along each other e_k."""

    difference: float
    mean: np.ndarray


def consensus_spectrum(eigenvalues: ArrayLike, p: int) -> ConsensusSpectrum:
    """Decay rates next to all x_i = e_p for SA with symmetric V = QᵀK and the given eigenvalues (derived).

    Differences decay at λ_p, the mean mode along e_k at λ_p - λ_k (k ≠ p, in the given order); negative means growth.
    """
    values = eigenvalue_list("eigenvalues", eigenvalues)
    p = positive_integer("p", p, 0)
    require(p < values.size, "p", f"be < {values.size}, the number of eigenvalues", p)
    return ConsensusSpectrum(float(values[p]), values[p] - np.delete(values, p))
