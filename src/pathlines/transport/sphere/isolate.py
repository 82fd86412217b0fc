"""Collapse one prompt and leave all others as they are (building block B6).

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Lemma 3.3: with α₁ … α_{d-1} an orthonormal basis
of m^⊥, m the barycentre of the chosen prompt, the layers V = α_kα_kᵀ, B = 0 leave that prompt where it is and take all
others to the equator ⟂ m; a gate about m collapses the one; the layers reversed bring the others home. 2(d - 1) + 1
pieces.

The chosen prompt is an *unstable* equilibrium: p_k = ⟨m, α_k⟩, zero up to rounding, grows like e^{λ_k t} with λ_k =
E(1 - ⟨x, α_k⟩²), and a boost along one axis tilts m along another by E⟨x, α_j⟩⟨x, α_k⟩ (derived). Principal axes of the
prompt have none of these couplings, so that rounding grows in one layer only and not from layer to layer.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError, PathlinesWarning, finite_number, positive_integer, require
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.layer import Layer, layer
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.schedule import SphereSchedule

ROUNDING = 2.0**-52
DRIFT = 1e-6
"""Predicted drift of the chosen prompt beyond which a warning is given."""
CLEAR = 1.01
"""The gate's rim over the highest of the other tokens."""
COLLINEAR = 1e-6
"""Least part of another barycentre, of length one, that is orthogonal to m."""


class Isolated(NamedTuple):
    """The schedule, and its parts: layers that flatten the others, the gate; the drift that rounding leads to."""

    schedule: SphereSchedule
    layers: list[Layer]
    gate: Gate
    drift: float


def isolate(
    prompts: list[Measure], chosen: int, *, time: float = 6.0, gate_time: float = 10.0, axes: np.ndarray | None = None
) -> Isolated:
    """Pieces that collapse one prompt towards the direction of its barycentre and move no other.

    Args:
        prompts: measures in an open hemisphere (the lemma: in the positive orthant, ``to_orthant``).
        chosen: which of them is collapsed.
        time: T_k of each layer. The longer, the flatter the others and the more rounding moves the chosen one.
        gate_time: how long the gate is open. The longer, the smaller the chosen one, exponentially.
        axes: an orthonormal basis (d - 1, d) of m^⊥; principal axes by default.
    """
    d = prompts[0].points.shape[1]
    require(positive_integer("chosen", chosen, 0) < len(prompts), "chosen", f"be below {len(prompts)}", chosen)
    duration = finite_number("time", time, 0.0, open_low=True)
    m = prompts[chosen].weights @ prompts[chosen].points
    _require_apart(prompts, chosen, m)
    frame = principal_axes(prompts[chosen]) if axes is None else axes
    drift = rounding_drift(prompts[chosen], frame, duration)
    if drift > DRIFT:
        warnings.warn(
            f"The chosen prompt is an unstable equilibrium of its layers: rounding grows to {drift:.1g} in time "
            f"{duration:g}; take a shorter one (6 is enough for most) or principal axes.",
            PathlinesWarning,
            stacklevel=2,
        )
    layers = [layer(d, duration, V=np.outer(axis, axis)) for axis in frame]
    flat = SphereSchedule(d, layers).push([p for k, p in enumerate(prompts) if k != chosen])
    towards = m / np.linalg.norm(m)
    rim = CLEAR * max((float(np.abs(p.points @ towards).max()) for p in flat), default=0.0)
    lowest = float((prompts[chosen].points @ towards).min())
    if lowest <= rim:
        raise ArgumentError(
            f"Argument `time` must be longer than {duration:g}: the other prompts are still as high (|⟨m, x⟩| = "
            f"{rim:.2g}) as the chosen one ({lowest:.2g})."
        )
    piece = Gate(towards, -rim, towards, finite_number("gate_time", gate_time, 0.0))
    back = [step._replace(V=-step.V) for step in reversed(layers)]
    return Isolated(SphereSchedule(d, [*layers, piece, *back]), layers, piece, drift)


def principal_axes(prompt: Measure) -> np.ndarray:
    """An orthonormal basis (d - 1, d) of m^⊥ in which E⟨x, α_j⟩⟨x, α_k⟩ = 0 for j ≠ k."""
    m = prompt.weights @ prompt.points
    basis = np.linalg.qr(np.column_stack([m, np.eye(len(m))]))[0][:, 1:].T
    seen = prompt.points @ basis.T
    return np.linalg.eigh((prompt.weights[:, None] * seen).T @ seen)[1].T @ basis


def rounding_drift(prompt: Measure, axes: np.ndarray, time: float, start: float = ROUNDING) -> float:
    """The rapidity, about the distance in radians, by which the prompt moves if every ⟨m, α_k⟩ begins at ``start``.

    To first order τ_k = p_k(e^{λ_kT} - 1)/λ_k, and p_j grows by |E⟨x, α_j⟩⟨x, α_k⟩|τ_k in layer k. An estimate with the
    parts added up whatever their signs: one in twenty random prompts moved farther, by a factor of 1.7 at the most,
    since rounding goes on within a layer and second order is left out.
    """
    seen = prompt.points @ axes.T
    coupling = np.abs((prompt.weights[:, None] * seen).T @ seen)
    rates = 1 - np.diag(coupling)
    tilt, worst = np.full(len(axes), start), 0.0
    for k, rate in enumerate(rates):
        moved = tilt[k] * np.expm1(min(rate * time, 700.0)) / rate
        tilt = tilt + coupling[k] * moved
        worst = max(worst, float(moved))
    return worst


def _require_apart(prompts: list[Measure], chosen: int, m: np.ndarray) -> None:
    size = float(np.linalg.norm(m))
    if size < COLLINEAR:
        raise ArgumentError(f"Prompt {chosen} has its barycentre at the origin: it has no direction to collapse to.")
    for k, p in enumerate(prompts):
        other = p.weights @ p.points
        if k != chosen and np.linalg.norm(other - (other @ m) * m / size**2) < COLLINEAR:
            raise ArgumentError(
                f"Prompts {chosen} and {k} have collinear barycentres, which no layer tells apart: call "
                "`break_collinear` first."
            )
