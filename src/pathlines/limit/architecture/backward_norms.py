"""Gradients through norms: what is left of the Gram matrix of gradients below x = γh/√(r²+ε) (derived).

The Jacobian is γ/√(r²+ε) (I − r²/(r²+ε) ĥĥᵀ), for LayerNorm also without the mean. A gradient that has no preferred
direction at that place loses the share (2 − K_ij² + [LayerNorm])/d of Γ_ij, K the cosines of h: inputs of branches and
the norm below the loss. Along a post-norm stream it loses nothing: the norm above has made it orthogonal to h already,
and taking the share off at each of 24 norms of width 256 would lose 12 % (tested).
"""

from __future__ import annotations

import numpy as np

from pathlines.architecture.record import Architecture


def below_norm(
    architecture: Architecture, gradients: np.ndarray, gram: np.ndarray, *, isotropic: bool = True, finite: bool = True
) -> np.ndarray:
    """Γ at the input of a norm, from Γ at its output and the Gram matrix per coordinate of its input; O(n²).

    ``isotropic``: the gradient has no preferred direction, so the one that the norm removes is lost. ``finite=False``
    lets d → ∞. ``gradients`` may be a stack of matrices.
    """
    a, powers = architecture, np.diag(gram)
    factor = a.norm_gain / np.sqrt(powers + a.norm_epsilon)
    found = factor[:, None] * gradients * factor
    if not (isotropic and finite):
        return found
    squares = gram**2 / (powers[:, None] * powers)
    return found * np.maximum(1 - (2 - squares + (a.norm == "layer")) / a.width, 0.0)
