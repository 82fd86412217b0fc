"""How far one seed's gradient norm is from the prediction: fluctuations of ln‖g‖², which add over branches (derived).

A branch of e inner units turns Γ' into Γ_s + Γ_b (skip and branch); in width d

    Var ln t += (2/d) [2⟨Γ_s,Γ_b⟩ + (1 + d/e)⟨Γ_b,Γ_b⟩]/(tr Γ_s + tr Γ_b)²
    post      += (2/d) Σ_ij ω_iω_j [2α²G_ijF_ij + (1 + d/e)F_ij²]/(Ȳ_iiȲ_jj),    ω_i = Γ'_ii/t, Ȳ = α²G + F.

The last comes from the lengths that the norm divides by. Within 10 % of what seeds show where branches are small; a
third too small for independent gradients and branches of the stream's own size (fluctuations that are carried are left
out).
"""

from __future__ import annotations

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward_tape import Sublayer
from pathlines.limit.architecture.layer import LayerMap

HIDDEN_SHARE = 0.4
"""Units of a perceptron that count: one over the relative fourth moment of relu or gelu units, less one."""


def fresh_variance(
    a: Architecture, maps: LayerMap[AttendedGram], sub: Sublayer, top: np.ndarray, kept: np.ndarray, inward: np.ndarray
) -> float:
    """What one branch adds to Var ln tr Γ; ``top`` is Γ', ``kept`` and ``inward`` are Γ_s and Γ_b."""
    d = a.width
    total = float(np.trace(kept) + np.trace(inward))
    if total <= 0:
        return 0.0
    e = HIDDEN_SHARE * a.mlp_width if sub.kind == "perceptron" else float(maps.numbers.value_size)
    both, own = float(np.sum(kept * inward)), float(np.sum(inward * inward))
    found = 2 / d * (2 * both + (1 + d / e) * own) / total**2
    if a.placement != "post":
        return found
    omega = np.diag(top) / max(float(np.trace(top)), 1e-300) / sub.after.powers
    lengths = 2 * a.skip**2 * sub.stream.gram * sub.branch + (1 + d / e) * sub.branch**2
    return found + 2 / d * float(omega @ lengths @ omega)
