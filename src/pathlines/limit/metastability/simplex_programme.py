"""The quadratic programme on the simplex: min ½ mᵀKm + Vᵀm, m ≥ 0, Σm = 1, by an active set."""

from __future__ import annotations

import numpy as np


def simplex_masses(kernel: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """The minimiser for positive semidefinite K; entries outside the support are exactly zero.

    Lawson and Hanson's scheme for the simplex: solve on the support with Σm = 1, walk back to the first mass that
    vanishes, let in the entry of lowest Km + V. Nearly coincident atoms make K singular; least squares picks the
    smallest masses, which is as good. O(k³) a change of support.
    """
    k = len(linear)
    masses = np.zeros(k)
    masses[np.argmin(np.diag(kernel) / 2 + linear)] = 1.0
    inside = masses > 0
    for _ in range(20 * k):
        masses, inside = _on_support(kernel, linear, masses, inside)
        f = kernel @ masses + linear
        level = float(masses @ f)
        outside = np.where(inside, np.inf, f)
        arrival = int(np.argmin(outside))
        if not outside[arrival] < level - 1e-15 * max(1.0, abs(level)):
            break
        inside[arrival] = True
        after, still = _on_support(kernel, linear, masses, inside)
        if not still[arrival]:
            break
        masses, inside = after, still
    return masses


def _on_support(
    kernel: np.ndarray, linear: np.ndarray, masses: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The minimiser with the given support or a smaller one, starting from feasible masses."""
    masses, inside = masses.copy(), inside.copy()
    while True:
        index = np.flatnonzero(inside)
        size = len(index)
        system = np.ones((size + 1, size + 1))
        system[:size, :size], system[-1, -1] = kernel[np.ix_(index, index)], 0.0
        target = np.linalg.lstsq(system, np.append(-linear[index], 1.0), rcond=1e-15)[0][:size]
        if target.min() > 0:
            masses[:] = 0
            masses[index] = target / target.sum()
            return masses, inside
        here = masses[index]
        falling = target <= 0
        ratios = here[falling] / np.maximum(here[falling] - target[falling], 1e-300)
        share = float(ratios.min())
        moved = here + share * (target - here)
        gone = falling & (moved <= 1e-15)
        gone[np.flatnonzero(falling)[np.argmin(ratios)]] = True
        moved[gone] = 0.0
        masses[index] = moved / moved.sum()
        inside[index[gone]] = False
