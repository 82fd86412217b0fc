"""The Gram closure: for Q = K = V = I the pair deficits obey an equation of their own."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.domain import Sphere
from pathlines.domain.space import pair_deficits
from pathlines.foundation.errors import FormError
from pathlines.foundation.papers import PERSPECTIVE, Paper
from pathlines.foundation.traceable import traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import Decays, HasAttention, HasEnergy
from pathlines.model.parts.energy import pair_energy


class GramAttention(HasAttention, HasEnergy, Decays):
    """du_ij/dt = -T_ij - T_ji,  T_ij = σ_i + u_ij - Σ_k a_ik u_kj - σ_i u_ij,  σ_i = Σ_k a_ik u_ik.

    Here a_ik ∝ m_k e^{-βu_ik}. The state is the matrix u_ij = 1 - <x_i, x_j> itself (derived from SA of
    arXiv:2312.10794 with Q = K = V = I): with relative step control u keeps digits relative to its largest entry down
    to 1e-300, where coordinates stop at 1e-33. Zeros (coincident tokens) stay zeros. ``unnormalised=True`` is USA with
    the kernel e^{β<x,y> - shift}.

    You will see u_ij ~ C e^{-2t} with C constant to 1e-10. Good values: hand over once the diameter is below 1e-3.
    Cost: O(n³) time, O(n²) memory, whatever d.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE,)

    beta: Float[Array, ""]
    shift: Float[Array, ""]
    multiplicities: Float[Array, " n"] | None
    unnormalised: bool = eqx.field(static=True)

    def __init__(
        self, beta: Any = 4.0, multiplicities: Any = None, unnormalised: bool = False, shift: Any = 0.0
    ) -> None:
        self.beta = jnp.asarray(traceable_number("beta", beta, low=0.0))
        self.shift = jnp.asarray(shift)
        self.multiplicities = multiplicities
        self.unnormalised = unnormalised

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """u_ij of given tokens, from differences."""
        return pair_deficits(tokens)

    def check(self, tokens: Any) -> None:
        """Unit rows."""
        Sphere(tokens.shape[-1]).check(tokens)

    def tokens(self, state: Float[Array, "n n"], t: Array) -> Float[Array, "n d"]:
        """The Gram form has no coordinates."""
        raise FormError("The gram-deficit form has no token coordinates; use form='tokens' to record them.")

    def deficits(self, state: Float[Array, "n n"], t: Array) -> Float[Array, "n n"]:
        """The state."""
        return state

    @property
    def has_tokens(self) -> bool:
        """Only pair deficits."""
        return False

    def _weights(self, u: Float[Array, "n n"]) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        raw = self.normalised_masses(*_like(u))[None] * jnp.exp(-self.beta * u)
        total = jnp.sum(raw, axis=1)
        if self.unnormalised:
            scale = jnp.exp(self.beta - self.shift)
            return raw * scale, jnp.full_like(total, 1.0) / scale
        return raw / total[:, None], total

    def attention_matrix(self, state: Float[Array, "n n"], t: Array) -> Float[Array, "n n"]:
        """a_ij."""
        return self._weights(state)[0]

    def drift(self, state: Float[Array, "n n"], t: Array) -> Float[Array, "n n"]:
        """-T - T^T, written for rows a_i of any total (one for softmax)."""
        a, _ = self._weights(state)
        total = jnp.sum(a, axis=1, keepdims=True)
        sigma = jnp.sum(a * state, axis=1, keepdims=True)
        half = sigma + total * state - a @ state - sigma * state
        return jnp.where(state == 0, 0.0, -(half + half.T))

    def retract(self, state: Float[Array, "n n"]) -> Float[Array, "n n"]:
        """Deficits are symmetric and not negative.

        The drift of u_ij - u_ji is zero: what rounding puts there would stay while u itself decays.
        """
        return jnp.maximum((state + state.T) / 2, 0.0)

    def energy_deficit(self, state: Float[Array, "n n"], t: Array) -> Float[Array, ""] | None:
        """F = e^{-β}(E_β - E_max) = Σ m_i m_j (e^{-βu_ij} - 1)/(2β)."""
        masses = self.normalised_masses(*_like(state))
        return masses @ pair_energy(state, self.beta) @ masses / 2

    def power(self, state: Float[Array, "n n"], t: Array) -> Float[Array, ""] | None:
        """Σ_i m_i s_i |dx_i/dt|² with |dx_i/dt|² = 2σ_i Σ_k a_ik - Σ_kl a_ik u_kl a_il - σ_i²."""
        a, scale = self._weights(state)
        sigma = jnp.sum(a * state, axis=1)
        speed = 2 * sigma * jnp.sum(a, axis=1) - jnp.sum((a @ state) * a, axis=1) - sigma**2
        return jnp.sum(self.normalised_masses(*_like(state)) * scale * speed)


def _like(state: Array) -> tuple[int, Any]:
    return state.shape[0], state.dtype


MODELS.register(
    "gram",
    Description(
        GramAttention,
        "Gram closure of SA (deficit form)",
        "u̇ᵢⱼ = −Tᵢⱼ − Tⱼᵢ,  Tᵢⱼ = σᵢ + uᵢⱼ − Σₖ aᵢₖuₖⱼ − σᵢuᵢⱼ,  σᵢ = Σₖ aᵢₖuᵢₖ",
        "Deficits uᵢⱼ = 1 − ⟨xᵢ,xⱼ⟩ decay like e^{−2t} with all their digits, far below 1e-16.",
        "beta = 0…10, after the diameter has fallen below 1e-3",
        (PERSPECTIVE,),
    ),
)
