"""Gaussian token clouds under l2 and Sinkhorn attention, in forms without an inverse."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.papers import UNIFIED
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.gaussian.closure import (
    PREFIX,
    Factor,
    GaussianClosure,
    Scalar,
    Vector,
    matrices,
    product,
    stacked_heads,
)
from pathlines.numerics.jacobi import COUPLING, RESOLVENT, damped


class L2Gaussian(GaussianClosure):
    """Weights ∝ e^{-|Qx-Ky|²}:  α' = C Tα + B α,  L' = B L,  B = 2CSKᵀQ,  S = (Σ^{-1} + 2KᵀK)^{-1},  T = I - 2SKᵀK.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, equation for l2 attention (no 1/2, no
    temperature; ``scale`` multiplies Q alone). With M = (KL)ᵀ: SKᵀ = L(I + 2MMᵀ)^{-1}M, formed from rotated rows
    of M, never from an inverse. You will see exponential growth where softmax explodes if K is injective; if it is not,
    blow-up is possible. Good values: as softmax, p ≤ d. Cost O(H d²(d+p+r)) and a few Jacobi sweeps.
    """

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """E[y | x] = Tα + 2SKᵀQx; pace 2|SKᵀ||Q|, bounded when K is injective, whatever Σ."""
        pull = product(factor, damped(RESOLVENT, product(key, factor).T)[1])
        pace = 2 * _length(pull) * _length(query)
        return mean + 2 * (pull @ ((query - key) @ mean)), 2 * product(pull, product(query, factor)), pace


class SinkhornGaussian(GaussianClosure):
    """L' = c Σ_h C_h L h(m_h),  m = LᵀAL/ε = U s Wᵀ,  h(m) = U ρ Wᵀ,  ρ_i = 2s_i/(1 + √(1 + 4s_i²));  α' = c Σ_h C_h α.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; doubly stochastic attention of
    Sinkformers, arXiv:2110.11773. ρ_i < 1 are the canonical correlations of the plan. ``prefactor`` "1/eps" is the
    paper's (then V = A = Aᵀ is a gradient flow), "1" runs ε times slower. You will see growth of at most e^{2c|V|t}:
    never a blow-up. Good values: eps = 0.5..2. Cost O(H d²(d+r)) and a few Jacobi sweeps.
    """

    eps: Float[Array, ""]
    factor_c: Float[Array, ""]

    def __init__(
        self,
        value: Any,
        query: Any = None,
        key: Any = None,
        scale: float = 1.0,
        eps: float = 1.0,
        prefactor: str = "1/eps",
    ) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)
        number = finite_number("eps", eps, 0.0, open_low=True)
        require(prefactor in ("1/eps", "1"), "prefactor", "be '1/eps' or '1'", prefactor)
        self.eps = jnp.asarray(number)
        self.factor_c = jnp.asarray(1 / number if prefactor == "1/eps" else 1.0)

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """c E[y | x] = c(α + b(x - α)), bΣ = L h(m) Lᵀ; pace c|h|, which no rounding of a large Σ reaches."""
        _, coupled = damped(COUPLING, product(product(key, factor).T, product(query, factor)) / self.eps)
        return self.factor_c * mean, self.factor_c * product(factor, coupled), self.factor_c * _length(coupled)


def _length(matrix: Array) -> Float[Array, ""]:
    """The Frobenius norm, with a derivative at zero."""
    return jnp.sqrt(jnp.sum(matrix * matrix) + 1e-200)


def _l2(value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 1.0) -> Model:
    return L2Gaussian(*matrices(value, query, key, d), scale)


def _sinkhorn(
    value: Any = None,
    query: Any = None,
    key: Any = None,
    d: int = 2,
    scale: float = 1.0,
    eps: float = 1.0,
    prefactor: str = "1/eps",
) -> Model:
    return SinkhornGaussian(*matrices(value, query, key, d), scale, eps, prefactor)


MODELS.register(
    PREFIX + "l2",
    Description(
        _l2,
        "Gaussian cloud, l2 attention",
        "Σ̇ = 2CSKᵀQΣ + (·)ᵀ,  S = (Σ⁻¹ + 2KᵀK)⁻¹;  α̇ = C(I − 2SKᵀK + 2SKᵀQ)α",
        "As softmax for small clouds; exponential growth instead of blow-up when K is injective.",
        "value, query, key as matrices (default V = I, Q = −I, K = I); until = 1…10",
        (UNIFIED,),
    ),
)
MODELS.register(
    PREFIX + "sinkhorn",
    Description(
        _sinkhorn,
        "Gaussian cloud, Sinkhorn attention",
        "L̇ = c ΣC_h L h(LᵀA_hL/ε),  h(UsWᵀ) = U tanh(½ asinh 2s) Wᵀ;  α̇ = c ΣC_h α",
        "Entropic transport of the cloud with itself: never a blow-up; a gradient flow for V = A symmetric.",
        "eps = 0.5…2, prefactor '1/eps' or '1'; value, query, key as matrices; until = 1…10",
        (UNIFIED,),
    ),
)
