"""How many maxima the potential has, start by start, through saturation: the mean-field equation in NumPy.

Tokens of unequal masses on an even grid of the circle, m_j = ρ_0(θ_j)·2π/n, follow the characteristics of the
mean-field equation (Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228)

    θ' = ∂_θ U/β (USA, scaled kernel),   ∂_θ ln U/β (SA),   U(θ) = Σ_k g_k m_k e^{ikθ},   g_k = e^{-β}I_k(β),

by RK4. Starts are given by their moments m_k = ∫ e^{-ikθ} dμ; those of N i.i.d. uniform tokens are m_k = Z_k/√N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.numerics.runge_kutta import rk4_step

SOURCES = (METASTABLE_EMERGENCE,)
STEPS = {"sa": 0.5, "usa": 1.0}
"""Of RK4: contraction rates are at most one under SA, and at most the mass of a cluster under USA."""


def quiet_moments(tokens: float, runs: int, seed: int, noisy: int = 18) -> np.ndarray:
    """(runs, noisy): m_k = Z_k/√N, k = 1..noisy, Z_k independent complex normals with E|Z_k|² = 1."""
    n, rng = finite_number("tokens", tokens, 1.0), np.random.default_rng(seed)
    parts = rng.standard_normal((2, positive_integer("runs", runs), positive_integer("noisy", noisy)))
    return (parts[0] + 1j * parts[1]) / np.sqrt(2 * n)


def maxima_of_starts(
    beta: float, moments: ArrayLike, times: ArrayLike, kind: str = "sa", points: int = 160
) -> np.ndarray:
    """(runs, times): maxima of U at increasing scaled times, from densities 1 + 2 Re Σ_k m_k e^{ikθ}, k = 1.. in a row.

    O(runs · points · √β) per step.
    """
    beta, rows = finite_number("beta", beta, 0.0, open_low=True), np.atleast_2d(np.asarray(moments, complex))
    one_of("kind", kind, ("sa", "usa"))
    clock = np.atleast_1d(real_array("times", times, 0.0))
    require(bool(np.all(np.diff(clock) > 0)), "times", "increase", times)
    # |Σ_{k>K}| ≤ 2e^{-K²/2β} (Skellam law) is rounding
    g = special.ive(np.arange(6 + int(np.sqrt(70 * beta))), beta)
    grid = 2 * np.pi * np.arange(positive_integer("points", points)) / points
    density = 1 + 2 * (rows @ np.exp(1j * np.outer(np.arange(1, rows.shape[1] + 1), grid))).real
    require(bool(np.all(density > 0)), "moments", "be those of densities", float(density.min()))
    theta, masses = np.tile(grid, (len(rows), 1)), density / density.sum(axis=1, keepdims=True)
    found, now = [], 0.0
    for time in clock:
        steps = int(np.ceil((time - now) / STEPS[kind]))
        for _ in range(steps):
            (theta,) = rk4_step(lambda x: (_velocity(x, masses, g, beta, kind),), (theta,), (time - now) / steps)
        now = float(time)
        found.append(_maxima(theta, masses, g))
    return np.stack(found, axis=1)


def _moments(theta: np.ndarray, masses: np.ndarray, count: int) -> np.ndarray:
    """m_k = Σ_j m_j e^{-ikθ_j}, k = 0..count-1, by repeated multiplication."""
    z, power = np.exp(-1j * theta), masses.astype(complex)
    moments = [power.sum(axis=1)]
    for _ in range(1, count):
        power *= z
        moments.append(power.sum(axis=1))
    return np.array(moments)


def _velocity(theta: np.ndarray, masses: np.ndarray, g: np.ndarray, beta: float, kind: str) -> np.ndarray:
    series = g[:, None] * _moments(theta, masses, len(g))
    z, height, slope = np.exp(1j * theta), np.zeros(theta.shape, complex), np.zeros(theta.shape, complex)
    for k in range(len(g) - 1, 0, -1):
        height = (height + series[k][:, None]) * z
        slope = (slope + 1j * k * series[k][:, None]) * z
    pull = 2 * slope.real / beta
    return pull if kind == "usa" else pull / (g[0] + 2 * height.real)


def _maxima(theta: np.ndarray, masses: np.ndarray, g: np.ndarray) -> np.ndarray:
    values = np.fft.irfft((g[:, None] * _moments(theta, masses, len(g))).conj().T, 8 * len(g), axis=1)
    # in wide gaps U is rounding of its largest value
    above = values > 1e-13 * values.max(axis=1, keepdims=True)
    peaks = (values > np.roll(values, 1, axis=1)) & (values >= np.roll(values, -1, axis=1)) & above
    return peaks.sum(axis=1)
