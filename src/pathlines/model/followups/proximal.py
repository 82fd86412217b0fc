"""Preconditioned regularised Wasserstein proximal sampling: a noise-free sampler whose step is an attention block."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from pathlines.attention.l2 import L2Attention
from pathlines.domain.space import checked_tokens
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, of_kind
from pathlines.foundation.papers import Paper
from pathlines.foundation.papers.followups import PROXIMAL
from pathlines.foundation.setting import means
from pathlines.kernels import attend, attention_weights
from pathlines.model.base import MODELS, Description, checked_multiplicities
from pathlines.model.capability import HasAttention, HasLayers
from pathlines.model.followups.potentials import (
    ClosedForm,
    Kernel,
    Normaliser,
    Potential,
    QuadraticPotential,
    checked_potential,
)
from pathlines.numerics.sources import semidefinite

CONVENTION = (
    "the preconditioned kernel is the known one of the method with |x − y|² replaced by |x − y|² in the metric M⁻¹."
)


class ProximalAttention(HasLayers, HasAttention):
    """dx_i/dt = -½M∇V(x_i) + (x_i - Σ_j A_ij x_j)/(2T), A = softmax_j(-β|x_i - x_j|²_{M⁻¹}/(4T) - log Z(x_j)).

    Preconditioned Regularized Wasserstein Proximal Sampling, arXiv:2509.01685. A layer of step η is one step of the
    sampler of π ∝ e^{-βV}. It is L2 attention: keys stand above the plane of the particles at heights whose squares are
    the normalisers, -β h_j²/(4T) = -log Z(x_j) + constant, and are seen from the plane.

    You will see particles spread over the target and come to rest, without noise. The kernel convolved with the
    particles (``log_density``) is then the target, so the particles themselves are a little too narrow: for a quadratic
    V their covariance is (P⁻¹ - T²MPM)/β whatever the step [derived].

    Good values: T M about a tenth to a fifth of the variance of the target times β, η ≤ 2T, n = 50..1000. Cost
    O(n²d) for a layer, n gradients of V, and what the normaliser takes.

    Args:
        potential: V, a ``Potential`` or a function of one JAX array (d,).
        d: the dimension.
        regularisation: T > 0. The larger, the faster and the more biased.
        beta: β > 0, the inverse temperature of the target. The larger, the narrower.
        preconditioner: M, symmetric with eigenvalues > 0, or a number times the identity.
        normaliser: how log Z is computed; in closed form by default, for a ``QuadraticPotential``.
        gradient: ∇V where it is not to be derived.
        multiplicities: masses of the particles, equal by default; with those of a quadrature rule they are the limit of
            infinitely many.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PROXIMAL,)

    potential: Potential
    kernel: Kernel
    normaliser: Normaliser
    d: int = eqx.field(static=True)
    multiplicities: Float[Array, " n"] | None

    def __init__(
        self,
        potential: Any,
        d: int,
        *,
        regularisation: float = 0.2,
        beta: float = 1.0,
        preconditioner: Any = 1.0,
        normaliser: Normaliser | None = None,
        gradient: Any = None,
        multiplicities: Any = None,
    ) -> None:
        self.d, self.potential = d, checked_potential(potential, gradient, d)
        pull = finite_number("regularisation", regularisation, 0.0, open_low=True)
        cold = finite_number("beta", beta, 0.0, open_low=True)
        factor = np.linalg.cholesky(checked_preconditioner(preconditioner, d))
        self.kernel = Kernel(jnp.asarray(cold), jnp.asarray(pull), jnp.asarray(factor))
        if normaliser is None:
            of_kind("potential", self.potential, QuadraticPotential, "quadratic unless there is a `normaliser`")
        self.multiplicities = checked_multiplicities(multiplicities)
        self.normaliser = ClosedForm() if normaliser is None else of_kind("normaliser", normaliser, Normaliser, "one")

    def check(self, tokens: Any) -> None:
        """Finite rows of length d."""
        checked_tokens(tokens, self.d)
        if self.multiplicities is not None and len(self.multiplicities) != np.shape(tokens)[-2]:
            known = (np.shape(tokens)[-2], len(self.multiplicities))
            raise ArgumentError(
                "Argument `multiplicities` must have one entry for each of {} particles, but has {}.".format(*known)
            )

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state is the particles."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The particles."""
        return state

    @property
    def on_sphere(self) -> bool:
        """In R^d."""
        return False

    def block(self, x: Float[Array, "n d"]) -> tuple[Array, Array, Array]:
        """Queries, keys and the β of L2 attention: whitened particles in the plane, and at their heights."""
        white = solve_triangular(self.kernel.factor, x.T, lower=True).T
        bias = self.normaliser(self.potential, self.kernel, x)
        sharpness = self.kernel.beta / (4 * self.kernel.regularisation)
        # one above the lowest, where the root has a derivative
        heights = jnp.sqrt((bias - jax.lax.stop_gradient(jnp.min(bias)) + 1) / sharpness)[:, None]
        return jnp.hstack([white, jnp.zeros_like(heights)]), jnp.hstack([white, heights]), sharpness

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """-½M∇V + (x - Ax)/(2T)."""
        queries, keys, sharpness = self.block(state)
        masses = self.normalised_masses(len(state), state.dtype)
        heard = attend(L2Attention(), queries, keys, state, masses, beta=sharpness)[0]
        slope = jax.vmap(self.potential.gradient)(state) @ self.kernel.factor @ self.kernel.factor.T
        return ((state - heard) / self.kernel.regularisation - slope) / 2

    def layer(self, state: Float[Array, "n d"], t: Array, step: Array) -> Float[Array, "n d"]:
        """x ← x - ηM(∇V + β⁻¹∇ log prox ρ), ρ the particles: one step of the sampler."""
        return state + step * self.drift(state, t)

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """A."""
        queries, keys, sharpness = self.block(state)
        masses = self.normalised_masses(len(state), state.dtype)
        return attention_weights(L2Attention(), queries, keys, masses, beta=sharpness)

    def log_density(self, particles: Float[Array, "n d"], points: Float[Array, "k d"]) -> Float[Array, " k"]:
        """log prox ρ at points, ρ the particles: a density that integrates to one."""
        beta, pull, factor = self.kernel.beta, self.kernel.regularisation, self.kernel.factor
        bias = self.normaliser(self.potential, self.kernel, particles)
        ours, theirs = (solve_triangular(factor, x.T, lower=True).T for x in (points, particles))
        near = jax.vmap(lambda y: jnp.sum((y[None] - theirs) ** 2, axis=1))(ours)
        weights = jnp.log(self.normalised_masses(len(particles), points.dtype))
        scores = -beta / (4 * pull) * near - bias[None] + weights[None]
        volume = self.d / 2 * jnp.log(4 * jnp.pi * pull / beta) + jnp.sum(jnp.log(jnp.diagonal(factor)))
        return jax.nn.logsumexp(scores, axis=1) - volume - beta / 2 * jax.vmap(self.potential.value)(points)


def checked_preconditioner(value: Any, d: int) -> np.ndarray:
    """M (d, d), symmetric with eigenvalues > 0; a number is that times the identity."""
    matrix = finite_array("preconditioner", value)
    whole = float(matrix) * np.eye(d) if matrix.ndim == 0 else matrix
    return semidefinite("preconditioner", whole, d, positive=True)


Pull = Annotated[of.Positive, means("regularisation of the proximal", "T")]
Cold = Annotated[of.Positive, means("inverse temperature of the target", "β")]


def _build(d: of.Dimension = 2, beta: Cold = 1.0, regularisation: Pull = 0.2) -> ProximalAttention:
    return ProximalAttention(QuadraticPotential(np.eye(d)), d, regularisation=regularisation, beta=beta)


MODELS.register(
    "proximal",
    Description(
        _build,
        "Regularised Wasserstein proximal sampling of a Gaussian",
        "dxᵢ/dt = −½M∇V(xᵢ) + (xᵢ − Σⱼ Aᵢⱼxⱼ)/2T,  A = softmaxⱼ(−β|xᵢ−xⱼ|²/4T − log Z(xⱼ)),  V = |x|²/2",
        "Particles spread over the target without noise and come to rest, a little too narrow.",
        "start normal:0.5, n = 50…500, regularisation = 0.2, a step of at most 2T",
        (PROXIMAL,),
        ("assumed",),
        CONVENTION,
    ),
)
