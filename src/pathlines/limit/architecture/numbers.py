"""The few numbers of an architecture that its Gram map needs (the dictionary to arXiv:2604.01978; derived).

x = norm(h) has Gram matrix X_ij = x_i·x_j/d. With heads of size p (values p'), H of them, and all matrices Gaussian,

    logit scale        b² = λ² p d² σ_Q²σ_K²       Cov(logit_ik, logit_jl) = b² X_ij X_kl
    attention power    a  = s² Hp' d σ_V²σ_O²      the branch has Gram a E[ΠXΠᵀ]
    perceptron power   a_m = s_m² w σ_2²           the branch has Gram a_m κ(X)
    pre-activations    σ_w² = d σ_1²               and d σ_g² of the gate

Queries and keys with norms of their own have b = λ√p and the cosines in place of X. A cap c on logits replaces b by
the root mean square of c tanh(bz/c). Products of matrices have the second moments of full ones; the inner sizes, d for
W_O and kv_heads·p' for W_V, decide the fluctuations.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from pathlines.architecture.record import Architecture

_NORMAL = np.linspace(-8.5, 8.5, 3401)  # the trapezoid rule is exact to rounding for caps ≥ b/50


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """b, p, a, a_m, σ_w, the gate's σ_w (0: not gated), and the sizes behind the fluctuations.

    ``dimension`` counts the directions of the stream, one less than the width where LayerNorm takes the mean away;
    ``value_size`` is kv_heads·p'.
    """

    b: float
    p: int
    attention: float
    perceptron: float
    sigma_w: float
    sigma_gate: float
    dimension: int
    value_size: int

    @classmethod
    def of(cls, architecture: Architecture) -> Numbers:
        """From a record."""
        a, sigma = architecture, architecture.deviations
        b = a.logit_multiplier * math.sqrt(a.head_dim)
        if not a.qk_norm:
            b *= a.width * sigma.query * sigma.key
        return cls(
            b=_capped(b, a.logit_cap),
            p=a.head_dim,
            attention=a.attention_residual**2 * a.attention_width * a.width * (sigma.value * sigma.output) ** 2,
            perceptron=a.mlp_residual**2 * a.mlp_width * sigma.mlp_out**2,
            sigma_w=math.sqrt(a.width) * sigma.mlp_in,
            sigma_gate=math.sqrt(a.width) * sigma.mlp_gate if a.gated else 0.0,
            dimension=max(1, a.width - (a.norm == "layer")),
            value_size=a.kv_heads * a.value_dim,
        )


def _capped(b: float, cap: float) -> float:
    if cap == 0 or b == 0:
        return b
    weights = np.exp(-(_NORMAL**2) / 2)
    return cap * float(np.sqrt(weights @ np.tanh(b * _NORMAL / cap) ** 2 / weights.sum()))
