"""The normalisation schemes once more, in Cartesian coordinates and solved by SciPy: no polar state, no engine.

With y the tokens and A_j attention of the directions y/|y| (Normalization in Attention Dynamics, arXiv:2510.22026):

    Pre-LN  y' = A        Peri-LN  y' = A/|A|        Post-LN  θ' = P_θ A        nGPT  θ' = αP_θ A/|A|

sqrt-scaling is Post-LN on the clock 2(√(t+1)-1), Mix-LN is Post-LN up to τ and Pre-LN from there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pathlines.claim.clustering import perspective_direct as direct


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _cartesian(y: np.ndarray, beta: float, unit_length: bool) -> np.ndarray:
    """Velocity of the tokens themselves, for schemes that let them grow."""
    a = direct.attention_vectors(_unit(y), beta)
    return _unit(a) if unit_length else a


def _on_sphere(x: np.ndarray, beta: float, alpha: float | None) -> np.ndarray:
    """P_x A, or αP_x A/|A| when α is given."""
    x = _unit(x)
    a = direct.attention_vectors(x, beta)
    a = a if alpha is None else alpha * _unit(a)
    return a - np.sum(a * x, axis=-1, keepdims=True) * x


def scheme_trajectory(
    scheme: str, start: Any, times: Any, beta: float, magnitude: float, alpha: float, switch: float, rtol: float = 1e-12
) -> tuple[np.ndarray, np.ndarray]:
    """(directions, magnitudes) at increasing times: (times, n, d) and (times, n)."""
    start, t = np.asarray(start), np.asarray(times, float)
    if scheme in ("pre", "peri"):
        y = direct.trajectory(partial(_cartesian, beta=beta, unit_length=scheme == "peri"), magnitude * start, t, rtol)
        return _unit(y), np.linalg.norm(y, axis=-1)
    if scheme == "mix":
        return _switched(start, t, beta, magnitude, switch, rtol)
    clock = 2 * (np.sqrt(t + 1) - 1) if scheme == "sqrt" else t
    x = direct.trajectory(partial(_on_sphere, beta=beta, alpha=alpha if scheme == "ngpt" else None), start, clock, rtol)
    return _unit(x), np.full(x.shape[:-1], magnitude)


def _switched(
    start: np.ndarray, t: np.ndarray, beta: float, magnitude: float, switch: float, rtol: float
) -> tuple[np.ndarray, np.ndarray]:
    early = t[t < switch]
    first, _ = scheme_trajectory("post", start, np.append(early, switch), beta, magnitude, 1.0, switch, rtol)
    sizes = np.full((len(early), len(start)), magnitude)
    if len(early) == len(t):
        return first[:-1], sizes
    later = t[t >= switch] - switch
    second, grown = scheme_trajectory("pre", first[-1], later, beta, magnitude, 1.0, switch, rtol)
    return np.concatenate([first[:-1], second]), np.concatenate([sizes, grown])
