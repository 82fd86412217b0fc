"""Self-attention on the circle in angles, summed by Fourier series."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.foundation.errors import finite_number
from pathlines.foundation.module import overridden
from pathlines.foundation.papers import PERSPECTIVE, Paper
from pathlines.kernels.spectral.potential import circle_modes, circle_potential
from pathlines.model.base import MODELS, Description, checked_multiplicities
from pathlines.model.capability import HasAttention, HasEnergy


class CircleAttention(HasAttention, HasEnergy):
    """dθ_i/dt = U'(θ_i)/(β U(θ_i)) (SA) or e^{β-shift} U'(θ_i)/β (USA),  U(θ) = Σ_j m_j e^{β(cos(θ-θ_j)-1)}.

    The d = 2 case of arXiv:2312.10794 with x = (cos θ, sin θ), in O(nK) per drift with K Fourier modes (K = 16, 34, 97
    for β = 1, 9, 100 at machine precision). Angles are lifted to the real line and never wrapped.

    Good values: n = 10²..10⁶, β up to a few hundred. Needs β > 0.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE,)
    not_swept: ClassVar[tuple[str, ...]] = ("beta",)

    beta: Float[Array, ""]
    shift: Float[Array, ""]
    multiplicities: Float[Array, " n"] | None
    modes: int = eqx.field(static=True)
    unnormalised: bool = eqx.field(static=True)

    def __init__(
        self, beta: float = 4.0, multiplicities: Any = None, unnormalised: bool = False, shift: Any = 0.0
    ) -> None:
        value = finite_number("beta", beta, low=0.0, open_low=True)
        self.beta, self.shift = jnp.asarray(value), jnp.asarray(finite_number("shift", shift))
        self.multiplicities = checked_multiplicities(multiplicities)
        self.modes = circle_modes(value)
        self.unnormalised = unnormalised

    def initial(self, tokens: Float[Array, "n 2"]) -> Float[Array, " n"]:
        """θ_i = atan2(x_i2, x_i1)."""
        return jnp.arctan2(tokens[:, 1], tokens[:, 0])

    def check(self, tokens: Any) -> None:
        """Unit rows of length two."""
        Sphere(2).check(tokens)

    def tokens(self, state: Float[Array, " n"], t: Array) -> Float[Array, "n 2"]:
        """(cos θ, sin θ)."""
        return jnp.stack([jnp.cos(state), jnp.sin(state)], axis=-1)

    def deficits(self, state: Float[Array, " n"], t: Array) -> Float[Array, "n n"]:
        """u_ij = 2 sin²((θ_i - θ_j)/2), relatively accurate for close angles."""
        return 2 * jnp.sin((state[:, None] - state[None, :]) / 2) ** 2

    def deficits_of(self, state: Float[Array, " n"], t: Array, i: Array) -> Float[Array, " n"]:
        """Row i of them."""
        return 2 * jnp.sin((state - state[i]) / 2) ** 2

    def attention_matrix(self, state: Float[Array, " n"], t: Array) -> Float[Array, "n n"]:
        """a_ij, the only place where the circle form writes n² numbers."""
        kind = UnnormalisedAttention(self.shift) if self.unnormalised else SoftmaxAttention()
        scores = self.beta * (1 - self.deficits(state, t))
        return kind.normalise(scores, self.normalised_masses(state.shape[0], state.dtype))[0]

    def _potential(self, angles: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        masses = self.normalised_masses(angles.shape[0], angles.dtype)
        return circle_potential(angles, masses, self.beta, self.modes)

    def drift(self, state: Float[Array, " n"], t: Array) -> Float[Array, " n"]:
        """The angular velocity."""
        potential, slope = self._potential(state)
        if self.unnormalised:
            return jnp.exp(self.beta - self.shift) * slope / self.beta
        return slope / (self.beta * potential)

    def moving(self, state: Float[Array, " n"], t: Array) -> tuple[Any, Array | None, Array | None]:
        """All by one potential."""
        if type(self).drift is not _DRIFT or overridden(self, CircleAttention):
            return super().moving(state, t)
        masses = self.normalised_masses(state.shape[0], state.dtype)
        potential, slope = self._potential(state)
        left = jnp.exp(self.shift - self.beta)
        velocity = slope / (self.beta * (left if self.unnormalised else potential))
        power = jnp.sum(masses * (left if self.unnormalised else potential) * velocity**2)
        return velocity, power, (jnp.sum(masses * potential) - 1) / (2 * self.beta)

    def energy_deficit(self, state: Float[Array, " n"], t: Array) -> Float[Array, ""] | None:
        """F = (Σ_i m_i U(θ_i) - 1)/(2β)."""
        potential, _ = self._potential(state)
        return (jnp.sum(self.normalised_masses(state.shape[0], state.dtype) * potential) - 1) / (2 * self.beta)

    def power(self, state: Float[Array, " n"], t: Array) -> Float[Array, ""] | None:
        """Σ_i m_i U_i θ̇_i² (SA) or e^{shift-β} Σ_i m_i θ̇_i² (USA)."""
        potential, _ = self._potential(state)
        scale = jnp.exp(self.shift - self.beta) if self.unnormalised else potential
        return jnp.sum(self.normalised_masses(state.shape[0], state.dtype) * scale * self.drift(state, t) ** 2)


_DRIFT = CircleAttention.drift
"""Whoever changes the drift of the class gets it."""

MODELS.register(
    "circle",
    Description(
        CircleAttention,
        "SA on the circle, Fourier form",
        "θ̇ᵢ = ∂θ ln Z(θᵢ)/β,  Z(θ) = Σₖ Iₖ(β) cₖ e^{ikθ},  cₖ = n⁻¹ Σⱼ e^{−ikθⱼ}",
        "The circle with 10⁵ tokens in the time of a few hundred.",
        "d = 2, n = 100…10⁶, beta = 1…100",
        (PERSPECTIVE,),
    ),
)
