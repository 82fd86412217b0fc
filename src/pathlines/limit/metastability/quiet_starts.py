"""How many maxima the potential has, start by start, through saturation: the mean-field equation in NumPy.

Tokens of unequal masses on an even grid of the circle, m_j = ρ_0(θ_j)·2π/n, follow the characteristics of the
mean-field equation (Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228)

    θ' = ∂_θ U/β (USA, scaled kernel),   ∂_θ ln U/β (SA),   U(θ) = Σ_k g_k m_k e^{ikθ},   g_k = e^{-β}I_k(β),

by RK4. Starts have the moments of N i.i.d. uniform tokens, m_k = Z_k/√N for k ≤ ``noisy``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.limit.arguments import one_of, real_array
from pathlines.limit.runge_kutta import rk4_step

SOURCES = (METASTABLE_EMERGENCE,)
STEPS = {"sa": 0.5, "usa": 1.0}
"""Of RK4: contraction rates are at most one under SA, and at most the mass of a cluster under USA."""


def maxima_of_starts(
    beta: float,
    tokens: float,
    times: ArrayLike,
    runs: int,
    seed: int,
    kind: str = "sa",
    noisy: int = 18,
    points: int = 160,
) -> np.ndarray:
    """(runs, times): maxima of U from quiet starts of N tokens at increasing scaled times.

    O(runs · points · √β) a step; a start whose density would be negative somewhere is drawn anew.
    """
    beta, n = finite_number("beta", beta, 0.0, open_low=True), finite_number("tokens", tokens, 1.0)
    one_of("kind", kind, ("sa", "usa"))
    clock = np.atleast_1d(real_array("times", times, 0.0))
    require(bool(np.all(np.diff(clock) > 0)), "times", "increase", times)
    rng, points = np.random.default_rng(seed), positive_integer("points", points)
    # |Σ_{k>K}| ≤ 2e^{-K²/2β} (Skellam law) is rounding
    g = special.ive(np.arange(6 + int(np.sqrt(70 * beta))), beta)
    theta = np.tile(2 * np.pi * np.arange(points) / points, (positive_integer("runs", runs), 1))
    masses = _masses(rng, theta[0], n, runs, positive_integer("noisy", noisy))
    found, now = [], 0.0
    for time in clock:
        steps = int(np.ceil((time - now) / STEPS[kind]))
        for _ in range(steps):
            (theta,) = rk4_step(lambda x: (_velocity(x, masses, g, beta, kind),), (theta,), (time - now) / steps)
        now = float(time)
        found.append(_maxima(theta, masses, g))
    return np.stack(found, axis=1)


def _masses(rng: np.random.Generator, grid: np.ndarray, n: float, runs: int, noisy: int) -> np.ndarray:
    waves = np.exp(1j * np.outer(np.arange(1, noisy + 1), grid))
    rows: list[np.ndarray] = []
    while len(rows) < runs:
        z = (rng.standard_normal(noisy) + 1j * rng.standard_normal(noisy)) / np.sqrt(2 * n)
        row = 1 + 2 * (z @ waves).real
        if row.min() > 0:
            rows.append(row / row.sum())
    return np.array(rows)


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
