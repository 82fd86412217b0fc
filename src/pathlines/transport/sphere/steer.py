"""Steer one point of many: x goes to y, every other point stays or returns (building blocks B1 and B1').

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Propositions 4.1 and 4.2, corrected: the
direction γ of the corridor is taken orthogonal to both x and y, or the gathering gates would move them. One gate
suffices wherever a hyperplane separates the arc from the others, which a linear program decides (derived).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from pathlines.transport.sphere.gate import Gate, gate_flow, hitting_time, least_opening, meridian

MARGIN = 1e-3
"""Least distance of a gate's rim from the arc and from the parked points; hitting times grow like its inverse."""
SLAB = 1e-4
"""Least |⟨γ, q⟩| of the parked points of a corridor."""
AMPLIFIED = 1e5
"""Largest factor by which gathering and restoring may multiply rounding errors."""
ARC = np.linspace(0.0, 1.0, 9)
DIRECTIONS = 2000
CUTS = 64
"""Parked points that a linear program begins with; those it violates are added until there are none."""
NEAR, ANCHOR = np.pi / 16, np.pi / 8
SAME = 1e-14


def angle_between(x: np.ndarray, y: np.ndarray) -> float:
    """The angle of two unit vectors, accurate for small and for flat angles."""
    return float(2 * np.arctan2(np.linalg.norm(x - y), np.linalg.norm(x + y)))


def arc_target(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """z on the great circle from x through y, η = min(1/2, (π - angle)/2) beyond y; and η."""
    angle = angle_between(x, y)
    tangent = y - (x @ y) * x
    tangent /= np.linalg.norm(tangent)
    beyond = min(0.5, (np.pi - angle) / 2)
    return np.cos(angle + beyond) * x + np.sin(angle + beyond) * tangent, beyond


def one_gate(x: np.ndarray, y: np.ndarray, parked: np.ndarray, margin: float = MARGIN) -> Gate | None:
    """B1': one gate that is open on the arc x → y and closed, by ``margin``, at all parked points; None if there is
    none.

    max μ subject to ⟨a, p⟩ + τ ≥ μ on nine points of the arc, ⟨a, q⟩ + τ ≤ -μ at the parked points, |aᵢ| ≤ 1.
    """
    angle = angle_between(x, y)
    if angle < SAME or angle > np.pi - 1e-3:
        return None
    z, beyond = arc_target(x, y)
    tangent = (z - (x @ z) * x) / np.linalg.norm(z - (x @ z) * x)
    arc = np.cos(angle * ARC)[:, None] * x + np.sin(angle * ARC)[:, None] * tangent
    found = _separated(arc, parked, margin)
    if found is None:
        return None
    a, tau = found
    piece = Gate(a, tau, z, 0.0)
    way = meridian(x[None], a, z)
    if least_opening(float(way.angle[0]), beyond, way.along, float(way.across[0]), tau) < margin / 2:
        return None  # it nearly closes between two of the nine points
    time = float(hitting_time(piece, x[None], beyond)[0])
    return piece._replace(duration=time) if np.isfinite(time) else None


def _separated(arc: np.ndarray, parked: np.ndarray, margin: float) -> tuple[np.ndarray, float] | None:
    """(a, τ) of the widest margin, by adding violated points until none is left."""
    chosen = np.argsort(-(parked @ arc.mean(axis=0)))[:CUTS]
    while True:
        a, tau, width = _widest(arc, parked[chosen])
        if width < margin:
            return None
        opening = parked @ a + tau
        violated = np.setdiff1d(np.flatnonzero(opening > -width * (1 - 1e-9)), chosen)
        if not len(violated):
            return a, tau
        chosen = np.concatenate([chosen, violated[np.argsort(-opening[violated])][:CUTS]])


def _widest(arc: np.ndarray, parked: np.ndarray) -> tuple[np.ndarray, float, float]:
    d = arc.shape[1]
    rows = np.vstack(
        [
            np.column_stack([-arc, -np.ones(len(arc)), np.ones(len(arc))]),
            np.column_stack([parked, np.ones(len(parked)), np.ones(len(parked))]),
        ]
    )
    cost = np.zeros(d + 2)
    cost[-1] = -1.0
    bounds = [(-1.0, 1.0)] * d + [(-float(d), float(d)), (-1.0, 1.0)]
    found = linprog(cost, rows, np.zeros(len(rows)), bounds=bounds, method="highs")
    return (found.x[:d], float(found.x[d]), float(found.x[-1])) if found.success else (np.zeros(d), 0.0, -1.0)


def corridor(x: np.ndarray, y: np.ndarray, parked: np.ndarray, rng: np.random.Generator) -> list[Gate] | None:
    """B1: gather the parked points about ω by two gates, send x to y past them, restore; five pieces.

    None if the points are in the way: no γ ⟂ x, y keeps |⟨γ, q⟩| > 1e-4, or rounding would be amplified 10⁵ times.
    """
    angle = angle_between(x, y)
    if angle < SAME or angle > np.pi - 1e-3:
        return None
    return corridor_along(_direction(x, y, parked, rng), x, y, parked)


def corridor_along(gamma: np.ndarray, x: np.ndarray, y: np.ndarray, parked: np.ndarray) -> list[Gate] | None:
    """The corridor whose slab is |⟨γ, ·⟩| ≤ ε/2, ε the least |⟨γ, q⟩| of the parked points; γ ⟂ x, y keeps both in."""
    width = float(np.abs(parked @ gamma).min()) if len(parked) else 1.0
    omega = -(x + y) / np.linalg.norm(x + y)
    gathering = None if width < SLAB else _gathered(parked, gamma, omega, width)
    if gathering is None:
        return None
    z, beyond = arc_target(x, y)
    middle = Gate(-omega, float(np.cos(NEAR + ANCHOR)), z, 0.0)
    time = float(hitting_time(middle, x[None], beyond)[0])
    if not np.isfinite(time):
        return None
    back = [piece._replace(omega=-piece.omega) for piece in reversed(gathering)]
    return [*gathering, middle._replace(duration=time), *back]


def _gathered(parked: np.ndarray, gamma: np.ndarray, omega: np.ndarray, width: float) -> list[Gate] | None:
    """Gates that bring the parked points of either side of the slab near ω; None where that takes for ever."""
    pieces, amplified = [], 1.0
    for sign in (1.0, -1.0):
        anchor = np.cos(ANCHOR) * omega + sign * np.sin(ANCHOR) * gamma
        piece = Gate(sign * gamma, -width / 2, anchor, 0.0)
        moving = piece.opening(parked) > 0
        if not moving.any():
            continue
        time = float(hitting_time(piece, parked[moving], NEAR).max())
        if not np.isfinite(time):
            return None
        piece = piece._replace(duration=time)
        before = np.sin(meridian(parked[moving], piece.a, anchor).angle)
        parked = gate_flow(piece, parked)
        after = np.sin(meridian(parked[moving], piece.a, anchor).angle)
        amplified = max(amplified, float((before / np.maximum(after, 1e-300)).max()))
        if time > 0:
            pieces.append(piece)
    return None if amplified > AMPLIFIED else pieces


def _direction(x: np.ndarray, y: np.ndarray, parked: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """γ ⟂ x, y with the largest min |⟨γ, q⟩| of many random ones (in d = 3 there is one, up to its sign)."""
    d = len(x)
    frame = np.linalg.qr(np.column_stack([x, y]))[0]
    count = 1 if d == 3 else DIRECTIONS
    drawn = rng.standard_normal((count, d))
    drawn -= (drawn @ frame) @ frame.T
    drawn -= (drawn @ frame) @ frame.T
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    if not len(parked):
        return drawn[0]
    return drawn[np.abs(drawn @ parked.T).min(axis=1).argmax()]
