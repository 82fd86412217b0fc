"""Bring points together: caps collapsed by a gate, prompts clustered by attention (building blocks B3 and B4).

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Lemma B.2 with its sign corrected: the gate
that is open inside the ball B(z, R) is a = z, τ = -cos R (printed: U = -1zᵀ, b = cos R 1, which is open outside).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathlines.foundation.errors import finite_number
from pathlines.transport.sphere.gate import Gate, finite_hitting_time, gate_flow
from pathlines.transport.sphere.layer import Layer, layer
from pathlines.transport.sphere.measure import Measure

DIFFERENCE = 1e-7
"""Step of central differences: its square and rounding over it are both below 1e-8."""


def cap_gate(centre: np.ndarray, radius: float, duration: float, target: np.ndarray | None = None) -> Gate:
    """B3: the ball B(z, R) flows towards a point inside (its centre), the rest stands still; |ω| = 1/(1 - cos R).

    With that amplitude the radius shrinks like e^{-t} once the points are near the centre.
    """
    angle = finite_number("radius", radius, 0.0, np.pi, open_low=True)
    towards = centre if target is None else target
    return Gate(centre, -float(np.cos(angle)), towards / (1 - np.cos(angle)), duration)


def collapse(points: np.ndarray, centre: np.ndarray, radius: float, within: float) -> Gate:
    """The cap gate whose duration brings every given point of the ball within an angle of its centre."""
    piece = cap_gate(centre, radius, 0.0)
    return piece._replace(duration=max(finite_hitting_time(piece, x, within) for x in points))


def cluster_layer(d: int, duration: float, beta: float = 0.0) -> Layer:
    """B4: V = I, B = βI: every prompt in an open hemisphere collapses to a point of its own, its radius like e^{-t}."""
    return layer(d, duration, V=np.eye(d), B=beta * np.eye(d))


def centre(prompt: Measure) -> np.ndarray:
    """The unit vector along the mean."""
    mean = prompt.weights @ prompt.points
    return mean / np.linalg.norm(mean)


def radius(prompt: Measure, about: np.ndarray | None = None) -> float:
    """The root mean square distance of a prompt from its centre, which is W₂ to the Dirac mass there."""
    point = centre(prompt) if about is None else about
    return float(np.sqrt(prompt.weights @ np.sum((prompt.points - point) ** 2, axis=1)))


def first_order_radius(gates: Sequence[Gate], prompt: Measure) -> float:
    """The radius of a small prompt after gates, by their differential at its centre: what is left as it shrinks."""
    about, size = centre(prompt), radius(prompt)
    offsets = (prompt.points - about) / size
    offsets -= np.outer(offsets @ about, about)
    ends = []
    for sign in (1.0, -1.0):
        x = about + sign * DIFFERENCE * offsets
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for gate in gates:
            x = gate_flow(gate, x)
        ends.append(x)
    return size * float(np.sqrt(prompt.weights @ np.sum((ends[0] - ends[1]) ** 2, axis=1))) / (2 * DIFFERENCE)
