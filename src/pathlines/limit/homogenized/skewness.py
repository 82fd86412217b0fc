"""What a skew law of heads adds to the weak error: the third moment of a layer, to leading order.

A layer moves tokens by (η/H) Σ_h ξ_h besides its mean, with third moment H(η/H)³ E[ξ⊗ξ⊗ξ], which the SDE does not have.
Over T/η layers this leaves (Homogenized Transformers, arXiv:2604.01978, has the chain; the expansion is derived)

    E φ(X^L) - E φ(X(T)) = C √(η/H) + …,   C = ∫_0^T E[(A u_t)(X(t))] dt,   u_t(x) = E[φ(X(T)) | X(t) = x],
    (A u)(x) = (1/6) Σ_a p_a d³/ds³ u(N(x + s ζ_a)) at s = 0,   ζ_a = √(η/H) ξ_a   (P ξ_a for the tangent update).

With a fixed law ζ ∝ √(η/H), so that this is of order (η/H)² and one part of the second-order error; where ζ does not
depend on η (α = O(1)) it is the leading error, of order one half.
"""

from __future__ import annotations

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number
from pathlines.limit.homogenized.cubature import Expectation, Function, extrapolated, leaf_average, stepped
from pathlines.limit.homogenized.finite_law import FiniteLawSDE, HeadFields, tangent, unit

STENCIL = ((-2, -0.5), (-1, 1.0), (1, -1.0), (2, 0.5))
"""Points and weights of the third difference, for a spacing of one."""

SPACING = 0.005


def skewness_coefficient(sde: FiniteLawSDE, start: np.ndarray, until: float, function: Function) -> Expectation:
    """C and its error, by cubature before and after the third difference, with Simpson's rule in t.

    Trees of 4 and 6 steps are extrapolated; the error is the distance from the extrapolation of 2 and 4. The third
    difference errs by about 1e-4|ζ|². Trees must resolve third derivatives of u: at n = 4, d = 3, T = 1.2 the error is
    1 % for |ζ| about 0.25 and more than C itself at 0.5.
    """
    x = unit(finite_array("start", start, ("n", "d")).astype(float))
    until = finite_number("until", until, 0.0, open_low=True)
    two, four, six = (_on_one_tree(sde, x, until, function, k) for k in (2, 4, 6))
    value = extrapolated((4, 6), four, six)
    return Expectation(value, np.abs(value - extrapolated((2, 4), two, four)))


def _on_one_tree(sde: FiniteLawSDE, start: np.ndarray, until: float, function: Function, steps: int) -> np.ndarray:
    length = until / steps
    simpson = np.where(np.arange(steps + 1) % 2 == 1, 4.0, 2.0)
    simpson[[0, -1]] = 1.0
    x, weights = start[..., None], np.ones(1)
    total = 0.0
    for done, share in enumerate(simpson * length / 3):
        leaves, signed = _third_difference(sde, x, weights)
        total = total + share * leaf_average(sde, leaves, signed, length, steps - done, function)
        x, weights = stepped(sde, x, weights, length) if done < steps else (x, weights)
    return np.asarray(total)


def _third_difference(sde: FiniteLawSDE, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points N(x + sζ_a) of every leaf and their signed weights."""
    fields, p = HeadFields(sde, x).fields, sde.probabilities
    moves = np.sqrt(sde.step / sde.heads) * (fields - np.tensordot(p, fields, 1))
    if sde.update == "tangent":
        moves = tangent(x, moves)
    branches = [(a, k, w) for a in range(len(p)) for k, w in STENCIL]
    leaves = [unit(x + SPACING * k * moves[a]) for a, k, _ in branches]
    signed = [weights * p[a] * w / (6 * SPACING**3) for a, _, w in branches]
    return np.concatenate(leaves, axis=-1), np.concatenate(signed)
