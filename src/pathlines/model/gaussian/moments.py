"""Kinds of attention that do not keep Gaussians: moment closures, and how much they leave out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError, finite_number, require
from pathlines.foundation.papers import UNIFIED
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HasDomain
from pathlines.model.gaussian.closure import (
    PREFIX,
    Cloud,
    Factor,
    GaussianClosure,
    Scalar,
    Vector,
    matrices,
    stacked_heads,
)
from pathlines.numerics.jacobi import orthogonal_rows
from pathlines.numerics.single_factorisations import symmetric_eigenvalues

NODES = {1: 513, 2: 129}
"""Nodes an axis of the quadrature grid of the sigmoid closure, by its dimension."""
LARGEST_GRID = max(NODES)


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


class UnnormalisedGaussian(MomentClosure, HasDomain):
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
    poles of σ at ±iπ spoil far less than Gauss-Hermite nodes; strong scores turn over within 1/|LᵀAL| of where they
    vanish, and nodes gather there. With α up to 3 deviations off, error 1e-9 up to |LᵀAL| = 100, at rank 1 to 1e6.
    Needs rank ≤ 2. Cost 322 for each of 513 or 129² nodes.
    """

    bias: Float[Array, ""]

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0, bias: float = 0.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)
        self.bias = jnp.asarray(finite_number("bias", bias))

    def _on_grid(self, cloud: Cloud, query: Array, key: Array) -> tuple[Array, Array, Array]:
        """(nodes z, weights, y at them)."""
        rank = cloud.factor.shape[1]
        require(rank <= LARGEST_GRID, "covariance", f"have rank ≤ {LARGEST_GRID} for sigmoid attention", rank)
        score = key.T @ query
        frame = jnp.concatenate([cloud.factor, cloud.mean[:, None]], axis=1)
        start = (frame.T @ (score @ cloud.mean)).at[-1].add(self.bias)
        slopes = frame.T @ (score @ cloud.factor)
        # the value of the sum does not depend on where its nodes are, and rotations have no derivative at equal slopes
        z, weights = jax.lax.stop_gradient(_gathered(start, slopes))
        scores = start[None] + z @ slopes.T
        pulled, level = scores[:, :-1], scores[:, -1]
        zero, one = smoothed_sigmoid(level, jnp.sqrt(jnp.sum(pulled**2, axis=1) + 1e-200))
        return z, weights, zero[:, None] * cloud.mean[None] + one[:, None] * (pulled @ cloud.factor.T)

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """(E y, E[y zᵀ])."""
        z, weights, y = self._on_grid(Cloud(mean, factor), query, key)
        return weights @ y, (y * weights[:, None]).T @ z, jnp.full((), jnp.nan)

    def square_attended(self, cloud: Cloud, query: Array, key: Array, value: Array) -> Float[Array, ""]:
        """E|Cy|²."""
        _, weights, y = self._on_grid(cloud, query, key)
        return weights @ jnp.sum((y @ value.T) ** 2, axis=1)


FAR = 8.0
"""Where quadratures of N(0, 1) end: the mass beyond is 1e-15."""
SWITCH = 4.0
"""√v from which σ' is narrower than the Gaussian; both rules are good to 1e-14 from 2 to 6."""


def smoothed_sigmoid(level: Float[Array, " k"], root: Float[Array, " k"]) -> tuple[Array, Array]:
    """(Φ_0, Φ_1) = (Eσ(m + √v Z), Eσ'(m + √v Z)) to about 1e-14 for every m and v; ``root`` = √v. Cost 322 per pair.

    Trapezoid sums over Z for √v ≤ 4; beyond, over u = m + √v Z where σ' lives: Φ_1 = ∫σ'(u)φ((u-m)/√v)du/√v, and by
    parts Φ_0 = ∫σ'(u)Φ((m-u)/√v)du.
    """
    inner = np.linspace(-FAR, FAR, 161)
    share = np.exp(-(inner**2) / 2)
    share /= share.sum()
    soft = jax.nn.sigmoid(level[:, None] + jnp.minimum(root, SWITCH)[:, None] * inner[None])
    u = np.linspace(-40.0, 40.0, 161)
    slope = 0.5 / (4 * np.cosh(u / 2) ** 2)  # σ' times the step
    wide = jnp.maximum(root, SWITCH)
    away = (level[:, None] - u[None]) / wide[:, None]
    density = jnp.exp(-(away**2) / 2) / (np.sqrt(2 * np.pi) * wide[:, None])
    narrow = root <= SWITCH
    zero = jnp.where(narrow, soft @ share, ndtr(away) @ slope)
    return zero, jnp.where(narrow, (soft * (1 - soft)) @ share, density @ slope)


def _gathered(start: Array, slopes: Array) -> tuple[Array, Array]:
    """Nodes and weights for N(0, I_r), r = 1 or 2, gathered where the scores ``start`` + ``slopes`` z are smallest.

    Along the principal axes of the slopes, z_i = c_i + δ_i sinh u_i with uniform u_i and 1/δ_i the slope: a field that
    depends on the ratio of scores alone, as far as they are large, is as smooth in u as the Gaussian.
    """
    turn, rows = orthogonal_rows(slopes.T)
    steep = jnp.sqrt(jnp.sum(rows**2, axis=1))
    centre = -(rows @ start) / jnp.maximum(steep**2, 1e-30)
    seen = jnp.abs(centre) < FAR - 1  # further out there is nothing to resolve, and nodes are needed at 0
    centre, width = jnp.where(seen, centre, 0.0), jnp.where(seen, 1 / jnp.clip(steep, 1.0, 1e8), 1.0)
    low, high = (jnp.arcsinh((end - centre) / width)[:, None] for end in (-FAR, FAR))
    u = low + (high - low) * np.linspace(0.0, 1.0, NODES[len(rows)])[None]
    line = centre[:, None] + width[:, None] * jnp.sinh(u)
    mass = jnp.exp(-(line**2) / 2) * jnp.cosh(u)
    mass = mass / jnp.sum(mass, axis=1, keepdims=True)
    nodes, masses = (jnp.stack([g.ravel() for g in jnp.meshgrid(*x, indexing="ij")], axis=1) for x in (line, mass))
    return nodes @ turn.T, jnp.prod(masses, axis=1)


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
