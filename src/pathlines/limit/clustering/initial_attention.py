"""Attention of n i.i.d. uniform tokens before anything has moved, exact for every n (derived).

Seen from x_i the other overlaps g_j are independent with density ∝ (1-g²)^{(d-3)/2}, and so are the directions of their
tangential parts. With w = e^{β(g-1)}, own weight 1, and 1/S = ∫ e^{-sS} ds, 1/S² = ∫ s e^{-sS} ds,

    E h_i = ∫ e^{-s} [φ^{n-1} + (n-1) E(w g e^{-sw}) φ^{n-2}] ds,      φ(s) = E e^{-sw},
    E|P A_i|² = (n-1) ∫ s e^{-s} E(w²(1-g²) e^{-sw}) φ^{n-2} ds.

Model: A mathematical perspective on Transformers, arXiv:2312.10794. ``energy_range`` has the first terms in 1/n.
"""

from __future__ import annotations

import numpy as np
from scipy.special import roots_jacobi

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.papers import PERSPECTIVE

SOURCES = (PERSPECTIVE,)
_STEP = 0.05
"""Of the trapezoidal rule in ln s: 15 digits, since integrands end like e^{-s} and begin like s."""


def _law(d: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes g and weights of one overlap; as many as e^{βg} asks for."""
    power = 0.5 * (positive_integer("d", d, 2) - 3)
    g, weights = roots_jacobi(60 + int(4 * np.sqrt(beta)), power, power)
    return g, weights / weights.sum()


def _moments(n: int, d: int, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """s ds, ln φ, E(w g e^{-sw}) and E(w²(1-g²)e^{-sw}) on the grid of ln s."""
    g, weights = _law(d, finite_number("beta", beta, 0.0))
    w = np.exp(beta * (g - 1))
    s = np.exp(np.arange(-40.0 - np.log(n), np.log(750.0), _STEP))
    decay = weights * np.exp(-s[:, None] * w)
    return s, np.log(decay.sum(axis=1)), decay @ (w * g), decay @ (w * w * (1 - g * g))


def mean_alignment(n: int, d: int, beta: float) -> float:
    """E h_i, h_i = ⟨x_i, A_i⟩, of n ≥ 2 i.i.d. uniform tokens in R^d under SA."""
    s, log_phi, first, _ = _moments(positive_integer("n", n, 2), d, beta)
    inside = np.exp((n - 1) * log_phi - s) + (n - 1) * first * np.exp((n - 2) * log_phi - s)
    return float(_STEP * np.sum(s * inside))


def mean_tangential_square(n: int, d: int, beta: float) -> float:
    """E|P A_i|² of n ≥ 2 i.i.d. uniform tokens in R^d under SA."""
    s, log_phi, _, second = _moments(positive_integer("n", n, 2), d, beta)
    return float(_STEP * (n - 1) * np.sum(s * s * second * np.exp((n - 2) * log_phi - s)))
