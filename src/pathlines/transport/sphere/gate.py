"""The gate: the one perceptron that steering on the sphere needs, solved exactly.

ẋ = (⟨a, x⟩ + τ)₊ P_x ω moves the open cap ⟨a, x⟩ > -τ along great circles towards ω and nothing else; as a layer it
is W = ω1ᵀ/d, U = 1aᵀ, b = τ1 (Measure-to-measure interpolation using Transformers, arXiv:2411.04551; the flow, the
hitting time and the Jacobian in closed form are derived).

Write x = cos φ o + sin φ e with o = ω/|ω| and e ⟂ o, which does not move. With g(φ) = (A cos φ + B sin φ + τ)₊, A =
⟨a, o⟩, B = ⟨a, e⟩, the latitude y = ln tan(φ/2) solves y' = -|ω| g, one scalar equation for each point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad, solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, require

RTOL, ATOL = 1e-13, 1e-14
LOST = 1e-13
"""Estimated error of a latitude or a time beyond which the antiderivative has lost too many digits."""
UNSURE = 1e-3
"""Relative error of a quadrature next to the rim, where rounding of the point itself counts for as much, beyond which a
time counts as infinite."""
NEAR_RIM = 1e-5
"""Opening, in units of |a|, below which it is followed in time: it has eleven digits there, ever fewer below."""
NEWTON = 100
CANCELLED = 1e5
"""(|τ| + |A|)/|τ ± A| beyond which logarithms that nearly cancel are not trusted."""


class Meridian(NamedTuple):
    """Points in polar coordinates about o: angle φ, direction e, and the gate along their great circles (A, B)."""

    angle: np.ndarray
    direction: np.ndarray
    along: float
    across: np.ndarray


class Gate(NamedTuple):
    """ẋ = (⟨a, x⟩ + τ)₊ P_x ω for a duration; the cap ⟨a, x⟩ > -τ is open, the rest stands still."""

    a: np.ndarray
    tau: float
    omega: np.ndarray
    duration: float

    def opening(self, points: np.ndarray) -> np.ndarray:
        """(⟨a, x⟩ + τ)₊ of each point."""
        return np.maximum(points @ self.a + self.tau, 0.0)


def gate(a: object, tau: object, omega: object, duration: object) -> Gate:
    """A checked gate; ω ≠ 0, duration ≥ 0."""
    normal = finite_array("a", a, ("d",)).astype(float)
    target = finite_array("omega", omega, (len(normal),)).astype(float)
    require(bool(np.any(target)), "omega", "have a direction (ω ≠ 0)", target)
    return Gate(normal, finite_number("tau", tau), target, finite_number("duration", duration, 0.0))


def meridian(points: np.ndarray, a: np.ndarray, omega: np.ndarray) -> Meridian:
    """Polar coordinates of points about ω/|ω|; at the poles, where nothing moves, e = 0."""
    o = omega / np.linalg.norm(omega)
    height = points @ o
    flat = points - height[:, None] * o
    flat -= (flat @ o)[:, None] * o  # once more: the first difference leaves a rounding error along o
    sine = np.linalg.norm(flat, axis=1)
    e = np.divide(flat, sine[:, None], out=np.zeros_like(flat), where=sine[:, None] > 0)
    return Meridian(np.arctan2(sine, height), e, float(a @ o), e @ a)


def gate_flow(piece: Gate, points: np.ndarray) -> np.ndarray:
    """The points after the duration, each on its great circle."""
    return gate_flow_and_jacobian(piece, points)[0]


def gate_flow_and_jacobian(piece: Gate, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moved points and log|det DΦ| on the tangent spaces, of dimension d - 1:

    ln g(φ_t)/g(φ_0) + (d - 1) ln sin φ_t/sin φ_0 where the gate is open, else 0; at ±o its limit ∓(d - 1)|ω| g t.
    """
    moved, logdet = points.copy(), np.zeros(len(points))
    opening = piece.opening(points)
    active = opening > 0
    if not active.any() or piece.duration == 0:
        return moved, logdet
    m, dimensions = meridian(points[active], piece.a, piece.omega), points.shape[1] - 1
    strength = float(np.linalg.norm(piece.omega))
    inside = (np.sin(m.angle) > 0) & (m.direction**2).any(axis=1)
    y = np.where(inside, np.log(np.tan(np.where(inside, m.angle, 1.0) / 2)), 0.0)
    late = _latitudes(y, m.along, m.across, piece.tau, strength * piece.duration)
    cosine, sine = -np.tanh(late), 1 / np.cosh(late)
    o = piece.omega / strength
    new = cosine[:, None] * o + sine[:, None] * m.direction
    moved[active] = np.where(inside[:, None], new / np.linalg.norm(new, axis=1, keepdims=True), points[active])
    shut = _log_opening(y, late, m.along, m.across, piece.tau, strength * piece.duration)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = shut - np.log(opening[active]) + dimensions * (_log_sech(late) - _log_sech(y))
    pole = -dimensions * strength * opening[active] * piece.duration * np.sign(np.cos(m.angle))
    logdet[active] = np.where(inside, change, pole)
    return moved, logdet


def _log_opening(
    y: np.ndarray, late: np.ndarray, along: float, across: np.ndarray, tau: float, time: float
) -> np.ndarray:
    """ln g at the latitude ``late``, reached from y; next to the rim y*, where g cancels, from the time that is left.

    (ln g)' = -g_y(y), so that from y₁ = y* + h on, reached at time t₁, ln g falls by
    g_y(y*)(t - t₁) + g_yy(y*)(y₁ - y)/g_y(y*), up to O(h²).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        plain, rim = np.log(np.maximum(_opening(late, along, across, tau), 0)), _rim(y, along, across, tau)
        sech, tanh = 1 / np.cosh(np.clip(rim, -700, 700)), np.tanh(rim)
        slope = -across * sech * tanh - along * sech**2
        bend = across * sech * (tanh**2 - sech**2) + 2 * along * sech**2 * tanh
        size = np.abs(across) + abs(along)
        beside = np.minimum(rim + NEAR_RIM * size / slope, y)
        spent = antiderivative(y, along, across, tau)[0] - antiderivative(beside, along, across, tau)[0]
        less = slope * (time - spent) + bend * (beside - late) / slope
        followed = np.log(_opening(beside, along, across, tau)) - less
    follow = (slope > NEAR_RIM * size) & (late < beside) & np.isfinite(followed)
    return np.where(follow, followed, plain)


def _log_sech(y: np.ndarray) -> np.ndarray:
    return np.log(2.0) - np.logaddexp(y, -y)


def _latitudes(y: np.ndarray, along: float, across: np.ndarray, tau: float, time: float) -> np.ndarray:
    """y(t): Newton's method on F(y) = F(y₀) - t between safe ends; by a Runge-Kutta method where F has lost digits."""
    start, blur = antiderivative(y, along, across, tau)
    low, high = np.maximum(_rim(y, along, across, tau), y - time * (tau + np.hypot(along, across))), y.copy()
    late = np.clip(y - time * _opening(y, along, across, tau), (low + high) / 2, high)
    for _ in range(NEWTON):
        value, blurs = antiderivative(late, along, across, tau)
        with np.errstate(invalid="ignore"):
            excess = value - (start - time)
            step = late - excess * _opening(late, along, across, tau)
        low, high = np.where(excess > 0, low, late), np.where(excess > 0, late, high)
        new = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        settled = np.abs(new - late) <= 4e-16 * np.maximum(np.abs(new), 1.0)
        late = new
        if settled.all():
            break
    opening = np.maximum(_opening(late, along, across, tau), 0)
    lost = ~(np.maximum(blur, blurs) * opening < LOST) | ~np.isfinite(late) | ~settled
    if lost.any():
        late[lost] = _integrated(y[lost], along, across[lost], tau, time)
    return late


def _rim(y: np.ndarray, A: float, B: np.ndarray, tau: float) -> np.ndarray:
    """The latitude below y at which the gate closes, -∞ if it does not: the nearest root of Q(s)."""
    q, r, s = tau - A, tau + A, np.exp(np.minimum(y, 350.0))
    root = np.sqrt(np.maximum(B * B - q * r, 0.0))
    half = -(B + np.where(B >= 0, root, -root))  # both roots without cancellation: half/q and r/half
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.stack([half / q, r / half])
        below = np.where((roots > 0) & (roots < s) & (q * r <= B * B), roots, 0.0)
        return np.log(below.max(axis=0))


def _integrated(y: np.ndarray, along: float, across: np.ndarray, tau: float, time: float) -> np.ndarray:
    """y' = -(A cos φ + B sin φ + τ)₊, cos φ = -tanh y, sin φ = 1/cosh y."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return -np.maximum(_opening(y, along, across, tau), 0.0)

    return solve_ivp(rate, (0.0, time), y, "DOP853", rtol=RTOL, atol=ATOL).y[:, -1]


def hitting_time(piece: Gate, points: np.ndarray, angle: float) -> np.ndarray:
    """When each point is at ``angle`` from ω: (F(s₀) - F(s₁))/|ω|, s = tan(φ/2), F' = (1 + s²)/(sQ(s)).

    Q(s) = (τ - A)s² + 2Bs + (τ + A). ∞ where the gate closes on the way; 0 for points that are already nearer.
    The duration of the piece plays no role.
    """
    m, strength = meridian(points, piece.a, piece.omega), float(np.linalg.norm(piece.omega))
    found = np.zeros(len(points))
    for k in np.flatnonzero(m.angle > angle):
        found[k] = _arc_time(float(m.angle[k]), angle, m.along, float(m.across[k]), piece.tau) / strength
    return found


def _arc_time(start: float, end: float, A: float, B: float, tau: float) -> float:
    if end <= 0 or start >= np.pi or least_opening(start, end, A, B, tau) <= 0:
        return np.inf
    y = np.log(np.tan(np.array([start, end]) / 2))
    (before, after), blur = antiderivative(y, A, np.full(2, B), tau)
    if np.isfinite(blur).all() and blur.max() < LOST * (before - after):
        return before - after
    slowness = lambda y: 1 / _opening(y, A, B, tau)  # noqa: E731
    value, error = quad(slowness, y[1], y[0], epsabs=0, epsrel=1e-13, limit=500, full_output=1)[:2]
    return value if error < UNSURE * value else np.inf


def _opening(y: Any, A: float, B: Any, tau: float) -> Any:
    """A cos φ + B sin φ + τ, cos φ = -tanh y, sin φ = 1/cosh y."""
    return B / np.cosh(np.clip(y, -700, 700)) - A * np.tanh(y) + tau


def least_opening(start: float, end: float, A: float, B: float, tau: float) -> float:
    """The smallest A cos φ + B sin φ + τ between two angles: at an end, or at the trough of the wave between them."""
    ends = min(A * np.cos(phi) + B * np.sin(phi) + tau for phi in (start, end))
    trough = np.arctan2(-B, -A)
    low, high = sorted((start, end))
    return float(min(ends, tau - np.hypot(A, B)) if low <= trough <= high else ends)


def antiderivative(y: np.ndarray, A: float, B: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """F = ∫(1 + s²)/(sQ) ds at s = e^y, and an estimate of its rounding error; ∞ for τ ± A near 0 (quadrature then).

    With q = τ - A, r = τ + A, Δ = B² - qr: F = ln(s)/r + (A/(rq)) ln|Q| - (2B/r)(1 + A/q) H(s), where H is
    ln|(qs + B - √Δ)/(qs + B + √Δ)|/(2√Δ), arctan((qs + B)/√-Δ)/√-Δ or -1/(qs + B); simpler for q = 0.
    """
    q, r, s = tau - A, tau + A, np.exp(np.minimum(y, 350.0))
    if r == 0:
        return np.full_like(y, np.inf), np.full_like(y, np.inf)
    alpha, beta, gamma = 1 / r, 2 * A / r, -2 * B / r
    with np.errstate(divide="ignore", invalid="ignore"):
        quadratic, parts = q * s * s + 2 * B * s + r, abs(q) * s * s + 2 * np.abs(B) * s + abs(r)
        log_quadratic, blurred = np.log(np.abs(quadratic)), parts / np.abs(quadratic)
        if q != 0:
            turning, blur = _inverse_quadratic(s, q, B, r)
            factors: list[Any] = [alpha, beta / (2 * q), gamma - beta * B / q]
            functions, blurs = [y, log_quadratic, turning], [0.0, blurred, blur]
        else:
            straight = (beta * s * s / 2 + gamma * s) / r
            factors = [alpha, np.where(B == 0, 1.0, beta / (2 * B)), gamma / (2 * B) - beta * r / (4 * B * B)]
            factors[2] = np.where(B == 0, 0.0, factors[2])
            functions, blurs = [y, np.where(B == 0, straight, s), log_quadratic], [0.0, 0.0, blurred]
        terms = [f * v for f, v in zip(factors, functions)]
        cancelled = (abs(tau) + abs(A)) * (1 / abs(r) + (1 / abs(q) if q else 0.0))
        if cancelled > CANCELLED:
            return np.full_like(y, np.inf), np.full_like(y, np.inf)
        error = sum(np.abs(t) * (1 + cancelled) + np.abs(f) * b for t, f, b in zip(terms, factors, blurs))
        total = sum(terms, np.zeros_like(y))
    return total, np.spacing(1.0) * np.nan_to_num(error, nan=np.inf)


def _inverse_quadratic(s: np.ndarray, q: float, B: np.ndarray, r: float) -> tuple[np.ndarray, np.ndarray]:
    """H(s) = ∫ ds/(qs² + 2Bs + r), q ≠ 0, and by how much a relative error of the coefficients blurs it."""
    delta, at = B * B - q * r, q * s + B
    root, sizes = np.sqrt(np.abs(delta)), np.abs(q) * s + np.abs(B)
    real, complex_ = np.log(np.abs((at - root) / (at + root))) / (2 * root), np.arctan(at / root) / root
    nearest = np.minimum(np.abs(at - root), np.abs(at + root))
    blur = np.where(delta > 0, (sizes + root) / nearest, 1 + sizes / root) / (2 * root)
    blur += (B * B + abs(q * r)) / np.abs(delta) * np.abs(np.where(delta > 0, real, complex_))
    return np.where(delta > 0, real, np.where(delta < 0, complex_, -1 / at)), blur


def finite_hitting_time(piece: Gate, point: np.ndarray, angle: float) -> float:
    """The hitting time of one point; an error where it diverges."""
    time = float(hitting_time(piece, point[None], angle)[0])
    if not np.isfinite(time):
        raise ArgumentError(
            f"The hitting time diverges: the arc from {np.round(point, 4).tolist()} to angle {angle:.4g} of ω touches "
            "the rim of the gate; widen the gate or take another ω."
        )
    return time
