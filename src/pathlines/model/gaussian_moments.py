"""Kinds of attention that do not keep Gaussians: moment closures, and how much they leave out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.domain.lapack import symmetric_eigenvalues
from pathlines.foundation.errors import FormError, finite_number, require
from pathlines.foundation.papers import UNIFIED
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.gaussian_closure import (
    PREFIX,
    Cloud,
    Factor,
    GaussianClosure,
    Scalar,
    Vector,
    matrices,
    stacked_heads,
)

LARGEST_GRID = 2
"""Dimensions of the quadrature grid of the sigmoid closure: 129^r nodes."""


class MomentClosure(GaussianClosure):
    """The Gaussian with the exact α' = EΓ(X), Σ' = E[Γ(X)(X-α)ᵀ] + (·)ᵀ of a field Γ that is not affine.

    (m, F) = (E y, E[y zᵀ]) is the best affine fit of the attended vector y at the token α + Lz. What it leaves out is
    ``defect``; the true law is no longer Gaussian, and only particles give it. There is no scale-free clock.
    """

    preserves: ClassVar[bool] = False

    @abstractmethod
    def square_attended(self, cloud: Cloud, query: Array, key: Array, value: Array) -> Float[Array, ""]:
        """E|C y|² of one head."""

    def defect(self, state: Cloud) -> Float[Array, ""]:
        """Share of E|Γ|² that is not affine in the token: 0 for an exact closure."""
        if self.value.shape[0] != 1:
            raise FormError("The defect of a moment closure is known for one head.")
        whole = self.square_attended(state, self.query[0], self.key[0], self.value[0])
        fit = self.drift(state, jnp.zeros((), state.factor.dtype))
        return 1 - (jnp.sum(fit.mean**2) + jnp.sum(fit.factor**2)) / whole


class UnnormalisedGaussian(MomentClosure):
    """Weights e^{s}: y(x) = (α + ΣAx) exp(αᵀAx + ½xᵀAᵀΣAx), moments in closed form.

    A Unified Perspective, arXiv:2501.18322 (kernel of Sinkformers, arXiv:2110.11773); closure derived. With Φ = LᵀAL
    the moments exist while |Φ| < 1; the run stops where they cease to. Good values: |Φ| ≤ 0.5. Cost O(r³).
    """

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)

    def _tilt(self, cloud: Cloud, query: Array, key: Array, power: int) -> tuple[Array, Array, Array, Array, Array]:
        """(Z, μ, R, y_0, M): E[w^power g(z)] = Z E g(N(μ, R)) for the weight w, and y = w(y_0 + Mz)."""
        alpha, L = cloud.mean, cloud.factor
        keys = (key @ L).T
        inner, across = keys @ (query @ L), keys @ (query @ alpha)
        own, other = (key @ alpha) @ (query @ alpha), (query @ L).T @ (key @ alpha)
        b = power * (inner.T @ across + other)
        R = jnp.linalg.inv(jnp.eye(L.shape[1], dtype=L.dtype) - power * inner.T @ inner)
        log = power * (0.5 * across @ across + own) + 0.5 * b @ R @ b
        return jnp.sqrt(jnp.linalg.det(R)) * jnp.exp(log), R @ b, R, alpha + L @ across, L @ inner

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """(E y, E[y zᵀ])."""
        Z, mu, R, y0, M = self._tilt(Cloud(mean, factor), query, key, 1)
        at = y0 + M @ mu
        return Z * at, Z * (jnp.outer(at, mu) + M @ R), jnp.full((), jnp.nan)

    def square_attended(self, cloud: Cloud, query: Array, key: Array, value: Array) -> Float[Array, ""]:
        """With the squared weight; infinite from |Φ| = 1/√2 on."""
        Z, mu, R, y0, M = self._tilt(cloud, query, key, 2)
        at, spread = value @ (y0 + M @ mu), value @ M
        return Z * (at @ at + jnp.sum((spread @ R) * spread))

    def admissible(self, state: Cloud) -> Array | None:
        """|LᵀA_hL| < 1 for every head."""

        def largest(query: Array, key: Array) -> Array:
            inner = (key @ state.factor).T @ (query @ state.factor)
            return symmetric_eigenvalues(inner.T @ inner)[-1]

        return jnp.all(jax.vmap(largest)(self.query, self.key) < 1)


class SigmoidGaussian(MomentClosure):
    """Weights σ(s + b): y(x) = αΦ_0(m, v) + ΣAx Φ_1(m, v), Φ_0 = Eσ(m + √v Z), Φ_1 = ∂_mΦ_0, m = Ax·α + b, v = xᵀAᵀΣAx.

    A Unified Perspective, arXiv:2501.18322; closure derived. All averages by the trapezoid rule on [-8, 8], which the
    poles of σ at ±iπ spoil far less than Gauss-Hermite nodes (1e-12 for v ≤ 4). Needs rank ≤ 2. Cost 129^r·161.
    """

    bias: Float[Array, ""]

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0, bias: float = 0.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)
        self.bias = jnp.asarray(finite_number("bias", bias))

    def _on_grid(self, cloud: Cloud, query: Array, key: Array) -> tuple[Array, Array, Array]:
        """(nodes z, weights, y at them)."""
        rank = cloud.factor.shape[1]
        require(rank <= LARGEST_GRID, "covariance", f"have rank ≤ {LARGEST_GRID} for sigmoid attention", rank)
        line, mass = _trapezoid(129, 8.0)
        z = jnp.stack([g.ravel() for g in jnp.meshgrid(*[jnp.asarray(line)] * rank, indexing="ij")], axis=1)
        weights = jnp.prod(jnp.stack([g.ravel() for g in jnp.meshgrid(*[jnp.asarray(mass)] * rank)], axis=1), axis=1)
        h = (cloud.mean + z @ cloud.factor.T) @ query.T @ key
        pulled = h @ cloud.factor
        level, root = h @ cloud.mean + self.bias, jnp.sqrt(jnp.sum(pulled**2, axis=1))
        inner, share = _trapezoid(161, 8.0)
        soft = jax.nn.sigmoid(level[:, None] + root[:, None] * inner)
        zero, one = soft @ share, (soft * (1 - soft)) @ share
        return z, weights, zero[:, None] * cloud.mean + one[:, None] * (pulled @ cloud.factor.T)

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """(E y, E[y zᵀ])."""
        z, weights, y = self._on_grid(Cloud(mean, factor), query, key)
        return weights @ y, (y * weights[:, None]).T @ z, jnp.full((), jnp.nan)

    def square_attended(self, cloud: Cloud, query: Array, key: Array, value: Array) -> Float[Array, ""]:
        """E|Cy|²."""
        _, weights, y = self._on_grid(cloud, query, key)
        return weights @ jnp.sum((y @ value.T) ** 2, axis=1)


def _trapezoid(count: int, far: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the trapezoid rule for N(0, 1), summing to one."""
    nodes = np.linspace(-far, far, count)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()


def _unnormalised(value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 0.2) -> Model:
    return UnnormalisedGaussian(*matrices(value, query, key, d), scale)


def _sigmoid(
    value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 1.0, bias: float = 0.0
) -> Model:
    return SigmoidGaussian(*matrices(value, query, key, d), scale, bias)


MODELS.register(
    PREFIX + "unnormalised",
    Description(
        _unnormalised,
        "Gaussian cloud, unnormalised attention (moment closure)",
        "α̇ = C E[y],  L̇ = C E[y zᵀ],  y(α+Lz) = (α + ΣAx) e^{αᵀAx + ½xᵀAᵀΣAx}",
        "Only mean and covariance rates are exact; the cloud does not stay Gaussian. Stops where moments end.",
        "scores small: |LᵀAL| ≤ 0.5; record closure_defect",
        (UNIFIED,),
    ),
)
MODELS.register(
    PREFIX + "sigmoid",
    Description(
        _sigmoid,
        "Gaussian cloud, sigmoid attention (moment closure)",
        "α̇ = C E[y],  L̇ = C E[y zᵀ],  y(x) = αΦ₀ + ΣAxΦ₁,  Φ₀ = Eσ(m+√vZ), Φ₁ = ∂ₘΦ₀",
        "Only mean and covariance rates are exact; the cloud becomes flatter-topped than a Gaussian.",
        "d ≤ 2 (rank); bias = 0; record closure_defect",
        (UNIFIED,),
    ),
)
