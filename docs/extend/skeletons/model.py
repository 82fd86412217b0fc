"""Skeleton of a model: copy, rename, change. One file is all it takes.

Put it in ``src/pathlines/model/`` (found by itself), or keep it anywhere and use ``pathlines --load FILE …``.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.domain import Sphere
from pathlines.foundation.errors import finite_number
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.model.base import MODELS, Description, Model


class MeanPull(Model):
    """dx_i/dt = κ P_{x_i} x̄, x̄ = (1/n) Σ_j x_j: the β = 0 case of self-attention with a gain κ.

    A mathematical perspective on Transformers, arXiv:2312.10794. State the equation, its symbols and conventions, what
    one will see, good values, the cost, and the paper.

    You will see tokens gather at the direction of their mean, conformally: cross-ratios are conserved.
    Good values: κ = 1, n = 50, until = 10. Cost O(nd) per drift.
    """

    gain: Float[Array, ""]

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = jnp.asarray(finite_number("gain", gain))

    def check(self, tokens: Any) -> None:
        """Raise on tokens this model cannot take."""
        Sphere(tokens.shape[-1]).check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state of given tokens (any pytree of arrays)."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The tokens of a state."""
        return state

    def retract(self, state: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Back to the domain."""
        return Sphere(state.shape[-1]).retract(state)

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The velocity, tangent at points of the domain."""
        mean = jnp.broadcast_to(jnp.mean(state, axis=0), state.shape)
        return self.gain * Sphere(state.shape[-1]).tangent(state, mean)


MODELS.register(
    "mean-pull",
    Description(
        build=MeanPull,
        title="Pull to the mean",
        equation="ẋᵢ = κ P_xᵢ x̄",
        sees="Tokens gather at the direction of their mean.",
        good_values="gain = 1, n = 50, until = 10",
        papers=(PERSPECTIVE,),
    ),
)
