"""Measures on the sphere in closed form: the uniform arc, the cap that collapses, what one map cannot do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE

SOURCES = (MEASURE_TO_MEASURE,)
SMALL = 1e-4


def arc_mean(rapidity: ArrayLike, half_width: float) -> np.ndarray:
    """|mean| of a uniform arc of half-width ℓ < π after a boost of rapidity τ towards its middle (derived).

    α(τ) = coth τ - 2/(ℓ sinh τ) · arctan(e^{-τ} tan(ℓ/2)), α(0) = sin ℓ/ℓ (arXiv:2411.04551, Example 6.1).
    """
    ell = finite_number("half_width", half_width, 0.0, np.pi, open_low=True)
    tau = real_array("rapidity", rapidity, 0.0)
    safe = np.maximum(tau, SMALL)
    value = 1 / np.tanh(safe) - 2 / (ell * np.sinh(safe)) * np.arctan(np.exp(-safe) * np.tan(ell / 2))
    start = np.sin(ell) / ell
    slope = 0.5 - np.sin(2 * ell) / (4 * ell)  # dα/dτ at 0 is E[1 - u²], u = cos of a uniform angle
    return np.where(tau < SMALL, start + slope * tau, value)


def arc_rapidity(times: ArrayLike, half_width: float) -> np.ndarray:
    """τ(t) of the uniform arc under V = I, B = 0: τ' = α(τ), τ(0) = 0; times increase."""
    when = real_array("times", times, 0.0)
    found = solve_ivp(
        lambda _, tau: arc_mean(np.maximum(tau, 0.0), half_width),
        (0.0, float(when.max(initial=0.0)) + 1e-12),
        [0.0],
        "DOP853",
        t_eval=when,
        rtol=1e-12,
        atol=1e-13,
    )
    return found.y[0]


def arc_edge(rapidity: ArrayLike, half_width: float) -> np.ndarray:
    """The angle 2 arctan(e^{-τ} tan(ℓ/2)) of the end of the arc."""
    return 2 * np.arctan(np.exp(-real_array("rapidity", rapidity)) * np.tan(half_width / 2))


def cap_deficit(rapidity: ArrayLike, radius: float) -> np.ndarray:
    """1 - |mean| of the uniform law on B(z, R) ⊂ S² after a boost of rapidity τ towards z (derived).

    cos φ is uniform on [k, 1], k = cos R: |mean| = coth τ - ln(e^τ/(cosh τ + k sinh τ))/((1 - k) sinh² τ).
    """
    k = float(np.cos(finite_number("radius", radius, 0.0, np.pi, open_low=True)))
    tau = real_array("rapidity", rapidity, 0.0)
    x, w = np.polynomial.legendre.leggauss(20)
    heights = (1 + k + (1 - k) * x) / 2
    near = 1 - np.tanh(np.arctanh(heights) + np.minimum(tau, 1.0)[..., None]) @ w / 2  # by nodes: the logarithm cancels
    q = np.exp(-2 * np.maximum(tau, 1.0))
    late = 4 * q / (1 - q) ** 2 * np.log(2 / (1 + k + (1 - k) * q)) / (1 - k) - 2 * q / (1 - q)
    return np.where(tau < 1.0, near, late)


def cap_clustering(times: ArrayLike, radius: float) -> np.ndarray:
    """The root mean square distance from its centre of that law under V = I, B = 0: √(2(1 - |mean|)), τ' = |mean|.

    Late, 1 - |mean| ≈ c e^{-2τ} with c = 4 ln(2/(1 + k))/(1 - k) - 2 and τ ≈ t: e^t times the radius becomes constant.
    """
    when = real_array("times", times, 0.0)
    end = (0.0, float(when.max(initial=0.0)) + 1e-12)
    rate = lambda _, tau: 1 - cap_deficit(np.maximum(tau, 0.0), radius)  # noqa: E731
    tau = solve_ivp(rate, end, [0.0], "DOP853", t_eval=when, rtol=1e-12, atol=1e-13).y[0]
    return np.sqrt(2 * cap_deficit(tau, radius))


def cap_distance(times: ArrayLike, radius: float, nodes: int = 400) -> np.ndarray:
    """W₂(μ(t), δ_z) of the uniform law on B(z, R) ⊂ S² under the gate a = z, τ = -cos R, ω = z (derived).

    c = cos φ solves c' = (c - cos R)(1 - c²) and is uniform on [cos R, 1] at the start; W₂² = E 2(1 - c), by Gauss
    nodes in c. The more nodes, the later the times at which the last points by the rim are resolved.
    """
    rim = float(np.cos(finite_number("radius", radius, 0.0, np.pi, open_low=True)))

    def clock(v: float) -> float:
        """∫dc/((c - k)(1 - c²)) by partial fractions, c = 1 - e^v, with the poles k and -1 taken together."""
        gap, slit = np.exp(v), 1 + rim
        poles = np.log1p(-slit / (2 - gap)) / slit if slit > 0 else -1 / (2 - gap)
        return 0.5 * (poles + (np.log(1 - rim - gap) - v) / (1 - rim))

    def later(start: float, t: float) -> float:
        """1 - c(t) of a point with 1 - c(0) = e^start."""
        target, floor = clock(start) + t, start - 4 * t
        return float(np.exp(brentq(lambda v: clock(v) - target, floor, start, xtol=1e-12))) if t > 0 else np.exp(start)

    x, w = np.polynomial.legendre.leggauss(positive_integer("nodes", nodes))
    starts = np.log((1 - rim) * (1 - x) / 2)
    when = np.atleast_1d(real_array("times", times, 0.0))
    return np.array([np.sqrt(sum(wk * later(c, t) for c, wk in zip(starts, w, strict=True))) for t in when])


def least_without_attention(angle: float, mass: float) -> float:
    """The least possible max_i W₂ of two prompts that share an atom, moved by one map of points (derived).

    The atom has one image; of two targets whose supports are an angle θ apart one is at least θ/2 from it, so that
    max W₂ ≥ 2 sin(θ/4)√mass, which is ≥ D√mass/2 for the chord D. It is attained half-way.
    """
    theta = finite_number("angle", angle, 0.0, np.pi)
    return float(2 * np.sin(theta / 4) * np.sqrt(finite_number("mass", mass, 0.0, 1.0)))
