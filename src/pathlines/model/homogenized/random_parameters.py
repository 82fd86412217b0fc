"""The numbers that decide what a random transformer does."""

from __future__ import annotations

import math
from typing import Any

import msgspec


class LayerParameters(msgspec.Struct, frozen=True):
    """Derived parameters of x ← N(x + (η/H) Σ_h V_h m_{A_h}(x)) (Homogenized Transformers, arXiv:2604.01978).

    ``variance_proxy`` ς² = σ_V²(d-1), ``noise`` α = ης²/H, ``layer_time`` v = (η²/H) d σ_V² (diffusive time τ = vℓ),
    ``logit_scale`` b = βσ_A²√p (standard deviation of one logit), ``effective_beta`` b√d (β d σ_A² at p = d).
    ``None`` where the law of the heads gives no closed form.
    """

    d: int
    heads: int
    step: float
    beta: float
    qk_dim: float
    sigma_v: float | None
    variance_proxy: float | None
    noise: float | None
    layer_time: float | None
    logit_scale: float | None
    effective_beta: float | None

    def diffusive_time(self, layers: Any) -> Any:
        """τ = v ℓ."""
        return math.nan if self.layer_time is None else self.layer_time * layers
