"""Where the knots of a piecewise linear transport of N(0, 1) should stand.

Interpolation at knots of spacing h has KL ≈ Σ h³ρ_B(L')²/24, L = log T', so the best density of knots is proportional
to (ρ_B(L')²)^{1/3} [derived]. A floor of 10⁻³ of its maximum keeps knots where L' vanishes; beyond
z_c = min(7.5, √(2 log K) + 1.5) the map is linear.
"""

from __future__ import annotations

import numpy as np

from pathlines.transport.euclid.quantile import LineLaw, log_slope, quantile_map

GRID = 4001


def cut_off(knots: int, room: float = 1.5) -> float:
    """z_c, where the tails begin."""
    return min(7.5, float(np.sqrt(2 * np.log(max(knots, 2)))) + room)


def best_knots(law: LineLaw, knots: int, reach: float, floor: float = 1e-3) -> np.ndarray:
    """K knots on [-reach, reach] at equal increments of the integral of (φ(L')²)^{1/3} + floor · max."""
    z = np.linspace(-reach, reach, GRID)
    slope = np.gradient(log_slope(law, z, quantile_map(law, z)), z)
    return spread_knots(z, np.exp(-(z**2) / 2), slope, knots, floor)


def spread_knots(z: np.ndarray, density: np.ndarray, slope: np.ndarray, knots: int, floor: float) -> np.ndarray:
    """The same for a base density and L' on a grid."""
    wanted = np.cbrt(density * slope**2)
    top = wanted.max()
    wanted = wanted + floor * top if top > 0 else np.ones_like(z)
    mass = np.concatenate([[0.0], np.cumsum((wanted[1:] + wanted[:-1]) / 2 * np.diff(z))])
    return np.interp(np.linspace(0, mass[-1], knots), mass, z)
