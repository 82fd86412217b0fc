"""Self-attention in R^d, seen in the frame that grows with e^{tV}."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import SoftmaxAttention
from pathlines.domain import Euclidean
from pathlines.foundation.errors import finite_array, finite_number
from pathlines.foundation.papers import EMERGENCE, Paper
from pathlines.kernels import attend
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HandsOver, HasAttention, HasHorizon
from pathlines.model.clustering.hardmax_phase import HardmaxPhase
from pathlines.model.parts.perceptron import Perceptron
from pathlines.weights.heads import check_heads

BOOLEAN = 1e-14


class RescaledAttention(HasAttention, HandsOver, HasHorizon):
    """dz_i/dt = V Σ_j P_ij(t) (z_j - z_i),  P_ij(t) = softmax_j β<Q e^{tV} z_i, K e^{tV} z_j>,  z_i = e^{-tV} x_i.

    The emergence of clusters in self-attention dynamics, arXiv:2305.05465; x solves dx_i/dt = Σ_j P_ij V x_j. β is
    1 in the paper (absorbed in Q, K). With ``perceptron`` the right-hand side is W σ(B·V Σ_j P_ij (z_j - z_i) + b).

    You will see, for V = I, the convex hull shrink to a polytope and every token run to one of its vertices like
    e^{-t}; for a V with one leading positive eigenvalue, at most three parallel hyperplanes; for V = -I, algebraic
    decay. Coordinates with negative eigenvalue diverge like e^{|λ|t} in z: they vanish in x.

    Good values: n = 20, d = 2, uniform on [-5, 5]², V = I, until = 12. Scores grow like e^{2λt}; past the horizon
    where they lose their last digits, the run continues with the attention matrix frozen to its 0/1 limit
    (``HardmaxPhase``) or stops and says so. Cost O(n²d + d³) per drift.

    Args:
        value: V, (d, d); its spectrum decides what the limit is.
        query: Q, the identity by default.
        key: K, the identity by default.
        beta: β ≥ 0, 1 in the paper. The larger, the sooner attention is 0/1.
        perceptron: W σ(B x + b) around the right-hand side; by default none.
    """

    papers: ClassVar[tuple[Paper, ...]] = (EMERGENCE,)

    value: Float[Array, "d d"]
    query: Float[Array, "p d"] | None
    key: Float[Array, "p d"] | None
    beta: Float[Array, ""]
    perceptron: Perceptron | None
    eigenvalues: Array
    vectors: Array
    inverse: Array
    diagonalisable: bool = eqx.field(static=True)

    def __init__(
        self, value: Any, query: Any = None, key: Any = None, beta: float = 1.0, perceptron: Perceptron | None = None
    ) -> None:
        matrix = finite_array("value", value, ("d", "d"))
        given = (("query", query), ("key", key))
        query, key = (None if m is None else finite_array(name, m, ("p", "d")) for name, m in given)
        check_heads(query, key, matrix)
        self.value = jnp.asarray(matrix, float)
        self.query, self.key = (None if m is None else jnp.asarray(m, float) for m in (query, key))
        self.beta = jnp.asarray(finite_number("beta", beta, low=0.0))
        self.perceptron = perceptron
        eigenvalues, vectors = np.linalg.eig(matrix)
        self.diagonalisable = bool(np.linalg.cond(vectors) < 1e4)
        self.eigenvalues, self.vectors = jnp.asarray(eigenvalues), jnp.asarray(vectors)
        self.inverse = jnp.asarray(np.linalg.inv(vectors) if self.diagonalisable else vectors)

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def growth(self, t: Array) -> Float[Array, "d d"]:
        """e^{tV}: one eigen-decomposition for the whole run, one d × d product a call."""
        if not self.diagonalisable:
            return jax.scipy.linalg.expm(t * self.value, max_squarings=48)
        times = jnp.asarray(t).astype(self.eigenvalues.dtype)
        grown = self.vectors * jnp.exp(times * self.eigenvalues)[None]
        return jnp.real(grown @ self.inverse).astype(self.value.dtype)

    def check(self, tokens: Any) -> None:
        """Finite rows of the width of V."""
        Euclidean(self.value.shape[0]).check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """z(0) = x(0)."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """z."""
        return state

    def _queries_keys(self, z: Float[Array, "n d"], t: Array) -> tuple[Array, Array]:
        x = z @ self.growth(t).T
        query = x if self.query is None else x @ self.query.T
        key = x if self.key is None else x @ self.key.T
        return self.beta * query, key

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """V (Σ_j P_ij z_j - z_i)."""
        query, key = self._queries_keys(state, t)
        masses = self.normalised_masses(state.shape[0], state.dtype)
        mean, _ = attend(SoftmaxAttention(), query, key, state, masses)
        pull = (mean - state) @ self.value.T
        return pull if self.perceptron is None else self.perceptron(pull)

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """P(t)."""
        query, key = self._queries_keys(state, t)
        return SoftmaxAttention().normalise(query @ key.T, self.normalised_masses(state.shape[0], state.dtype))[0]

    def horizon(self, tokens: Any) -> tuple[float, str]:
        """t_max = ln(10⁻²/(ε β|QᵀK| max|z|²))/(2λ): scores ~ e^{2λt}|z|² then carry two digits after the point."""
        rate = float(np.max(np.real(np.asarray(self.eigenvalues))))
        if rate <= 0:
            return np.inf, ""
        identity = np.eye(self.value.shape[0])
        query, key = (identity if m is None else np.asarray(m) for m in (self.query, self.key))
        strength = float(self.beta) * float(np.linalg.norm(query.T @ key, 2))
        size = float(np.max(np.sum(np.asarray(tokens) ** 2, axis=-1))) * strength + 1e-300
        time = np.log(1e-2 / (np.finfo(np.asarray(tokens).dtype).eps * size)) / (2 * rate)
        return max(float(time), 0.0), "attention scores, which grow like e^{2λt}, have lost their digits to rounding"

    def handover(self, state: Any, t: float, until: float, at_horizon: bool) -> tuple[Model, Any, str] | None:
        """Once P is 0/1 to 1e-14, what remains is a linear equation with a known solution.

        For V = λI, λ > 0, with leaders that follow themselves, leaders never change: with θ = e^{-λs} a follower is at
        z_l + θ(z_i - z_l), and <Q z_i(θ), K(z_l - z_j(θ))> is a convex combination of two functions linear in θ that
        are ≥ 0 at θ = 1 and θ = 0. For other V the hard-max phase starts at the horizon and watches
        for changes of leaders.
        """
        if self.perceptron is not None or not self.diagonalisable:
            return None
        weights = np.asarray(self.attention_matrix(state, jnp.asarray(t, state.dtype)))
        if np.max(np.minimum(weights, 1 - weights)) > BOOLEAN:
            return None
        leader = np.argmax(weights, axis=1)
        rate = float(self.value[0, 0])
        scalar = rate > 0 and bool(np.all(np.asarray(self.value) == rate * np.eye(len(self.value))))
        settled = scalar and bool(np.all(leader[leader] == leader))
        if not at_horizon and not settled:
            return None
        reason = f"attention is 0/1 to {BOOLEAN:g}: the remaining linear flow is solved exactly"
        return HardmaxPhase(self.value, jnp.asarray(leader), self, settled), state, reason

    def pair_scores(self, z: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """<Q z_i, K z_j>, without the growth e^{tV}."""
        query = z if self.query is None else z @ self.query.T
        return query @ (z if self.key is None else z @ self.key.T).T

    def leading_scores(self, z: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """Scores divided by e^{2λt}, so that they stay finite at any time."""
        rate = jnp.max(jnp.real(self.eigenvalues))
        turned = jnp.exp(jnp.asarray(t).astype(rate.dtype) * (self.eigenvalues - rate))
        growth = jnp.real((self.vectors * turned[None]) @ self.inverse)
        return self.pair_scores(z @ growth.T)


def _build(value: list[list[float]] | None = None, d: int = 2, beta: float = 1.0) -> RescaledAttention:
    return RescaledAttention(np.eye(d) if value is None else np.asarray(value, float), beta=beta)


MODELS.register(
    "rescaled",
    Description(
        _build,
        "Self-attention in R^d, rescaled",
        "żᵢ = V Σⱼ Pᵢⱼ(t)(zⱼ − zᵢ),  P(t) = softmax ⟨Q e^{tV}zᵢ, K e^{tV}zⱼ⟩,  z = e^{−tV}x",
        "V = I: the hull shrinks to a polytope, tokens go to its vertices. One leading eigenvalue: ≤ 3 hyperplanes.",
        "n = 20, d = 2, tokens uniform on [-5, 5]², until = 12",
        (EMERGENCE,),
    ),
)
