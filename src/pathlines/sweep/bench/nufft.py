"""The peer of fast summation: the same softmax drift on the circle and on S² by non-uniform FFTs.

Plans are made, and tokens turned into angles, before the clock starts; setting points and transforms are timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ive, sph_harm_y, spherical_in

from pathlines.kernels.spectral import degree
from pathlines.sweep.bench.fields import Tokens

TOLERANCE = 1e-12


class Plans:
    """Type 1 (moments) and type 2 (evaluation of several series) of FINUFFT for modes |k| ≤ L in each angle."""

    def __init__(self, angles: tuple[np.ndarray, ...], cut: int, series: int) -> None:
        from finufft import Plan

        shape = (2 * cut + 1,) * len(angles)
        self.angles = angles
        self.masses = np.full(len(angles[0]), 1 / len(angles[0]), complex)
        self.gather = Plan(1, shape, eps=TOLERANCE, isign=-1, dtype="complex128")
        self.spread = Plan(2, shape, n_trans=series, eps=TOLERANCE, isign=1, dtype="complex128")

    def run(self, series: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Σ_k series_k e^{ikθ} of each series, from the moments Σ_j m_j e^{-ikθ_j}."""
        self.gather.setpts(*self.angles)
        self.spread.setpts(*self.angles)
        return self.spread.execute(np.ascontiguousarray(series(self.gather.execute(self.masses)))).real


def circle_nufft(p: Tokens) -> Callable[[], Any]:
    """U'/(βU), the angular velocity, with U = Σ_k e^{-β} I_k(β) M_k e^{ikθ}."""
    cut = degree(p.beta, 2, TOLERANCE)
    k = np.arange(-cut, cut + 1)
    weights = np.stack([ive(np.abs(k), p.beta), 1j * k * ive(np.abs(k), p.beta) / p.beta])
    plans = Plans((np.arctan2(p.x[:, 1], p.x[:, 0]),), cut, 2)

    def call() -> np.ndarray:
        potential, slope = plans.run(lambda moments: weights * moments)
        return slope / potential

    return call


def circle_velocity(p: Tokens, speed: np.ndarray) -> np.ndarray:
    """Angular velocities as tangent vectors."""
    return speed[:, None] * np.stack([-p.x[:, 1], p.x[:, 0]], axis=1)


def sphere_nufft(p: Tokens) -> Callable[[], Any]:
    """(U_θ, U_φ/sin θ)/(βU) on the doubled sphere, where harmonics of degree ≤ L are trigonometric polynomials."""
    cut = degree(p.beta, 3, TOLERANCE)
    theta, phi = np.arccos(np.clip(p.x[:, 2], -1, 1)), np.arctan2(p.x[:, 1], p.x[:, 0])
    waves = _doubled(cut)
    strength = np.array([spherical_in(k, p.beta) * np.exp(-p.beta) for k in range(cut + 1)])
    kernel = np.einsum("mlk,l,mlj->mkj", waves, strength, waves.conj())
    k = np.arange(-cut, cut + 1)
    plans = Plans((theta, phi), cut, 3)
    ring = 1 / (p.beta * np.sin(theta))

    def series(moments: np.ndarray) -> np.ndarray:
        potential = np.einsum("mkj,jm->km", kernel, moments)
        return np.stack([potential, 1j * k[:, None] * potential, 1j * k * potential])

    def call() -> np.ndarray:
        potential, south, east = plans.run(series)
        return np.stack([south / (p.beta * potential), ring * east / potential])

    return call


def sphere_velocity(p: Tokens, parts: np.ndarray) -> np.ndarray:
    """Southward and eastward velocities as tangent vectors."""
    x, y, z = p.x.T
    ring = np.hypot(x, y)
    south = np.stack([z * x / ring, z * y / ring, -ring], axis=1)
    east = np.stack([-y / ring, x / ring, np.zeros_like(x)], axis=1)
    return parts[0][:, None] * south + parts[1][:, None] * east


@cache
def _doubled(cut: int) -> np.ndarray:
    """w[m, l, k]: Y_lm(θ, 0) = Σ_k w e^{ikθ} for all θ mod 2π, m = -L..L, of mean square one over the sphere.

    Beyond θ = π the sphere is run through again on the opposite meridian: Y_lm(2π - θ, 0) = (-1)^m Y_lm(θ, 0).
    """
    count = 2 * cut + 2
    theta = 2 * np.pi * np.arange(count) / count
    folded = np.where(theta <= np.pi, theta, 2 * np.pi - theta)
    waves = np.zeros((2 * cut + 1, cut + 1, 2 * cut + 1), complex)
    for m in range(-cut, cut + 1):
        sign = np.where(theta <= np.pi, 1, (-1) ** m)
        for k in range(abs(m), cut + 1):
            values = np.sqrt(4 * np.pi) * sign * sph_harm_y(k, m, folded, 0.0)
            spectrum = np.fft.fft(values) / count
            waves[m + cut, k] = np.concatenate([spectrum[-cut:], spectrum[: cut + 1]])
    return waves
