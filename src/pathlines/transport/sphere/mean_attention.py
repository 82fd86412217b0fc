"""Mean attention (B = 0) is linear in disguise: ẋ = P_x Vm with m the mean of the moved tokens.

In homogeneous coordinates X = (1, x), x = X₁…/X₀, every equation ẋ = P_x m(t) is X' = [[0, mᵀ], [m, 0]] X: the flow
is one matrix Λ(t) of SO⁺(d, 1), whatever the number of points (derived; the layer is that of Measure-to-measure
interpolation using Transformers, arXiv:2411.04551). For V = cααᵀ it is a boost along α and one scalar is left.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

RTOL, ATOL = 1e-13, 1e-14
LONGEST = 4.0
"""|V| times the duration beyond which 1 + ⟨x, m⟩ has lost digits, e^{2|V|t} times; layers are integrated then."""


def lorentz_matrix(value: np.ndarray, points: np.ndarray, weights: np.ndarray, duration: float) -> np.ndarray:
    """Λ(t), (d + 1) × (d + 1), of the layer with value matrix V: Λ' = [[0, (Vm)ᵀ], [Vm, 0]] Λ, m = Σ wⱼ xⱼ(t)."""
    d = points.shape[1]
    lifted = np.column_stack([np.ones(len(points)), points])

    def rate(_: float, flat: np.ndarray) -> np.ndarray:
        boost = flat.reshape(d + 1, d + 1)
        moved = lifted @ boost.T
        pull = value @ (weights @ (moved[:, 1:] / moved[:, :1]))
        return np.vstack([pull @ boost[1:], np.outer(pull, boost[0])]).ravel()

    start = np.eye(d + 1).ravel()
    return solve_ivp(rate, (0.0, duration), start, "DOP853", rtol=RTOL, atol=ATOL).y[:, -1].reshape(d + 1, d + 1)


def apply_lorentz(matrix: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moved points and log|det DΦ| = -(d - 1) ln X₀ on the tangent spaces."""
    lifted = matrix[:, 0] + points @ matrix[:, 1:].T
    moved = lifted[:, 1:] / np.linalg.norm(lifted[:, 1:], axis=1, keepdims=True)
    return moved, -(points.shape[1] - 1) * np.log(lifted[:, 0])


def boosted(points: np.ndarray, axis: np.ndarray, rapidity: float) -> tuple[np.ndarray, np.ndarray]:
    """The boost of rapidity τ along a unit vector α, (x_⊥ + (sinh τ + u cosh τ)α)/(cosh τ + u sinh τ), and log|det|.

    Multiplied out with e^{±τ} so that neither u = ±1 nor a large τ cancels, and over e^{|τ|} so that nothing overflows.
    """
    flat, above, below = _split(points, axis)
    size = abs(rapidity)
    up, down = above * np.exp(rapidity - size), below * np.exp(-rapidity - size)
    scale = (up + down) / 2
    moved = (np.exp(-size) * flat + ((up - down) / 2)[:, None] * axis) / scale[:, None]
    return moved / np.linalg.norm(moved, axis=1, keepdims=True), -(points.shape[1] - 1) * (np.log(scale) + size)


def latitudes(points: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """artanh⟨x, α⟩, to all digits also next to ±α."""
    _, above, below = _split(points, axis)
    with np.errstate(divide="ignore"):
        return (np.log(above) - np.log(below)) / 2


def _split(points: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x_⊥, 1 + u and 1 - u, u = ⟨x, α⟩; the smaller of the two from |x_⊥|² = (1 + u)(1 - u), which does not cancel."""
    u = points @ axis
    flat = points - u[:, None] * axis
    square = np.sum(flat**2, axis=1)
    above, below = np.maximum(1 + u, 1.0), np.maximum(1 - u, 1.0)
    return flat, np.where(u < 0, square / below, above), np.where(u < 0, below, square / above)


def rapidity(strength: float, latitudes: np.ndarray, weights: np.ndarray, duration: float) -> float:
    """τ(t) of V = cααᵀ: τ' = c Σ wⱼ tanh(artanh uⱼ + τ), uⱼ = ⟨xⱼ, α⟩, τ(0) = 0."""

    def rate(_: float, tau: np.ndarray) -> np.ndarray:
        return strength * (weights @ np.tanh(latitudes + tau))[None]

    return float(solve_ivp(rate, (0.0, duration), [0.0], "DOP853", rtol=RTOL, atol=1e-16).y[0, -1])


def rank_one(value: np.ndarray) -> tuple[float, np.ndarray] | None:
    """(c, α) with V = cααᵀ and |α| = 1, or None if V is no such matrix."""
    norms = np.linalg.norm(value, axis=0)
    if not norms.any():
        return None
    axis = value[:, norms.argmax()] / norms.max()
    strength = float(axis @ value @ axis)
    exact = np.abs(value - strength * np.outer(axis, axis)).max() <= 8 * np.spacing(norms.max())
    return (strength, axis) if exact else None
