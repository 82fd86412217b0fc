"""The homogenized SDE of finitely many heads: m atoms drive m-1 Brownian motions, and every expectation is a sum.

Homogenized Transformers, arXiv:2604.01978: the chain x_i <- N(x_i + (η/H) Σ_h B_{θ_h}(x_i)), its SDE with common noise.
θ = (V_a, A_a) with probability p_a, B_a(x_i) = V_a Σ_k π_ik x_k, π_ik ∝ e^{β⟨A_a x_i, x_k⟩}, b_ρ = Σ_a p_a B_a,
ξ_a = B_a - b_ρ, P = P_{x_i} the projection on the tangent space, b = P b_ρ. Then

    dX = D dt + Σ_r Σ_r dW_r   (Itô, intrinsic),   Σ_r = P g_r,   g_r = √(η/H) Σ_a p_a q_r(a) B_a,   r = 1 … m-1,
    D  = b - (η/2)∇_b b - η⟨x, b_ρ⟩b - (η/H) E[⟨x, ξ⟩Pξ],

with q_r orthonormal functions of the atom that are orthogonal to 1 under p (Gram-Schmidt): they make
Σ_r g_r g_rᵀ = (η/H) E[ξξᵀ] with the constraint Σ_a p_a ξ_a = 0 built in. (The last two terms of D and the reduction to
m-1 noises: derived; the paper prints b - (η/2)∇_b b.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of
from pathlines.numerics.runge_kutta import rk4_step

CORRECTORS = ("none", "paper", "noiseless", "full")
"""b; b - (η/2)∇_b b; the same with -η⟨x, b_ρ⟩b; and with the last term of D, the only one of order α."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FiniteLawSDE:
    """dX = D dt + Σ_r Σ_r dW_r for heads (``values``, ``scores``)[a] of ``probabilities``[a], matrices (m, d, d).

    η = ``step``, H = ``heads``, β = ``beta``; ``corrector`` says how much of D is kept, ``update="tangent"`` drops the
    two terms that belong to the ambient layer N(x + ηB). Configurations are (n, d) or (n, d, leaves), unit tokens: the
    leaves last, so that sums over tokens and components run along contiguous memory. Cost O(m n²d) per leaf for a
    field; the Stratonovich drift takes m+2 of them. (Homogenized Transformers, arXiv:2604.01978.)
    """

    values: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray
    beta: float
    step: float
    heads: int = 1
    corrector: str = "full"
    update: str = "ambient"

    def __post_init__(self) -> None:
        values = finite_array("values", self.values, ("atoms", "d", "d")).astype(float)
        scores = finite_array("scores", self.scores, values.shape).astype(float)
        chances = finite_array("probabilities", self.probabilities, values.shape[:1]).astype(float)
        require(bool((chances > 0).all()), "probabilities", "be positive", chances)
        require(abs(float(chances.sum()) - 1) < 1e-9, "probabilities", "sum to 1", float(chances.sum()))
        finite_number("beta", self.beta)
        finite_number("step", self.step, 0.0, open_low=True)
        positive_integer("heads", self.heads)
        one_of("corrector", self.corrector, CORRECTORS)
        one_of("update", self.update, ("ambient", "tangent"))
        for name, array in (("values", values), ("scores", scores), ("probabilities", chances)):
            object.__setattr__(self, name, array)

    @property
    def noise_weights(self) -> np.ndarray:
        """√(η/H) p_a q_r(a), (m-1, m): the weights of B_a in g_r."""
        root = np.sqrt(self.probabilities)
        columns = np.column_stack([root, np.diag(root)[:, :-1]])
        orthonormal = np.linalg.qr(columns)[0][:, 1:]
        return np.sqrt(self.step / self.heads) * root * orthonormal.T

    def drift(self, x: np.ndarray) -> np.ndarray:
        """D(X)."""
        return self._drift(HeadFields(self, x))

    def noise(self, x: np.ndarray) -> np.ndarray:
        """Σ_r(X), (m-1, n, d, …)."""
        return tangent(x, np.tensordot(self.noise_weights, HeadFields(self, x).fields, 1))

    def stratonovich(self, x: np.ndarray) -> np.ndarray:
        """V_0 = D - ½ Σ_r ∇_{Σ_r}Σ_r,  ∇_Σ Σ = P Dg[Σ] - ⟨x, g⟩Σ for Σ = P g."""
        heads = HeadFields(self, x)
        drift = self._drift(heads)
        for weights in self.noise_weights:
            g = np.tensordot(weights, heads.fields, 1)
            drift = drift - 0.5 * _covariant(heads, weights, g, tangent(x, g))
        return drift

    def flow(self, start: np.ndarray, until: float, steps: int = 200) -> np.ndarray:
        """dX/dt = D(X), the noise left out (regimes ODE I and II): ``steps`` classical Runge-Kutta steps."""
        x = unit(np.asarray(start, float))
        for _ in range(positive_integer("steps", steps)):
            x = flowed(self.drift, x, until / steps)
        return x

    def _drift(self, heads: HeadFields) -> np.ndarray:
        x, fields, p = heads.x, heads.fields, self.probabilities
        mean = np.tensordot(p, fields, 1)
        b = tangent(x, mean)
        if self.corrector == "none":
            return b
        drift = b - self.step / 2 * _covariant(heads, p, mean, b)
        if self.corrector == "paper" or self.update == "tangent":
            return drift
        radial = inner(x, mean) * b
        drift = drift - self.step * radial
        if self.corrector == "noiseless":
            return drift
        second = np.tensordot(p, inner(x, fields) * tangent(x, fields), 1)
        return drift - self.step / self.heads * (second - radial)


class HeadFields:
    """B_a(x_i) of every head at one configuration, ``fields`` (m, n, d, …), and their derivatives."""

    def __init__(self, law: FiniteLawSDE, x: np.ndarray) -> None:
        self.x, self._law = x, law
        self._queries = law.beta * _applied(law.scores, x)
        logits = np.einsum("aie...,ke...->aik...", self._queries, x)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        self._attention = weights / weights.sum(axis=2, keepdims=True)
        self._means = np.einsum("aik...,kd...->aid...", self._attention, x)
        self.fields = _each(law.values, self._means)

    def change(self, u: np.ndarray) -> np.ndarray:
        """D B_a(X)[u]: through keys, queries and values, δπ_ik = π_ik(δz_ik - Σ_l π_il δz_il)."""
        turned = self._law.beta * _applied(self._law.scores, u)
        logits = np.einsum("aie...,ke...->aik...", self._queries, u)
        logits += np.einsum("aie...,ke...->aik...", turned, self.x)
        moved = self._attention * logits
        means = np.einsum("aik...,kd...->aid...", moved, self.x)
        means -= moved.sum(axis=2)[:, :, None] * self._means
        means += np.einsum("aik...,kd...->aid...", self._attention, u)
        return _each(self._law.values, means)


def _applied(matrices: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("aed,nd...->ane...", matrices, x)


def _each(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("aed,and...->ane...", matrices, vectors)


def _covariant(heads: HeadFields, weights: np.ndarray, g: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """∇_u (P g) = P Dg[u] - ⟨x, g⟩u for g = Σ_a w_a B_a and a tangent direction u."""
    x = heads.x
    return tangent(x, np.tensordot(weights, heads.change(direction), 1)) - inner(x, g) * direction


def inner(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """⟨x_i, v_i⟩ with the component axis kept; ``v`` may have an axis of heads in front."""
    axis = v.ndim - x.ndim + 1
    return np.sum(x * v, axis=axis, keepdims=True)


def tangent(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """P_{x_i} v_i."""
    return v - inner(x, v) * x


def unit(x: np.ndarray) -> np.ndarray:
    """N(x_i)."""
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True))


def flowed(field: Callable[[np.ndarray], np.ndarray], x: np.ndarray, time: float) -> np.ndarray:
    """e^{time·V}x by one Runge-Kutta step of the extension V(N(y)), which has the order of the method on the sphere."""
    return unit(rk4_step(lambda y: (field(unit(y)),), (x,), time)[0])
